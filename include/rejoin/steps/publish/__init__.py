"""publish: the ledger commits a run (``run.topology``); ``roll_forward`` makes the tables show it."""
