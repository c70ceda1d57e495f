"""Names of rejoin's own columns, for the stages and for everyone who reads what they made."""

HASH = "_hash"
RUN = "_run"
PLACE = "_place"
"""Where a stored row of an output lies (``lake.iceberg.row_addresses``); null where nobody knows, as of what Spark has scanned."""
HELD_CODE = "EXPECTATION"
"""The quarantine code of a row that is held back by validation."""
NOT_COMPUTABLE = "NOT_COMPUTABLE"
"""The quarantine code of a row of an output that an expression has no value for."""
HELD_CODES = (HELD_CODE, NOT_COMPUTABLE)
"""The quarantine codes of rows that are held back; any other is a record's that could not be read."""
REPLAYED_CODE = "REPLAYED"
"""The quarantine code that says of a refused record that a run has tried it again and applied it."""
SOURCE_FILE = "_source_file"
"""The file of a record in quarantine. Spark refuses to read a table that has a column named as Iceberg's ``_file``."""
HELD, REPLAYED = -1, -2
"""``_arrival`` of rows that were held back, and the highest one of refused records that are tried again, each of which has its own: they
are no records of the cut.
"""
RECONCILED = "~"
"""Between the two positions of a version that deletes a row which a whole snapshot did not bring: of the version before, and of the snapshot."""
BEHIND = "»"
"""In the position of rows that a snapshot without a place in the log has read: behind that of the newest change before it. It sorts behind everything that
stands in positions, so such rows are newer than a delete of that change's row by an earlier snapshot, too.
"""


def numbered(prefix: str, count: int) -> list[str]:
    """``pk_1``, ``pk_2`` ...: key columns of internal tables, independent of the user's names."""
    return [f"{prefix}_{i}" for i in range(1, count + 1)]
