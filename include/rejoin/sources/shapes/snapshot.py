"""Snapshots, and files of records, as CSV or JSON lines -> events: every row an upsert at the ordinal of its pin.

A bad row is quarantined with its line. It keeps its key if that is readable; a row whose key is not readable is what stops deletion
by absence, so nothing here drops a row silently: ``line_tally`` checks it of every file.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import CsvFormat, RecordsSource, SnapshotSource
from rejoin.sources.decode.column_values import ColumnConverter
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.proven_lines import Judge, by_shape
from rejoin.sources.decode.record_runs import batches
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.values import Convert, converter, csv_converter
from rejoin.sources.events import MISSING_KEY, Event, EventKind, Layout
from rejoin.sources.formats.json_text import Unsure, json_object, quick
from rejoin.sources.formats.line_tally import Tally
from rejoin.sources.shapes.csv_lines import CsvFile, by_columns
from rejoin.sources.shapes.rows import of_rows

Lines = Iterator[tuple[int, bytes]]
Record = tuple[int, bytes, Any]  # line, raw, of CSV also its columns or the BadRecord that says what is wrong


def position_of(ordinal: int) -> str:
    """The position of every row of a snapshot."""
    return f"{ordinal:020d}"


def decode_csv_pieces(table: Table, ordinal: int, file: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The pieces of a CSV file with header, as it is read -> record batches of ``events_schema(table)``, one row a record."""
    return by_columns(_csv_file(table, ordinal, file, index), pieces)


def _csv_file(table: Table, ordinal: int, file: str, index: int) -> CsvFile:
    source = table.source
    assert isinstance(source, SnapshotSource | RecordsSource)
    convert = {column.name: csv_converter(column.name, str(column.type)) for column in table.columns}
    rows = _Rows(table, ordinal, convert, "csv")
    return CsvFile(file, index, rows.layout, CsvFormat(null=source.null), position_of(ordinal), rows)


def decode_json_pieces(table: Table, ordinal: int, file: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The same of a file of lines, a JSON object each: one row a line."""
    return by_shape(file, index, pieces, _JsonFile(table, ordinal))


class _JsonFile:
    """The decoder of one file of JSON lines. A line says nothing about any other."""

    by_batch = False
    habits = Habits()

    def __init__(self, table: Table, ordinal: int) -> None:
        convert = {c.name: converter(c.name, str(c.type), base64_decimals=False) for c in table.columns}
        self._rows = _JsonRows(table, ordinal, convert, "json")
        self._at, self.layout = position_of(ordinal), self._rows.layout

    def batches(self, file: str, index: int, lines: Lines) -> Iterator[pa.RecordBatch]:
        tally = Tally(file)
        records: Iterator[Record] = ((number, raw, None) for number, raw in tally.lines(lines) if raw.strip() or tally.no_records(1))
        return tally.checked(batches(self.layout, file, index, records, self._rows))

    def judge(self, shape: Shape) -> Judge | None:
        return of_rows(self.layout, self._at, shape)

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[tuple[int, bytes]]) -> list[pa.RecordBatch]:  # noqa: ARG002
        return list(self.batches(file, index, iter(slow)))


class _Rows:
    """Records whose columns are known -> upserts at the position of the snapshot."""

    def __init__(self, table: Table, ordinal: int, convert: dict[str, Convert], source: str) -> None:
        self.layout, self._at = Layout(table), position_of(ordinal)
        self._key = [(column.name, convert[column.name]) for column in self.layout.key]
        self._values = [(column.name, convert[column.name]) for column in self.layout.values]
        self._names = [name for name, _ in (*self._key, *self._values)]
        types = {column.name: str(column.type) for column in table.columns}
        self._whole = [ColumnConverter(types[n], self.layout.schema.field(n).type, convert[n], source) for n in self._names]

    def event(self, record: Record) -> Event:
        line, raw, _ = record
        found: tuple[Any, ...] | None = None
        try:
            row = self._row(record)
            found = _key(row, self._key)
            values = [None if row.get(n) is None else c(row[n]) for n, c in self._values]
            return Event(EventKind.UPSERT, line, found, values, self._at, lines=_lines(raw))
        except BadRecord as bad:
            return self.layout.quarantined(line, bad, raw, found, _lines(raw))

    def raw(self, record: Record) -> bytes:
        return record[1]

    def plain(self, record: Record) -> tuple[Any, ...]:
        row = self._plain_row(record)
        values = tuple(map(row.get, self._names))
        if None in values[: len(self._key)]:
            raise Unsure
        return record[0], _lines(record[1]), *values

    def columns(self, run: Sequence[tuple[Any, ...]]) -> tuple[dict[str, pa.Array], Sequence[int]]:
        lines, counts, *columns = zip(*run, strict=True)
        arrays = {
            name: whole(column, frozenset(map(type, column))) for name, whole, column in zip(self._names, self._whole, columns, strict=True)
        }
        arrays["_lines"] = pa.array(counts, pa.int64())
        arrays["_kind"] = pa.repeat(str(EventKind.UPSERT), len(run))
        arrays["_position"] = pa.repeat(self._at, len(run))
        return arrays, lines

    def _row(self, record: Record) -> dict[str, Any]:
        row: dict[str, Any] | BadRecord = record[2]
        if isinstance(row, BadRecord):
            raise row
        return row

    def _plain_row(self, record: Record) -> dict[str, Any]:
        return self._row(record)


class _JsonRows(_Rows):
    """The same for lines of JSON that are not parsed yet."""

    def _row(self, record: Record) -> dict[str, Any]:
        return json_object(record[1])

    def _plain_row(self, record: Record) -> dict[str, Any]:
        try:
            row = quick(record[1].decode())
        except UnicodeDecodeError:
            raise Unsure from None
        if type(row) is not dict:
            raise Unsure
        return row


def _lines(raw: bytes) -> int:
    """How many lines a record takes."""
    return raw.count(b"\n") + 1


def _key(row: dict[str, Any], columns: Sequence[tuple[str, Convert]]) -> tuple[Any, ...]:
    for name, _ in columns:
        if row.get(name) is None:
            raise BadRecord(MISSING_KEY, f"key column {name!r} is missing or null")
    return tuple(convert(row[name]) for name, convert in columns)
