"""What becomes of a record of the input."""

from enum import StrEnum


class Fate(StrEnum):
    """What became of one input record. Every record read has exactly one."""

    APPLIED = "applied"  # changed a used column of a row (or which columns it is known by), made or deleted the row: downstream hears of it
    NOOP = "noop"  # newest of its key, but nothing that any join uses changed (stored where it moves the version or other columns)
    SUPERSEDED = "superseded"  # a newer record of the same key is in the same cut
    DUPLICATE = "duplicate"  # same key and position as a stored version, or as another record of the cut
    STALE = "stale"  # older than the stored version of its key
    QUARANTINED = "quarantined"  # refused, kept aside with reason and coordinates
