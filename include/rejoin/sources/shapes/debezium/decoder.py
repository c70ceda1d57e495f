"""Debezium change events as JSON lines -> events. Pure: no files, no clock, the same lines always give the same events.

A line is a message ``{"key", "value", "headers"[, "topic"]}``, whose key and value are JSON text (as Kafka holds them), objects or null, with or
without schema; or its value alone (``message``). What becomes what:

| value | event |
|---|---|
| op c, u, r with ``after`` | upsert; r at rank 0 of its position (see ``positions``) |
| op d | delete by key |
| null (tombstone) | delete by key, at the position of the delete before it (see below); skipped where the line is bare: the delete is a line of its own |
| op t | truncate |
| op m, heartbeat, BEGIN/END of a transaction, schema change, a line of another topic | skipped |
| anything else | quarantined, never guessed |

A tombstone has no position of its own: if the event before it of the same key in the same file is a delete, it takes that position,
so that it counts as a duplicate; otherwise its position is null.

The key comes from the Kafka key; columns that it lacks come from ``after``, those of a delete from ``before``. No other column is ever read
from ``before``: under REPLICA IDENTITY DEFAULT it holds false zeros. Without a Kafka key an update whose ``before`` has another key is
quarantined, because it would leave the old row behind (Debezium writes a delete and an insert). A message without ``topic`` belongs to every
topic, a bare envelope to the one that its ``source`` names. The placeholder of an unchanged TOAST value is recognised as text, and as base64 or hex of its bytes; a real value that
equals the placeholder cannot be told apart from it (Debezium's own limit).
"""

import base64
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.plan.model.durations import MAX_MICROS, MIN_MICROS
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.record_runs import batches
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.values import decimal_of
from rejoin.sources.events import MISSING_KEY, Event, EventKind, Layout
from rejoin.sources.shapes.debezium.decimals import Decimals
from rejoin.sources.shapes.debezium.deletes import LastDeletes
from rejoin.sources.shapes.debezium.envelope import Converters, Readers, Unwrapper
from rejoin.sources.shapes.debezium.enveloped import envelopes
from rejoin.sources.shapes.debezium.marks import mark
from rejoin.sources.shapes.debezium.message import Message, is_bookkeeping, is_of, message
from rejoin.sources.shapes.debezium.plain import PlainEvents
from rejoin.sources.shapes.debezium.positions import position
from rejoin.sources.shapes.debezium.shapes import of_columns, of_events, texts_of

_KINDS = dict.fromkeys("cur", EventKind.UPSERT) | {"d": EventKind.DELETE, "t": EventKind.TRUNCATE, "m": EventKind.SKIPPED}
MISSING_AFTER, TOAST_KEY, UNKNOWN_OP = "MISSING_AFTER", "TOAST_KEY", "UNKNOWN_OP"
UNKNOWN_TIME = "UNKNOWN_TIME"


def placeholders(text: str) -> frozenset[str]:
    """All texts that stand for an unchanged value. ``hex:...`` is Debezium's way to configure bytes as placeholder."""
    octets = text.encode()
    if text.startswith("hex:"):
        with suppress(ValueError):  # not hexadecimal: then it is a plain text
            octets = bytes.fromhex(text[4:])
    encoded = {base64.b64encode(octets).decode(), base64.urlsafe_b64encode(octets).decode(), octets.hex()}
    return frozenset({text, octets.decode("utf-8", "replace"), *encoded})


class Decoder:
    """Decodes one file; remembers, per Kafka key, the position of a delete that a tombstone may follow."""

    by_arrival = False
    habits = Habits(packed=("key", "value"))

    def __init__(self, table: Table) -> None:
        source = table.source
        assert isinstance(source, DebeziumSource)
        self.layout = Layout(table)
        self._source, self._topic = source, source.topic
        self._same_key = all(column.type in ("INT", "BIGINT", "STRING") for column in self.layout.key)
        self._placeholders = placeholders(source.placeholder)
        self._keys = Unwrapper(table, envelope=False)
        self._values = Unwrapper(table, envelope=True)
        self._old_keys = Unwrapper(table, envelope=False)
        self._deleted_at, self._keyed = LastDeletes(), True
        readers = zip(self.layout.values, self._values.readers(has_schema=False).whole_values, strict=True)
        seen = {column.name: whole.seen for column, whole in readers if decimal_of(str(column.type))}
        self.decimals, self.by_batch = Decimals(seen), bool(seen)
        fast = PlainEvents(self.layout, self._topic, self._placeholders, self._keys, self._values, self._deleted_at)
        self.plain, self.columns = fast.plain, fast.columns

    def batches(self, file: str, index: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
        records = ((number, raw) for number, raw in lines if not raw.isspace() and raw)
        return batches(self.layout, file, index, records, self)

    def judge(self, shape: Shape) -> Judge | None:
        found = envelopes(shape)
        self.decimals.texts = texts_of(found.shape)
        judge = of_events(self.layout, self._source, self._placeholders, found.shape)
        return None if judge is None else replace(judge, holds=(*judge.holds, *found.holds), given=found.given)

    def judge_columns(self, shape: Shape) -> Judge | None:
        """The same of records that come as columns."""
        self._keyed = "value" in shape.root.members
        return of_columns(self.layout, self._source, self._placeholders, shape)

    def in_order(self, fast: pa.Table) -> pa.Table:
        """Proven events of such records that follow each other, with the positions of tombstones."""
        return self._deleted_at.in_order(fast, [c.name for c in self.layout.key]) if self._keyed else fast

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[tuple[int, bytes]]) -> list[pa.RecordBatch] | None:
        """What is remembered from line to line: how texts of decimals are written, and where a row was deleted."""
        before, kept = dict(self._deleted_at), self.decimals.known()
        self._deleted_at.asked = False
        others = self.decimals.apart(fast, slow, lambda: self.batches(file, index, iter(slow)))
        if others is not None and not self._deletes_matter(self._deleted(others) | before.keys(), fast):
            return others
        self._deleted_at.clear()
        self._deleted_at.update(before)
        self.decimals.forget(kept)
        return None

    def _deleted(self, others: Sequence[pa.RecordBatch]) -> AbstractSet[tuple[Any, ...]]:
        """The keys of deletes that a tombstone may follow, and of tombstones."""
        return {key for batch in others for key in self._deletes(batch)} if self._deleted_at.asked else frozenset()

    def _deletes_matter(self, deleted: AbstractSet[tuple[Any, ...]], fast: pa.Table) -> bool:
        """Whether one of these keys is among those of some events, or may be."""
        if not deleted:
            return False
        return not self._same_key or not deleted.isdisjoint(zip(*(fast[c.name].to_pylist() for c in self.layout.key), strict=True))

    def _deletes(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        gone = batch.filter(pc.equal(batch["_kind"], str(EventKind.DELETE)))
        return zip(*(gone[c.name].to_pylist() for c in self.layout.key), strict=True)

    def raw(self, record: tuple[int, bytes]) -> bytes:
        return record[1]

    def event(self, record: tuple[int, bytes]) -> Event:
        number, raw = record
        line: Message | None = None
        payload: Any = None
        try:
            line = message(raw)
            if self._topic is not None and line.topic not in (self._topic, None):
                return self._without_row(EventKind.SKIPPED, number)
            payload, readers = self._values.unwrap(line.value)
            if line.bare and (payload is None or (self._topic is not None and not is_of(self._topic, payload))):
                return self._without_row(EventKind.SKIPPED, number)
            if payload is None:
                return self._tombstone(number, line, readers)
            kind, op = _kind(payload, line.topic)
            if kind is EventKind.UPSERT:
                return self._upsert(number, line, payload, readers, op)
            if kind is EventKind.DELETE:
                return self._delete(number, line, payload, readers)
            if kind is EventKind.TRUNCATE:
                return self._without_row(kind, number, position(payload.get("source"), 1, payload.get("transaction")))
            return self._without_row(kind, number)
        except BadRecord as bad:
            key = self._key_or_none(line, payload)
            self._deleted_at.pop(key or (), None)
            return _as_read(self.layout.quarantined(number, bad, raw, key), payload)

    def committed(self, raw: bytes) -> int | None:
        """When the source committed an event that was decoded, in microseconds since the epoch; None for a tombstone."""
        payload, _ = self._values.unwrap(message(raw).value)
        if payload is None:
            return None
        source = payload.get("source")
        for name, per_micro in (("ts_us", 1), ("ts_ns", 1_000), ("ts_ms", None)):
            value = source.get(name) if type(source) is dict else None
            if type(value) is int:
                at = value * 1_000 if per_micro is None else value // per_micro
                if not MIN_MICROS <= at <= MAX_MICROS:
                    raise BadRecord("VALUE_RANGE", "the time of its commit lies outside the years 0001 to 9999")
                return at
        raise BadRecord(UNKNOWN_TIME, "the event does not say when it was committed (source.ts_us, ts_ns or ts_ms)")

    def _without_row(self, kind: EventKind, number: int, at: str | None = None) -> Event:
        return Event(kind, number, self.layout.no_key, self.layout.no_values, at)

    def _upsert(self, number: int, line: Message, payload: dict[str, Any], readers: Readers, op: str) -> Event:
        key = self._key(line, payload, readers)
        if self._deleted_at:
            self._deleted_at.pop(key, None)
        after = payload.get("after")
        if type(after) is not dict:
            raise BadRecord(MISSING_AFTER, f"the event of op {op} has no row in 'after'")
        source, read = payload.get("source"), op == "r"
        at = position(source, 0 if read else 1, payload.get("transaction"))
        get, unchanged = after.get, self._placeholders
        missing: list[str] = []
        values: list[Any] = []
        for name, convert in readers.values:
            value = get(name)
            if value is not None:
                if type(value) is str and value in unchanged:
                    missing.append(name)
                    value = None
                else:
                    value = convert(value)
            values.append(value)
        absent = [name for name in self.layout.required if name not in after] if None in values else ()
        old = line.headers.get("__debezium.oldkey") if type(line.headers) is dict else None
        was = None if old is None else self._old_key(old)
        return Event(EventKind.UPSERT, number, key, values, at, missing, was, absent=absent, snapshot=mark(source, read=read))

    def _delete(self, number: int, line: Message, payload: dict[str, Any], readers: Readers) -> Event:
        key = self._key(line, payload, readers)
        source = payload.get("source")
        at = position(source, 1, payload.get("transaction"))
        if line.key is not None:
            self._deleted_at.note(key, at)
        return Event(EventKind.DELETE, number, key, self.layout.no_values, at, snapshot=mark(source, read=False))

    def _tombstone(self, number: int, line: Message, readers: Readers) -> Event:
        key = self._key(line, {}, readers)
        return Event(EventKind.DELETE, number, key, self.layout.no_values, self._deleted_at.of(key))

    def _key(self, line: Message, payload: Any, readers: Readers | None) -> tuple[Any, ...]:
        """The converted key columns, of which none is null; ``readers`` are those of the value."""
        document, key_readers = self._keys.unwrap(line.key)
        row = document if type(document) is dict else {}
        try:
            values = [row[name] for name, _ in key_readers.key]
        except KeyError:
            return self._key_of_row(row, key_readers, payload, readers)
        return self._convert_key(values, key_readers.key)

    def _key_of_row(self, row: dict[str, Any], key_readers: Readers, payload: Any, readers: Readers | None) -> tuple[Any, ...]:
        """The key of an event whose Kafka key is not written, is null or lacks columns: these come from the row."""
        before, after = payload.get("before"), payload.get("after")
        gone, had = payload.get("op") == "d", before if type(before) is dict else {}
        now = had if gone or type(after) is not dict else after
        columns, values = [], []
        for of_key, of_value in zip(key_readers.key, (readers or key_readers).key, strict=True):
            name = of_key[0]
            if name not in row:
                if gone and had.get(name) is None:
                    lacks = "is null" if before is None else f"lacks key column {name!r}"
                    raise BadRecord(
                        MISSING_KEY, f"the key is not in the record: no Kafka key has it, and 'before' {lacks} (see REPLICA IDENTITY)"
                    )
                if None not in (was := had.get(name), value := now.get(name)) and was != value:
                    raise BadRecord(MISSING_KEY, f"the event changes key column {name!r} but has no Kafka key that says so")
            columns.append(of_key if name in row else of_value)
            values.append(row[name] if name in row else now.get(name))
        return self._convert_key(values, tuple(columns))

    def _convert_key(self, values: list[Any], columns: Converters) -> tuple[Any, ...]:
        key = []
        for value, (name, convert) in zip(values, columns, strict=True):
            if value is None:
                raise BadRecord(MISSING_KEY, f"key column {name!r} is missing or null")
            if type(value) is str and value in self._placeholders:
                raise BadRecord(TOAST_KEY, f"key column {name!r} holds the placeholder of an unchanged value")
            key.append(convert(value))
        return tuple(key)

    def _key_or_none(self, line: Message | None, payload: Any) -> tuple[Any, ...] | None:
        """The key of a record that is refused for another reason, if it can be read."""
        if line is None:
            return None
        try:
            return self._key(line, payload if type(payload) is dict else {}, None)
        except BadRecord:
            return None

    def _old_key(self, header: Any) -> dict[str, Any]:
        document, readers = self._old_keys.unwrap(header)
        row = document if type(document) is dict else {}
        key = self._convert_key([row.get(name) for name, _ in readers.key], readers.key)
        return {name: value for (name, _), value in zip(readers.key, key, strict=True)}


def _kind(payload: Any, topic: Any) -> tuple[EventKind, str]:
    if type(payload) is not dict:
        raise BadRecord(UNKNOWN_OP, "the value is not a Debezium envelope")
    op = payload.get("op")
    if type(op) is str and op in _KINDS:
        return _KINDS[op], op
    if op is None and is_bookkeeping(payload, topic):
        return EventKind.SKIPPED, ""
    raise BadRecord(UNKNOWN_OP, "the value is no envelope with one of the operations c, r, u, d, t, m")


def _as_read(refused: Event, payload: Any) -> Event:
    """A refused event, with where it stands in the snapshot that read it: a beginning or an end stays one, whatever its row holds."""
    if type(payload) is not dict or payload.get("op") != "r":
        return refused
    source = payload.get("source")
    with suppress(BadRecord):
        return refused._replace(position=position(source, 0, payload.get("transaction")), snapshot=mark(source, read=True))
    return refused
