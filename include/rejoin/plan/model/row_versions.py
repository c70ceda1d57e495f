"""The table of all versions of a table's rows: what ``as_of="event_time"`` looks up."""

from dataclasses import replace
from typing import Final

from rejoin.plan.model.plan import Column, Table

VALID_FROM: Final = "_valid_from"
"""When the source committed the version: part of the key."""
DELETED: Final = "_gone"
"""Whether the row was deleted then; its other columns are null. Spark refuses to read a table that has a column named as Iceberg's ``_deleted``."""
COLUMNS: Final = (Column(VALID_FROM, "TIMESTAMP"), Column(DELETED, "BOOLEAN"))


def versions(table: Table) -> Table:
    """The table that holds every version of the rows of ``table``, read from the same source."""
    return replace(
        table, name=f"{table.name}__versions", key=(*table.key, VALID_FROM), columns=(*table.columns, *COLUMNS), versions_of=table.name
    )


def unversioned(table: Table) -> Table:
    """The table whose versions ``table`` holds."""
    assert table.versions_of is not None
    return replace(table, name=table.versions_of, key=table.key[:-1], columns=table.columns[: -len(COLUMNS)], versions_of=None)
