"""Streams whose records have no id of their own: what tells a record from all others is where it was read.

A file of records is read once, so a place never comes twice.
"""

from dataclasses import replace
from typing import Final

from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import RecordsSource

PLACE: Final = Column("record", "STRING")
"""The column that such a stream has beside those of its source: path and first line (in Parquet the row's number), as ``landing/clicks/7.csv:12``."""


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
