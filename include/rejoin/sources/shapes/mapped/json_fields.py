"""Lines of JSON -> their fields as texts: a number as it is written, true and false in letters, what a nested column is made of as JSON."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import FLAG, NULL, NUMBER, TEXT, WHOLE, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.record_runs import OneByOne, batches
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.events import Event, EventKind, raw_text
from rejoin.sources.formats.json_text import Number, json_members, written
from rejoin.sources.formats.line_tally import Tally
from rejoin.sources.shapes.mapped.mapping import Mapping

Line = tuple[int, bytes]
AS_TEXT = {TEXT: "{}", NUMBER: "{}", WHOLE: "CAST({} AS VARCHAR)", FLAG: "CAST({} AS VARCHAR)", NULL: "CAST(NULL AS VARCHAR)"}
"""SQL of the text of a value, by its kind."""
RAW = "left(line, length(line) - 1)"
"""SQL of the text of a line of a shape."""


def texts(of: Sequence[str]) -> str:
    """SQL of a list of texts."""
    return f"CAST([{', '.join(map(quoted, of))}] AS VARCHAR[])"


class JsonFields(OneByOne):
    """The decoder of one file (``decode.proven_lines.LineDecoder``): every line an event whose columns are the fields of a mapping, with its text."""

    by_batch = False
    habits = Habits()

    def __init__(self, mapping: Mapping) -> None:
        self.layout, self.documents = mapping.raw_layout(), mapping.documents

    def batches(self, file: str, index: int, lines: Iterator[Line]) -> Iterator[pa.RecordBatch]:
        tally = Tally(file)
        records = (line for line in tally.lines(lines) if line[1].strip() or tally.no_records(1))
        return tally.checked(batches(self.layout, file, index, records, self))

    def judge(self, shape: Shape) -> Judge | None:
        columns, absent = {"_raw": RAW}, []
        for name in self.layout.names:
            kind = kind_at(shape.root, (name,))
            if kind is not None:
                columns[name] = AS_TEXT[kind].format(at("j", (name,)))
            elif part_at(shape.root, (name,)) is not None:  # an object
                return None
            else:
                columns[name] = "CAST(NULL AS VARCHAR)"
                absent.append(name)
        columns["_absent"] = texts(absent)
        return Judge(columns, ())

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[Line]) -> list[pa.RecordBatch]:  # noqa: ARG002
        return list(self.batches(file, index, iter(slow)))

    # --- one by one ----------------------------------------------------------------------------------------------------

    def event(self, record: Line) -> Event:
        line, raw = record
        try:
            members = json_members(raw)
            values = [field_text(name, members.get(name), self.documents) for name in self.layout.names]
        except BadRecord as bad:
            return self.layout.quarantined(line, bad, raw)
        absent = [name for name in self.layout.names if name not in members]
        return Event(EventKind.UPSERT, line, (), values, raw=raw_text(raw), absent=absent)

    def raw(self, record: Line) -> bytes:
        return record[1]


def field_text(name: str, value: Any, documents: Collection[str] = ()) -> str | None:
    """The text of a member as ``json_members`` gives it.

    Raises:
        BadRecord: it is an object or an array, and the field is none of ``documents``.
    """
    if value is None or type(value) is str:
        return value
    if type(value) is Number:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if name in documents:
        return written(value)
    raise BadRecord(
        "VALUE_TYPE", f"field {name!r} holds {'an object' if type(value) is dict else 'an array'}, where a single value is read"
    )
