"""The only code that touches Iceberg's tables and the ledger. It does not know who uses it.

``config`` says where a lake is, ``locations`` and ``table_names`` how its paths and tables are called, ``table_roles`` which tables a plan has. Rooms:
``iceberg`` metadata, commits and branches; ``ledger`` runs and what they did; ``read`` what steps read; ``write`` what they write; ``query`` what people ask;
``compact`` layout, folding and expiry; ``spark`` sessions.
"""
