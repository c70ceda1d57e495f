"""Plain change events by whole columns: ``debezium`` for the inserts, updates, deletes and tombstones that most of a feed consists of.

Plain is an event with a Kafka key that holds the whole key, or a bare one whose row does, a position, and JSON that ``jsontext.quick`` is sure of. Nothing here is
a rule of its own: what is not certain to become what ``debezium`` makes of it is refused.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from rejoin.sources.decode.column_values import REFUSED
from rejoin.sources.decode.values import decimal_of
from rejoin.sources.events import EventKind, Layout
from rejoin.sources.formats.json_text import Unsure
from rejoin.sources.shapes.debezium.deletes import Key, LastDeletes
from rejoin.sources.shapes.debezium.envelope import Readers, Unwrapper
from rejoin.sources.shapes.debezium.marks import mark
from rejoin.sources.shapes.debezium.message import is_bare, is_of
from rejoin.sources.shapes.debezium.positions import position
from rejoin.sources.shapes.debezium.schema_cut import SchemaCut

_UPSERTS = {"c": 1, "u": 1, "r": 0}  # with the rank of its position
_UPSERT, _DELETE, _SKIPPED = str(EventKind.UPSERT), str(EventKind.DELETE), str(EventKind.SKIPPED)
# Line, kind, position (None of a tombstone), mark, how the key is read (``_key_reader``), whether the values have a
# schema, key and values as written. Flat and of simple values, so that Python's garbage collector does not go through tens of thousands of tuples again
# and again.
Row = tuple[Any, ...]
_OF_ROW = (2, 3)
"""How a key is read that stands in a row without and with schema; 0 and 1: in a Kafka key."""


class PlainEvents:
    """The fast half of the decoder of one file; shares its memory: schemas, and the position of the last delete of a key."""

    def __init__(
        self, layout: Layout, topic: str | None, unchanged: frozenset[str], keys: Unwrapper, values: Unwrapper, deleted_at: LastDeletes
    ) -> None:
        self._layout, self._topic, self._unchanged = layout, topic, unchanged
        self._keys, self._values, self._deleted_at = keys, values, deleted_at
        self._cut_key, self._cut_value = SchemaCut("key", keys, 918273645546372819), SchemaCut("value", values, 918273645546372828)
        self._key_of = _members([column.name for column in layout.key])
        self._value_names = [column.name for column in layout.values]
        self._values_of = _members(self._value_names)
        self._nulls = layout.no_key + layout.no_values
        # Texts of decimals also tell how later ones are read; that stays with the decoder.
        self._able = not any(decimal_of(str(column.type)) for column in layout.key)
        self._same_key = all(column.type in ("INT", "BIGINT", "STRING") for column in layout.key)

    def plain(self, record: tuple[int, bytes]) -> Row:
        number, raw = record
        if not self._able:
            raise Unsure
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise Unsure from None
        prefix = self._values.prefix
        if prefix is not None and text.startswith(prefix):
            return self._bare(number, *self._values.peek(text))
        line = self._cut_value.line(text, self._cut_key)
        if line is None:
            return self._skipped(number)
        if type(line) is not dict:
            raise Unsure
        return self._bare(number, *self._values.peek(line)) if is_bare(line) else self._message(number, line)

    def _message(self, number: int, line: dict[str, Any]) -> Row:
        if self._topic is not None and line.get("topic") not in (self._topic, None):
            return self._skipped(number)
        payload, has_schema = self._values.peek(line["value"])
        document, of_key = self._keys.peek(line.get("key"))
        key = self._key(document)
        if payload is None:
            return number, _DELETE, None, None, of_key, None, *key, *self._layout.no_values
        if type(payload) is not dict or (payload.get("op") != "d" and _has_old_key(line)):
            raise Unsure
        return self._event(number, payload, key, of_key, has_schema=has_schema)

    def _bare(self, number: int, payload: Any, has_schema: bool) -> Row:  # noqa: FBT001 -- as peek gives it
        if payload is None or (self._topic is not None and not is_of(self._topic, payload)):
            return self._skipped(number)
        if type(payload) is not dict:
            raise Unsure
        before = payload.get("before")
        key = self._key(before if payload.get("op") == "d" else payload.get("after"))
        if before is not None and self._key(before) != key:
            raise Unsure
        return self._event(number, payload, key, _OF_ROW[has_schema], has_schema=has_schema)

    def _event(self, number: int, payload: dict[str, Any], key: Key, of_key: int, *, has_schema: bool) -> Row:
        op = payload.get("op")
        if op == "d":
            source = payload.get("source")
            at = position(source, 1, payload.get("transaction"))
            return number, _DELETE, at, mark(source, read=False), of_key, None, *key, *self._layout.no_values
        after = payload.get("after")
        if type(op) is not str or op not in _UPSERTS or type(after) is not dict:
            raise Unsure
        source = payload.get("source")
        at = position(source, _UPSERTS[op], payload.get("transaction"))
        try:
            values = self._values_of(after)
        except KeyError:
            if not all(map(after.__contains__, self._layout.required)):
                raise Unsure from None
            values = tuple(map(after.get, self._value_names))
        return number, _UPSERT, at, mark(source, read=op == "r"), of_key, has_schema, *key, *values

    def _key(self, row: Any) -> Key:
        """The key columns of an object that has all of them."""
        if type(row) is not dict:
            raise Unsure
        try:
            key = self._key_of(row)
        except KeyError:
            raise Unsure from None
        if None in key:
            raise Unsure
        return key

    def _skipped(self, number: int) -> Row:
        return number, _SKIPPED, None, None, None, None, *self._nulls

    def columns(self, run: Sequence[Row]) -> tuple[dict[str, pa.Array], Sequence[int]]:
        lines, kinds, positions, marks, of_key, of_value, *columns = zip(*run, strict=True)
        keys, values = columns[: len(self._layout.key)], columns[len(self._layout.key) :]
        key_reader, bare = self._key_reader(of_key)
        reader = _only(self._values, of_value)
        if bare and self._deleted_at:
            raise Unsure  # messages, of which one may be a tombstone, among bare lines
        arrays: dict[str, pa.Array] = {}
        missing: dict[int, list[str]] = {}
        if key_reader is not None:
            for (name, _), whole, column in zip(key_reader.key, key_reader.whole_key, keys, strict=True):
                if self._without_unchanged(name, column, {}) is not column:
                    raise Unsure
                arrays[name] = whole(column, frozenset(map(type, column)))
        if reader is not None:
            arrays |= self._value_arrays(reader, values, missing)
        if missing:
            arrays["_missing"] = pa.array([missing.get(i, ()) for i in range(len(run))], pa.list_(pa.string()))
        deletes = _DELETE in kinds
        arrays["_kind"] = pa.array(kinds) if deletes or _SKIPPED in kinds else pa.repeat(_UPSERT, len(run))
        if key_reader is not None and not bare and (deletes or self._deleted_at):
            positions = tuple(self._deleted_at.followed(kinds, self._converted(keys, key_reader), positions))
        arrays["_position"] = pa.array(positions, pa.string())
        if any(marks):
            arrays["_snapshot"] = pa.array(marks, pa.string())
        return arrays, lines

    def _key_reader(self, flags: Sequence[int | None]) -> tuple[Readers | None, bool]:
        """The readers that all keys have, and whether these stand in rows (``_OF_ROW``), not in Kafka keys."""
        bare = any(flag in _OF_ROW for flag in set(flags))
        if not bare:
            return _only(self._keys, flags), False
        return _only(self._values, [None if flag is None else _OF_ROW.index(flag) for flag in flags]), True

    def _value_arrays(self, reader: Readers, values: Sequence[Sequence[Any]], missing: dict[int, list[str]]) -> dict[str, pa.Array]:
        """The columns that are no key; what they made their converters remember is taken back if one of them is refused."""
        arrays = {}
        before = [set(whole.seen) for whole in reader.whole_values]
        try:
            for (name, _), whole, column in zip(reader.values, reader.whole_values, values, strict=True):
                known = self._without_unchanged(name, column, missing)
                arrays[name] = whole(known, frozenset(map(type, known)))
        except REFUSED:
            for whole, seen in zip(reader.whole_values, before, strict=True):
                whole.seen &= seen
            raise
        return arrays

    def _without_unchanged(self, name: str, column: Sequence[Any], missing: dict[int, list[str]]) -> Sequence[Any]:
        """The column with null for placeholders of unchanged values, which are noted in ``missing``."""
        unchanged = self._unchanged
        try:
            if unchanged.isdisjoint(column):
                return column
        except TypeError:
            pass  # it holds objects or arrays
        known = list(column)
        for i, value in enumerate(column):
            if type(value) is str and value in unchanged:
                known[i] = None
                missing.setdefault(i, []).append(name)
        return known

    def _converted(self, keys: Sequence[Sequence[Any]], reader: Readers) -> Iterable[Key]:
        """Columns of the key -> keys as the decoder remembers them; skipped records have none."""
        if self._same_key:
            return zip(*keys, strict=True)
        columns = zip(keys, reader.key, strict=True)
        return zip(*([None if value is None else convert(value) for value in key] for key, (_, convert) in columns), strict=True)


def _has_old_key(line: dict[str, Any]) -> bool:
    headers = line.get("headers")
    return type(headers) is dict and "__debezium.oldkey" in headers


def _members(names: list[str]) -> Callable[[dict[str, Any]], Key]:
    """The function that takes the members ``names`` out of an object, or raises KeyError."""
    if len(names) > 1:
        return itemgetter(*names)
    if not names:
        return lambda _: ()
    only = names[0]
    return lambda row: (row[only],)


def _only(unwrapper: Unwrapper, flags: Sequence[int | None]) -> Readers | None:
    """The readers that all records have that need some (flags from ``Unwrapper.peek``, or None)."""
    different = set(flags) - {None}
    if len(different) > 1:
        raise Unsure
    return unwrapper.readers(has_schema=bool(different.pop())) if different else None
