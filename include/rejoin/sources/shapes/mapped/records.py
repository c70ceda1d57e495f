"""Records as they were read -> events: those that are proven by columns, every other one by itself. The same events either way."""

from collections.abc import Callable, Iterator
from collections.abc import Mapping as Row
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.plan.sql.nested import is_nested
from rejoin.sources.decode.proven_rows import AT
from rejoin.sources.decode.record_runs import NO_UNICODE, encodable
from rejoin.sources.decode.values import csv_converter
from rejoin.sources.events import MISSING_KEY, Event, EventKind, ReadMark
from rejoin.sources.shapes.mapped import positions
from rejoin.sources.shapes.mapped.mapping import Made, Mapping
from rejoin.sources.shapes.mapped.statement import Statement, run

NOT_COMPUTED = "VALUE_EXPRESSION"
"""Quarantine code of a record for which SQL of the declaration has no value."""
_SPANS = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
Raw = Callable[[pa.RecordBatch], list[str]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Records:
    """Makes events of the records of one file.

    Args:
        mapping: what is made of them.
        statement: for records of such a file.
        file: path as pinned.
        index: place of the file in the pin.
    """

    def __init__(self, mapping: Mapping, statement: Statement, file: str, index: int) -> None:
        self._mapping, self._layout, self._file, self._index = mapping, mapping.layout, file, index
        self._fast, self._slow, self._whole = statement.events(), statement.computed(), statement.whole
        self._place = "" if mapping.order or mapping.position is not None else positions.of_place(_below(file, mapping.source.path))
        self._documents = {
            column.name: csv_converter(column.name, str(column.type))
            for column, made in mapping.columns
            if is_nested(str(column.type)) and made.is_text and column.name not in self._whole
        }
        self._judge = [_Value(column.name, str(column.type), made, column.name in self._whole) for column, made in mapping.columns]

    def events(self, records: pa.RecordBatch, raw: Raw) -> pa.RecordBatch:
        """Records with their fields, ``_line``, ``_lines``, ``_absent``, and what refused them as they were read -> events, in their order.

        Args:
            records: the records.
            raw: the texts of some of them, as quarantine keeps them.
        """
        fields = [name for name in self._mapping.reads if name in records.schema.names]
        numbered = pa.Table.from_batches([records.select(fields).append_column(AT, pa.array(np.arange(records.num_rows)))])
        read = pc.equal(records["_kind"], str(EventKind.UPSERT))
        found = run(self._fast, numbered)
        proven = pc.and_(found["_proven"].combine_chunks(), read).to_numpy(zero_copy_only=False).copy()
        for name in self._documents:
            found = self._with_document(name, found, proven)
        at = np.flatnonzero(proven)
        if len(at) == records.num_rows:
            return self._proven(found, records)
        slow = np.flatnonzero(~proven)
        events = self._careful(records.take(pa.array(slow)), numbered.take(pa.array(slow)), raw)
        if not len(at):
            return events
        fast = self._proven(found.take(pa.array(at)), records.take(pa.array(at)))
        return pa.concat_batches([fast, events]).take(pa.array(np.argsort(np.concatenate([at, slow]), kind="stable")))

    def _with_document(self, name: str, found: pa.Table, proven: Flags) -> pa.Table:
        """A nested column instead of the texts of JSON that it is made of. Rows whose text is refused are not ``proven`` any more."""
        convert, texts, values = self._documents[name], found[name].to_pylist(), [None] * found.num_rows
        for i in np.flatnonzero(proven).tolist():
            try:
                values[i] = None if texts[i] is None else convert(texts[i])
            except BadRecord:
                proven[i] = False
        try:
            column = pa.array(values, self._layout.schema.field(name).type)
        except UnicodeEncodeError:  # of a text within one of them
            proven[:] = False
            column = pa.nulls(found.num_rows, self._layout.schema.field(name).type)
        return found.set_column(found.schema.get_field_index(name), name, column)

    def _proven(self, found: pa.Table, records: pa.RecordBatch) -> pa.RecordBatch:
        arrays = {
            n: found[n].combine_chunks().cast(self._layout.schema.field(n).type)
            for n in found.column_names
            if n in self._layout.schema.names
        }
        upsert, delete = str(EventKind.UPSERT), str(EventKind.DELETE)
        gone = found["_gone"].combine_chunks() if "_gone" in found.column_names else None
        arrays["_kind"] = pa.repeat(upsert, len(records)) if gone is None else pc.if_else(gone, delete, upsert)
        if self._mapping.position is not None:
            arrays["_position"] = pa.repeat(self._mapping.position, len(records))
        elif self._place:
            arrays["_position"] = pc.binary_join_element_wise(self._place, pc.utf8_lpad(records["_line"].cast(pa.string()), 20, "0"), "")
        arrays["_lines"] = records["_lines"]
        if pc.any(pc.greater(pc.list_value_length(records["_absent"]), 0)).as_py():
            lacking = [
                [] if kind == delete else self._mapping.lacking(a)
                for kind, a in zip(arrays["_kind"].to_pylist(), records["_absent"].to_pylist(), strict=True)
            ]
            arrays["_absent"] = pa.array(lacking, pa.list_(pa.string()))
        return self._layout.arranged(arrays, records["_line"], self._file, self._index)

    # --- one by one -----------------------------------------------------------------------------------------------------

    def _careful(self, records: pa.RecordBatch, fields: pa.Table, raw: Raw) -> pa.RecordBatch:
        own, texts = records.select(["_line", "_lines", "_absent", "_kind", "_code", "_reason"]).to_pylist(), raw(records)
        events = [self._event(*each) for each in zip(run(self._slow, fields).to_pylist(), own, texts, strict=True)]
        try:
            return self._layout.batch(events, self._file, self._index)
        except UnicodeEncodeError:  # of a text within a document of JSON
            for i, event in enumerate(events):
                if not encodable(event):
                    events[i] = self._layout.quarantined(event.line, NO_UNICODE, texts[i].encode(), event.key, event.lines)
            return self._layout.batch(events, self._file, self._index)

    def _event(self, row: Row[str, Any], record: Row[str, Any], text: str) -> Event:
        line, lines, key = record["_line"], record["_lines"], None
        try:
            if record["_kind"] == EventKind.QUARANTINED:
                raise BadRecord(record["_code"], record["_reason"])
            key = tuple(self._key(row))
            if record["_kind"] == EventKind.DELETE:  # by a message without value, which has no fields to say its position either
                return Event(EventKind.DELETE, line, key, self._layout.no_values, self._mapping.position, lines=lines)
            gone, position = self._is_gone(row), self._position(row, line)
            read = ReadMark.ROW if row.get("l") else None
            if gone:
                return Event(EventKind.DELETE, line, key, self._layout.no_values, position, lines=lines, snapshot=read)
            values = [self._judge[i](row, i) for i in range(len(self._layout.key), len(self._judge))]
            absent = self._mapping.lacking(record["_absent"])
            return Event(EventKind.UPSERT, line, key, values, position, lines=lines, absent=absent, snapshot=read)
        except BadRecord as bad:
            return self._layout.quarantined(line, bad, text.encode(), key, lines)

    def _key(self, row: Row[str, Any]) -> Iterator[Any]:
        for i, column in enumerate(self._layout.key):
            value = self._judge[i](row, i)
            if value is None:
                raise BadRecord(MISSING_KEY, f"key column {column.name!r} is missing or null")
            yield value

    def _is_gone(self, row: Row[str, Any]) -> bool:
        made = self._mapping.deleted
        if made is None:
            return False
        if row["bad"] or row["d"] is None:
            said = "cannot be computed" if row["bad"] else "is neither true nor false, but null"
            raise BadRecord("UNKNOWN_OP", f"{made.what} {said}")
        return bool(row["d"])

    def _position(self, row: Row[str, Any], line: int) -> str:
        if self._mapping.position is not None:
            return self._mapping.position
        if self._place:
            return f"{self._place}{line:020d}"
        return positions.SEPARATOR.join(self._part(made, row[f"o{i}"], row[f"no{i}"]) for i, made in enumerate(self._mapping.order))

    def _part(self, made: Made, text: str | None, failed: bool) -> str:  # noqa: FBT001 -- a column of a row
        if failed or text is None:
            raise BadRecord(positions.UNKNOWN_POSITION, f"{made.what} {'cannot be computed' if failed else 'is null'}")
        if made.is_text and made.field is None:
            if not text:
                raise BadRecord(positions.UNKNOWN_POSITION, f"{made.what} is empty")
            return text
        return positions.of_text(text, made.what)


class _Value:
    """Judges the values of one column."""

    def __init__(self, name: str, type_: str, made: Made, whole: bool) -> None:  # noqa: FBT001 -- of the class next door
        self._name, self._made = name, made
        self._convert = csv_converter(name, type_) if made.is_text and not whole else None
        self._spans = self._convert is None and type_ in _SPANS

    def __call__(self, row: Row[str, Any], i: int) -> Any:
        value = row[f"x{i}"]
        if row[f"n{i}"]:
            raise BadRecord(NOT_COMPUTED, f"{self._made.what} cannot be computed")
        if row.get(f"r{i}"):
            raise BadRecord("VALUE_RANGE", f"column {self._name!r}: the date lies outside the years 0001 to 9999")
        if value is None:
            return None
        return value if self._convert is None else self._convert(value)


def _below(file: str, path: str) -> str:
    """The path of a file as seen from that of its source, so that the order stays when a source is moved."""
    front = path.rstrip("/") + "/"
    return file.removeprefix(front.removeprefix("./")) if file != path else file.rsplit("/", 1)[-1]
