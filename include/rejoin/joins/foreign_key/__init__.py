"""The star of inner and left joins by foreign keys: rows tell each other of their changes, as in KIP-213.

Its statements are those of three stages, a module each: ``subscribe``, ``respond`` and the first half of ``resolve``. ``changes`` finds the results that
can change, ``right_rows`` looks up right rows that nobody has told. What right and full joins add is in ``joins.outer``.
"""
