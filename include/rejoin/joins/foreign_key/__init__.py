"""The star of inner and left joins by foreign keys: rows tell each other of their changes, as in KIP-213.

Its statements are those of three stages, a module each: ``subscribe``, ``respond`` and the first half of ``resolve``. What right and full
joins add is in ``joins.outer``.
"""
