"""A file of change events -> events: of a table its rows, of the table of a table's versions (``plan.model.added_columns``) every version."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.added_columns import DELETED, VALID_FROM, unversioned
from rejoin.plan.model.plan import Table
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.record_runs import OneByOne, batches
from rejoin.sources.events import Event, EventKind, Layout
from rejoin.sources.shapes.debezium.decoder import UNKNOWN_OP, Decoder
from rejoin.sources.shapes.debezium.enveloped import envelopes
from rejoin.sources.shapes.debezium.shapes import committed


def decoder(table: Table) -> "Decoder | _Versions":
    """The decoder of one file."""
    return Decoder(table) if table.versions_of is None else _Versions(table)


class _Versions(OneByOne):
    """Decodes one file into versions: every insert, update and delete is one, valid from when the source committed it.

    A tombstone repeats the delete before it. A truncate, which names no row, is refused.
    """

    by_arrival = False
    habits = Decoder.habits

    def __init__(self, table: Table) -> None:
        self.layout, self._rows = Layout(table), Decoder(unversioned(table))
        self.by_batch = self._rows.by_batch

    def batches(self, file: str, index: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
        records = ((number, raw) for number, raw in lines if not raw.isspace() and raw)
        return batches(self.layout, file, index, records, self)

    def judge(self, shape: Shape) -> Judge | None:
        rows, at = self._rows.judge(shape), committed(envelopes(shape).shape)
        if rows is None or at is None:
            return None
        return replace(rows, columns={**rows.columns, VALID_FROM: at.value, DELETED: "false"}, holds=(*rows.holds, at.holds))

    def judge_columns(self, shape: Shape) -> Judge | None:
        rows, at = self._rows.judge_columns(shape), committed(shape)
        if rows is None or at is None:
            return None
        gone = f"({rows.columns['_kind']}) = {quoted(EventKind.DELETE)}"
        columns = {**rows.columns, "_kind": quoted(EventKind.UPSERT), VALID_FROM: at.value, DELETED: gone}
        return replace(rows, columns=columns, holds=(*rows.holds, at.holds))

    def in_order(self, fast: pa.Table) -> pa.Table:
        return fast

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[tuple[int, bytes]]) -> list[pa.RecordBatch] | None:
        # No version depends on a delete before it.
        return self._rows.decimals.apart(fast, slow, lambda: self.batches(file, index, iter(slow)))

    def raw(self, record: tuple[int, bytes]) -> bytes:
        return record[1]

    def event(self, record: tuple[int, bytes]) -> Event:
        number, raw = record
        event = self._rows.event(record)
        try:
            if event.kind is EventKind.TRUNCATE:
                raise BadRecord(UNKNOWN_OP, "a truncate names no row whose versions it could end")
            if event.kind not in (EventKind.UPSERT, EventKind.DELETE):
                return event._replace(key=(*event.key, None), values=(*event.values, None))
            at = self._rows.committed(raw)
        except BadRecord as bad:
            return self.layout.quarantined(number, bad, raw, (*event.key, None))
        if at is None:
            return Event(EventKind.SKIPPED, number, self.layout.no_key, self.layout.no_values)
        deleted = event.kind is EventKind.DELETE
        return event._replace(kind=EventKind.UPSERT, key=(*event.key, at), values=(*event.values, deleted), old_key=None)
