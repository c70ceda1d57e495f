"""What a dialect needs whose records are lines, each of which says all that it says by itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import FeedSource
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.record_runs import batches
from rejoin.sources.decode.values import converter
from rejoin.sources.events import MISSING_KEY, Event, EventKind, Layout
from rejoin.sources.formats.json_text import Unsure, json_object

__all__ = ["Event", "LineDialect", "json_object", "positioned"]


class LineDialect(ABC):
    """The decoder of one file of a table. A dialect is a class of this kind, whose ``read`` says what a line means.

    Attributes:
        only: what the topology chooses records by; None: all.
        layout: the table's columns.
    """

    by_batch = False
    packed: tuple[str, ...] = ()

    def __init__(self, table: Table) -> None:
        assert isinstance(table.source, FeedSource)
        self.only, self.layout = table.source.only, Layout(table)
        self._convert = {c.name: converter(c.name, str(c.type), base64_decimals=False) for c in table.columns}

    @abstractmethod
    def read(self, line: int, raw: bytes) -> Event:
        """The event of a line that is not blank, made by one of the methods below.

        Raises:
            BadRecord: the line cannot be applied. It is quarantined with that code and reason.
        """

    def upsert(self, line: int, row: Mapping[str, Any], position: str) -> Event:
        """The row has these values now (as JSON has them). ``position``: sorts as text in the order of the source's log (``positioned``)."""
        values = [None if row.get(c.name) is None else self._convert[c.name](row[c.name]) for c in self.layout.values]
        absent = [name for name in self.layout.required if name not in row]
        return Event(EventKind.UPSERT, line, self._key(row), values, position, absent=absent)

    def delete(self, line: int, row: Mapping[str, Any], position: str) -> Event:
        """The row with this key is gone."""
        return Event(EventKind.DELETE, line, self._key(row), self.layout.no_values, position)

    def skipped(self, line: int) -> Event:
        """The line is not about rows of this table; it is only counted."""
        return Event(EventKind.SKIPPED, line, self.layout.no_key, self.layout.no_values)

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        for column in self.layout.key:
            if row.get(column.name) is None:
                raise BadRecord(MISSING_KEY, f"key column {column.name!r} is missing or null")
        return tuple(self._convert[c.name](row[c.name]) for c in self.layout.key)

    # --- what the reading of files asks of it ---------------------------------------------------------------------------

    def batches(self, file: str, index: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
        records = ((number, raw) for number, raw in lines if not raw.isspace() and raw)
        return batches(self.layout, file, index, records, self)

    def event(self, record: tuple[int, bytes]) -> Event:
        try:
            return self.read(*record)
        except BadRecord as bad:
            return self.layout.quarantined(record[0], bad, record[1])

    def raw(self, record: tuple[int, bytes]) -> bytes:
        return record[1]

    def plain(self, record: tuple[int, bytes]) -> NoReturn:  # noqa: ARG002 -- no line is read by whole columns
        raise Unsure

    def columns(self, run: object) -> NoReturn:  # noqa: ARG002 -- likewise
        raise Unsure

    def judge(self, shape: Shape) -> None:  # noqa: ARG002 -- no shape of lines is known to mean the same
        return None

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[tuple[int, bytes]]) -> None:  # noqa: ARG002 -- likewise
        return None


def positioned(*parts: int) -> str:
    """A position of numbers that are not negative, the first of which says most."""
    return ".".join(f"{part:020d}" for part in parts)
