"""Where an event stands in, or after, a snapshot (``source.snapshot``), as ``events`` has it in ``_snapshot``."""

from typing import Any

from rejoin.sources.events import ReadMark
from rejoin.sources.shapes.debezium import positions

FIRST, LAST, ADDED = ("first", "first_in_data_collection"), ("last", "last_in_data_collection"), "incremental"
"""Debezium's words (SnapshotRecord.java). Of a table's only row it writes ``first`` if the table is the first of several, else one of the others' ends."""
ORIGIN = ("name", "db", "schema", "table")
"""What names a captured table, as far as a connector says it."""


def mark(source: Any, *, read: bool) -> str | None:
    """The mark of an event, from its ``source`` block. Of those of op r (``read``), what says neither ``first`` nor ``last`` is some row of its snapshot:
    ``true``, nothing, a word of a newer connector.
    """
    if not read:
        sequence = source.get("sequence") if type(source) is dict else None
        return ReadMark.AFTER if type(sequence) is str and sequence.startswith(positions.FIRST) else None
    said = source.get("snapshot") if type(source) is dict else None
    if type(said) is not str:
        return ReadMark.ROW
    if said in FIRST or said in LAST:
        origin = ".".join(part for part in map(source.get, ORIGIN) if type(part) is str)
        return f"{ReadMark.FIRST if said in FIRST else ReadMark.LAST} {origin}"
    return ReadMark.ADDED if said == ADDED else ReadMark.ROW
