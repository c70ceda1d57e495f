"""Plain change events by whole columns: ``debezium`` for the inserts, updates, deletes and tombstones that most of a feed consists of.

Plain is an event with a Kafka key that holds the whole key, a position, and JSON that ``jsontext.quick`` is sure of. Nothing here is
a rule of its own: what is not certain to become what ``debezium`` makes of it is refused.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from rejoin.sources.envelope import Readers, Unwrapper
from rejoin.sources.events import EventKind, Layout
from rejoin.sources.jsontext import Unsure, quick
from rejoin.sources.positions import position
from rejoin.sources.values import Convert, decimal_of

_UPSERTS = {"c": 1, "u": 1, "r": 0}  # with the rank of its position
_UPSERT, _DELETE, _SKIPPED = str(EventKind.UPSERT), str(EventKind.DELETE), str(EventKind.SKIPPED)
Key = tuple[Any, ...]
# Line, kind, key as written, values as written, position (None of a tombstone), readers of the key, readers of the values.
Row = tuple[int, str, Key, Key, str | None, Readers | None, Readers | None]


class PlainEvents:
    """The fast half of the decoder of one file; shares its memory: schemas, and the position of the last delete of a key."""

    def __init__(
        self, layout: Layout, topic: str | None, unchanged: frozenset[str], keys: Unwrapper, values: Unwrapper, deleted_at: dict[Key, str]
    ) -> None:
        self._layout, self._topic, self._unchanged = layout, topic, unchanged
        self._keys, self._values, self._deleted_at = keys, values, deleted_at
        self._key_of = _members([column.name for column in layout.key])
        self._value_names = [column.name for column in layout.values]
        self._values_of = _members(self._value_names)
        # Texts of decimals also tell how later ones are read; that stays with the decoder.
        self._able = not any(decimal_of(str(column.type)) for column in layout.key)
        self._same_key = all(column.type in ("INT", "BIGINT", "STRING") for column in layout.key)

    def plain(self, record: tuple[int, bytes]) -> Row:
        number, raw = record
        try:
            line = quick(raw.decode())
        except UnicodeDecodeError:
            raise Unsure from None
        if type(line) is not dict or "value" not in line or not self._able:
            raise Unsure
        if self._topic is not None and line.get("topic") not in (self._topic, None):
            return number, _SKIPPED, self._layout.no_key, self._layout.no_values, None, None, None
        payload, readers = self._values.peek(line["value"])
        document, key_readers = self._keys.peek(line.get("key"))
        if type(document) is not dict:
            raise Unsure
        try:
            key = self._key_of(document)
        except KeyError:
            raise Unsure from None
        if None in key:
            raise Unsure
        if payload is None:
            return number, _DELETE, key, self._layout.no_values, None, key_readers, None
        if type(payload) is not dict:
            raise Unsure
        op = payload.get("op")
        if op == "d":
            at = position(payload.get("source"), 1, payload.get("transaction"))
            return number, _DELETE, key, self._layout.no_values, at, key_readers, None
        after = payload.get("after")
        if type(op) is not str or op not in _UPSERTS or type(after) is not dict or _has_old_key(line):
            raise Unsure
        at = position(payload.get("source"), _UPSERTS[op], payload.get("transaction"))
        try:
            values = self._values_of(after)
        except KeyError:
            values = tuple(map(after.get, self._value_names))
        return number, _UPSERT, key, values, at, key_readers, readers

    def columns(self, run: Sequence[Row]) -> tuple[dict[str, pa.Array], Sequence[int]]:
        lines, kinds, keys, values, positions, key_readers, readers = zip(*run, strict=True)
        key_reader, reader = _only(key_readers), _only(readers)
        arrays: dict[str, pa.Array] = {}
        missing: dict[int, list[str]] = {}
        deciding: list[tuple[Convert, str]] = []
        if key_reader is not None:
            for (name, _), whole, column in zip(key_reader.key, key_reader.whole_key, zip(*keys, strict=True), strict=True):
                if self._without_unchanged(name, column, {}) is not column:
                    raise Unsure
                arrays[name] = whole(column, frozenset(map(type, column)))
        if reader is not None:
            for (name, convert), whole, column in zip(reader.values, reader.whole_values, zip(*values, strict=True), strict=True):
                known = self._without_unchanged(name, column, missing)
                types = frozenset(map(type, known))
                arrays[name] = whole(known, types)
                if whole.decides and str in types:
                    deciding.append((convert, next(value for value in known if type(value) is str)))
        if missing:
            arrays["_missing"] = pa.array([missing.get(i, ()) for i in range(len(run))], pa.list_(pa.string()))
        deletes = _DELETE in kinds
        arrays["_kind"] = pa.array(kinds) if deletes or _SKIPPED in kinds else pa.repeat(_UPSERT, len(run))
        if key_reader is not None and (deletes or self._deleted_at):
            positions = tuple(self._remember_deletes(kinds, self._converted(keys, key_reader), positions))
        arrays["_position"] = pa.array(positions, pa.string())
        for convert, text in deciding:
            convert(text)
        return arrays, lines

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

    def _converted(self, keys: Sequence[Key], reader: Readers) -> Sequence[Key]:
        """The keys as the decoder remembers them; skipped records have none."""
        if self._same_key:
            return keys
        converts = [convert for _, convert in reader.key]
        empty = self._layout.no_key
        return [key if key is empty else tuple(c(v) for c, v in zip(converts, key, strict=True)) for key in keys]

    def _remember_deletes(self, kinds: Sequence[str], keys: Sequence[Key], positions: Sequence[str | None]) -> Sequence[str | None]:
        """Remembers deletes, forgets those of keys that came back; the positions with those of tombstones filled in."""
        deleted_at, found = self._deleted_at, list(positions)
        for i, (kind, key) in enumerate(zip(kinds, keys, strict=True)):
            if kind is _UPSERT:
                deleted_at.pop(key, None)
            elif kind is _DELETE:
                at = positions[i]
                if at is None:
                    found[i] = deleted_at.get(key)
                else:
                    deleted_at[key] = at
        return found


def _has_old_key(line: dict[str, Any]) -> bool:
    headers = line.get("headers")
    return type(headers) is dict and "__debezium.oldkey" in headers


def _members(names: list[str]) -> Callable[[dict[str, Any]], Key]:
    """The function that takes the members ``names`` out of an object, or raises KeyError."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)


def _only(found: Sequence[Readers | None]) -> Readers | None:
    """The readers that all records have that need some."""
    different = {id(readers): readers for readers in found if readers is not None}
    if len(different) > 1:
        raise Unsure
    return next(iter(different.values()), None)
