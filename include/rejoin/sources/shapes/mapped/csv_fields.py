"""Records of CSV -> their fields as texts."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.sources import CsvFormat
from rejoin.sources.decode.record_runs import OneByOne
from rejoin.sources.events import Event, EventKind, Layout, raw_text
from rejoin.sources.formats.encoded_text import as_utf8
from rejoin.sources.shapes.csv_lines import CsvFile, by_columns


def csv_fields(layout: Layout, written: CsvFormat, file: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The pieces of a file -> batches of records, each with its fields and its text. Raises as ``csv_lines.by_columns`` and ``as_utf8`` do.

    Args:
        layout: of the fields, all of them texts.
        written: how the file is written.
        file: path as pinned.
        index: place of the file in the pin.
        pieces: the bytes.
    """
    return by_columns(CsvFile(file, index, layout, written, None, TextFields(layout)), as_utf8(pieces, written.encoding, file))


class TextFields(OneByOne):
    """Records of texts, one by one (``decode.record_runs.Format``): of CSV those that are in no plain line, of installed formats all."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def event(self, record: tuple[int, bytes, Mapping[str, Any] | BadRecord | None]) -> Event:
        line, raw, row = record
        lines = raw.count(b"\n") + 1
        assert row is not None  # that of a blank line, which is no record
        if isinstance(row, BadRecord):
            return self._layout.quarantined(line, row, raw, None, lines)
        absent = [name for name in self._layout.names if name not in row]
        values: list[Any] = [row.get(name) for name in self._layout.names]
        return Event(EventKind.UPSERT, line, (), values, raw=raw_text(raw), lines=lines, absent=absent)

    def raw(self, record: tuple[int, bytes, object]) -> bytes:
        return record[1]
