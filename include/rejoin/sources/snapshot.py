"""Snapshots as CSV or JSON lines -> events: every row an upsert at the snapshot's ordinal.

A bad row is quarantined with its line. It keeps its key if that is readable; a row whose key is not readable is what stops deletion
by absence, so nothing here drops a row silently. In CSV an empty field and a quoted empty text look the same to ``csv``; the
source's ``null`` text (default: empty) is what becomes null.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model import SnapshotSource, Table
from rejoin.sources.events import BATCH_ROWS, Event, EventKind, Layout, batches
from rejoin.sources.files import corrupt
from rejoin.sources.jsontext import BAD_JSON, loads
from rejoin.sources.values import Convert, converter, csv_converter

BAD_CSV, MISSING_KEY = "BAD_CSV", "MISSING_KEY"
Lines = Iterator[tuple[int, bytes]]
Record = tuple[int, bytes, "dict[str, Any] | BadRecord"]  # line, raw, columns or what is wrong


def position_of(ordinal: int) -> str:
    """The position of every row of a snapshot."""
    return f"{ordinal:020d}"


def decode_csv(table: Table, ordinal: int, file: str, index: int, lines: Lines) -> Iterator[pa.RecordBatch]:
    """Numbered lines of a CSV file with header -> record batches of ``events_schema(table)``, one row a record."""
    source = table.source
    assert isinstance(source, SnapshotSource)
    convert = {column.name: csv_converter(column.name, str(column.type)) for column in table.columns}
    return _decode(table, ordinal, file, index, _csv_records(lines, source.null, file), convert)


def decode_json(table: Table, ordinal: int, file: str, index: int, lines: Lines) -> Iterator[pa.RecordBatch]:
    """Numbered lines, a JSON object each -> record batches of ``events_schema(table)``, one row a line."""
    convert = {c.name: converter(c.name, str(c.type), base64_decimals=False) for c in table.columns}
    return _decode(table, ordinal, file, index, _json_records(lines), convert)


def _decode(
    table: Table, ordinal: int, file: str, index: int, records: Iterator[Record], convert: dict[str, Convert]
) -> Iterator[pa.RecordBatch]:
    layout, at = Layout(table), position_of(ordinal)
    key = [(column.name, convert[column.name]) for column in layout.key]
    values = [(column.name, convert[column.name]) for column in layout.values]
    group: list[Record] = []

    def event(line: int, raw: bytes, row: dict[str, Any] | BadRecord) -> Event:
        found: tuple[Any, ...] | None = None
        try:
            if isinstance(row, BadRecord):
                raise row
            found = _key(row, key)
            return Event(EventKind.UPSERT, line, found, [None if row.get(n) is None else c(row[n]) for n, c in values], at)
        except BadRecord as bad:
            return layout.quarantined(line, bad, raw, found)

    def groups() -> Iterator[list[Event]]:
        while True:
            group[:] = islice(records, BATCH_ROWS)
            if not group:
                return
            yield [event(*record) for record in group]

    return batches(layout, file, index, groups(), lambda i: group[i][1])


def _key(row: dict[str, Any], columns: Sequence[tuple[str, Convert]]) -> tuple[Any, ...]:
    for name, _ in columns:
        if row.get(name) is None:
            raise BadRecord(MISSING_KEY, f"key column {name!r} is missing or null")
    return tuple(convert(row[name]) for name, convert in columns)


def _json_records(lines: Lines) -> Iterator[Record]:
    for number, raw in lines:
        if not raw.strip():
            continue
        try:
            row = loads(raw.decode())
            yield number, raw, row if type(row) is dict else BadRecord(BAD_JSON, "the line is not a JSON object")
        except UnicodeDecodeError:
            yield number, raw, BadRecord(BAD_JSON, "the line is not UTF-8")
        except BadRecord as bad:
            yield number, raw, bad


class _Feed:
    """Lines for ``csv.reader`` that remember which lines belong to the record being read."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.taken: list[bytes] = []
        self.first = 0
        self.utf8 = True

    def start(self) -> None:
        self.taken, self.first, self.utf8 = [], 0, True

    def __iter__(self) -> Iterator[str]:
        for number, raw in self._lines:
            if not self.taken:
                self.first = number
            self.taken.append(raw)
            try:
                yield raw.decode() + "\n"
            except UnicodeDecodeError:
                self.utf8 = False
                yield raw.decode("utf-8", "replace") + "\n"


def _csv_records(lines: Lines, null: str, file: str) -> Iterator[Record]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the default refuses fields over 128 KiB
    feed = _Feed(lines)
    reader = csv.reader(iter(feed), strict=True)
    try:
        header = next(reader, None)
    except csv.Error:
        raise corrupt(file, "its first line is no CSV header") from None
    if header is None:
        return
    while True:
        feed.start()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield feed.first, b"\n".join(feed.taken), BadRecord(BAD_CSV, f"the record is no CSV: {error}")
            continue
        if not fields:
            continue  # a blank line
        yield feed.first, b"\n".join(feed.taken), _csv_row(header, fields, null, feed.utf8)


def _csv_row(header: list[str], fields: list[str], null: str, utf8: bool) -> dict[str, Any] | BadRecord:
    if not utf8:
        return BadRecord(BAD_CSV, "the record is not UTF-8")
    if len(fields) != len(header):
        return BadRecord(BAD_CSV, f"the record has {len(fields)} fields, the header {len(header)}")
    return {name: None if field == null else field for name, field in zip(header, fields, strict=True)}
