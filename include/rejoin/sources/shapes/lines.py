"""What a dialect needs whose records are lines, each of which says all that it says by itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import FeedSource
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import TEXT, Leaf, Part, Shape, at, kind_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.record_runs import NO_UNICODE, encodable
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.sql_values import Typed, typed
from rejoin.sources.decode.values import Convert, converter
from rejoin.sources.events import BATCH_ROWS, MISSING_KEY, MOST_CHANGES, Event, EventKind, Layout
from rejoin.sources.formats.json_text import json_object
from rejoin.sources.shapes.row_changes import EVERY, RowChanges, judged

__all__ = ["Event", "LineDialect", "json_object", "positioned"]

Numbered = tuple[int, bytes]


class LineDialect(ABC):
    """The decoder of one file of a table. A dialect is a class of this kind, whose ``read`` says what a line means.

    Attributes:
        only: what the topology chooses records by; None: all.
        layout: the table's columns.
        by_arrival: the events have no position of their own: of two of one key, the one that comes later in the feed counts.
    """

    by_arrival = False
    by_batch = False
    habits = Habits()

    def __init__(self, table: Table) -> None:
        assert isinstance(table.source, FeedSource)
        self.only, self.layout = table.source.only, Layout(table)
        self._convert = {c.name: self.convert(c.name, str(c.type)) for c in table.columns}

    @abstractmethod
    def read(self, line: int, raw: bytes) -> Event | Sequence[Event]:
        """The events of a line that is not blank, at least one, made by the methods below. All are applied, or none.

        Raises:
            BadRecord: the line cannot be applied. It is quarantined with that code and reason.
        """

    def convert(self, column: str, type_: str) -> Convert:
        """What makes, of a value as ``row`` has it, one of a declared type; raises BadRecord. Here: of the values of JSON."""
        return converter(column, type_, base64_decimals=False)

    def upsert(self, line: int, row: Mapping[str, Any], position: str | None = None, *, unchanged: bool = False) -> Event:
        """The row has these values now.

        Args:
            line: the line's number.
            row: by the names of columns.
            position: sorts as text in the order of the source's log (``positioned``); None where order is arrival.
            unchanged: a column that the row lacks has the value that it had; else the run stops, unless the table says that it is optional.
        """
        values = [None if row.get(c.name) is None else self._convert[c.name](row[c.name]) for c in self.layout.values]
        lacking = [column.name for column in self.layout.values if column.name not in row]
        if unchanged:
            return Event(EventKind.UPSERT, line, self._key(row), values, position, missing=lacking)
        absent = [name for name in self.layout.required if name in lacking]
        return Event(EventKind.UPSERT, line, self._key(row), values, position, absent=absent)

    def delete(self, line: int, row: Mapping[str, Any], position: str | None = None) -> Event:
        """The row with this key is gone."""
        return Event(EventKind.DELETE, line, self._key(row), self.layout.no_values, position)

    def truncate(self, line: int, position: str | None = None) -> Event:
        """All rows are gone that are older."""
        return Event(EventKind.TRUNCATE, line, self.layout.no_key, self.layout.no_values, position)

    def skipped(self, line: int) -> Event:
        """The line is not about rows of this table; it is only counted."""
        return Event(EventKind.SKIPPED, line, self.layout.no_key, self.layout.no_values)

    def changed_key(self, row: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any] | None:
        """The key that a row had before an update, if it had another one. ``old``: earlier values, of some columns at least."""
        before = {c.name: old.get(c.name, row.get(c.name)) for c in self.layout.key}
        return None if all(row.get(name) == value for name, value in before.items()) else before

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        for column in self.layout.key:
            if row.get(column.name) is None:
                raise BadRecord(MISSING_KEY, f"key column {column.name!r} is missing or null")
        return tuple(self._convert[c.name](row[c.name]) for c in self.layout.key)

    # --- what rejoin's own dialects say besides, in SQL, so that most of their lines are read by columns; not a part of what others use ----------

    def plainly(self, shape: Shape) -> RowChanges | None:  # noqa: ARG002 -- where nothing is said, all lines are read one by one
        """What lines of a shape say, where ``read`` understands it so beyond doubt."""
        return None

    def typed(self, part: Part, written: str, type_: str) -> Typed | None:
        """What ``convert`` makes of a value where that is beyond doubt; None if it is not told. ``part``: the shape of the value; ``written``: SQL of it."""
        return typed(part.kind, written, type_, numbers=True) if isinstance(part, Leaf) else None

    # --- what the reading of files asks of it ---------------------------------------------------------------------------

    def batches(self, file: str, index: int, lines: Iterator[Numbered]) -> Iterator[pa.RecordBatch]:
        records = ((number, raw) for number, raw in lines if not raw.isspace() and raw)
        while group := list(islice(records, BATCH_ROWS)):
            events = [event for record in group for event in self._events(record)]
            try:
                yield self.layout.batch(events, file, index)
            except UnicodeEncodeError:
                yield self.layout.batch([event for record in group for event in self._encodable_events(record)], file, index)

    def _events(self, record: Numbered) -> Sequence[Event]:
        try:
            found = self.read(*record)
            if isinstance(found, Event):
                return (found,)
            if len(found) > MOST_CHANGES:
                raise BadRecord("TOO_MANY_ROWS", f"the record has more than {MOST_CHANGES} changes")
            return [event._replace(nth=nth) for nth, event in enumerate(found)]
        except BadRecord as bad:
            return (self.layout.quarantined(record[0], bad, record[1]),)

    def _encodable_events(self, record: Numbered) -> Sequence[Event]:
        events = self._events(record)
        return events if all(map(encodable, events)) else (self.layout.quarantined(record[0], NO_UNICODE, record[1]),)

    def judge(self, shape: Shape) -> Judge | None:
        said, tables = self.plainly(shape), self.habits.tables
        if said is None or any(kind_at(shape.root, (name,)) != TEXT for name in tables):
            return None
        named = " || '.' || ".join(at("j", (name,)) for name in tables)
        of_table = EVERY if self.only is None else f"{named} = {quoted(self.only)}"
        return judged(self.layout, of_table, shape, said, self.typed)

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[Numbered]) -> list[pa.RecordBatch] | None:  # noqa: ARG002
        return list(self.batches(file, index, iter(slow)))  # a line says nothing about any other


def positioned(*parts: int) -> str:
    """A position of numbers that are not negative, the first of which says most."""
    return ".".join(f"{part:020d}" for part in parts)
