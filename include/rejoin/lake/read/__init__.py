"""What the steps of a run read: always one cut, the snapshots that the ledger names.

Start with ``reader``; ``lookups`` fetches rows by key, here (``duckdb_lookup``, ``duckdb_scan``) or by Spark. ``change_feed`` is what sinks are given,
``first_load`` the run that loaded an output, ``table_sizes`` how many rows there are.
"""
