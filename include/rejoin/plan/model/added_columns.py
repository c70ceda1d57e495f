"""Columns and tables that a plan has beside those that are declared: the place of a record, and the versions of a table's rows.

A stream whose records have no id tells a record from all others by where it was read: a file of records is read once, so a place never comes twice.
The table of all versions of a table's rows is what ``as_of="event_time"`` looks up.
"""

from dataclasses import replace
from typing import Final

from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import RecordsSource

PLACE: Final = Column("record", "STRING")
"""The column that such a stream has beside those of its source: path and first line (in Parquet the row's number), as ``landing/clicks/7.csv:12``."""
VALID_FROM: Final = "_valid_from"
"""When the source committed the version: part of the key."""
DELETED: Final = "_gone"
"""Whether the row was deleted then; its other columns are null. Spark refuses to read a table that has a column named as Iceberg's ``_deleted``."""
VERSION_COLUMNS: Final = (Column(VALID_FROM, "TIMESTAMP"), Column(DELETED, "BOOLEAN"))


def delivered(table: Table) -> Table:
    """The table as its source delivers it: without the place, and then without any key; without a time that is computed."""
    if table.computed_time is not None:
        columns = tuple(c for c in table.columns if c.name != table.event_time)
        table = replace(table, columns=columns, event_time=None, computed_time=None)
    if not table.by_place:
        return table
    assert isinstance(table.source, RecordsSource)
    columns = tuple(c for c in table.columns if c != PLACE)
    return replace(table, key=(), columns=columns, source=replace(table.source, places=False))


def versions(table: Table) -> Table:
    """The table that holds every version of the rows of ``table``, read from the same source."""
    return replace(
        table,
        name=f"{table.name}__versions",
        key=(*table.key, VALID_FROM),
        columns=(*table.columns, *VERSION_COLUMNS),
        versions_of=table.name,
    )


def unversioned(table: Table) -> Table:
    """The table whose versions ``table`` holds."""
    assert table.versions_of is not None
    return replace(table, name=table.versions_of, key=table.key[:-1], columns=table.columns[: -len(VERSION_COLUMNS)], versions_of=None)
