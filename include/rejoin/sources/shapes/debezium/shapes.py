"""Which values of lines of a shape become which columns of events: of PostgreSQL's envelopes, as ``decoder`` and ``versions`` read them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rejoin.plan.model.durations import MAX_MICROS
from rejoin.plan.model.sources import DebeziumSource
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import DECIMAL, NULL, TEXT, WHOLE, Branch, Constant, Leaf, Path, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.sql_values import Typed
from rejoin.sources.decode.values import Field, decimal_of
from rejoin.sources.events import EventKind, Layout, ReadMark
from rejoin.sources.shapes.debezium import marks, positions
from rejoin.sources.shapes.debezium.envelope import fields_of
from rejoin.sources.shapes.debezium.message import named_by
from rejoin.sources.shapes.rows import Values, judged

_POSTGRESQL = "postgresql"


@dataclass(frozen=True)
class Document:
    """A key or a value in lines of a shape.

    Attributes:
        path: where it stands, without its schema.
        part: what stands there.
        fields: what its schema says of the columns; None: it has none.
    """

    path: Path
    part: Branch
    fields: Mapping[str, Field] | None = field(default=None)

    def names(self, columns: Collection[str]) -> dict[str, Field]:
        """What is known of some columns that stand in it."""
        return {} if self.fields is None else {name: self.fields.get(name, Field()) for name in columns}


@dataclass(frozen=True)
class _Feed:
    """Envelopes of a shape, and what is read of them.

    Attributes:
        layout: the table's columns.
        shape: theirs.
        value: an envelope.
        key: the key of the message; None: they are bare.
        position: of an event.
        topic: conditions under which one is of the topic that is read.
        values: how values are written.
    """

    layout: Layout
    shape: Shape
    value: Document
    key: Document | None
    position: Typed
    topic: list[str]
    values: Values

    def at(self, *path: str) -> str:
        """SQL text of what stands in an envelope."""
        return at("j", (*self.value.path, *path))

    def judged(self, keys: Path, holds: list[str], position: str) -> Judge | None:
        """Events whose row is ``after``. ``keys``: where the columns of the key are."""
        names = [c.name for c in self.layout.key]
        paths = {c.name: (*self.value.path, "after", c.name) for c in self.layout.values} | {name: (*keys, name) for name in names}
        fields = self.value.names([c.name for c in self.layout.values]) | (self.key or self.value).names(names)
        return judged(self.layout, paths, self.shape, position, holds, replace(self.values, fields=fields))


def of_events(layout: Layout, source: DebeziumSource, unchanged: Collection[str], shape: Shape) -> Judge | None:
    """Of a feed: inserts, updates and reads of PostgreSQL, in messages or bare, with schema or without.

    Args:
        layout: the table's columns.
        source: where events come from.
        unchanged: the texts that stand for an unchanged value.
        shape: of the lines.
    """
    feed = _feed(layout, source, unchanged, shape)
    return None if feed is None else _upserts(feed)


def of_columns(layout: Layout, source: DebeziumSource, unchanged: Collection[str], shape: Shape) -> Judge | None:
    """The same of records that come as columns, with their kinds: of deletes, and of tombstones, which have no position, too."""
    feed = _feed(layout, source, unchanged, shape)
    upserts = None if feed is None else _upserts(feed)
    if feed is None or upserts is None:
        return None
    cases = [("true", EventKind.UPSERT, upserts)]
    if (deletes := _deletes(feed)) is not None:
        cases.insert(0, (f"{feed.at('op')} = 'd'", EventKind.DELETE, deletes))
    if feed.key is not None and (tombstones := feed.judged(feed.key.path, [], "CAST(NULL AS VARCHAR)")) is not None:
        cases.insert(0, (f"{feed.at()} IS NULL", EventKind.DELETE, tombstones))
    held = _either((when, " AND ".join(f"({hold})" for hold in judge.holds)) for when, _, judge in cases)
    columns = {name: _either((when, judge.columns[name]) for when, _, judge in cases if name in judge.columns) for name in upserts.columns}
    return Judge({"_kind": _either((when, quoted(kind)) for when, kind, _ in cases), **columns}, (held,))


def _either(cases: Iterable[tuple[str, str]]) -> str:
    """SQL text: the first of some texts whose condition is true."""
    found = list(cases)
    return (
        found[0][1] if len({text for _, text in found}) == 1 else f"CASE {' '.join(f'WHEN {when} THEN {text}' for when, text in found)} END"
    )


def _feed(layout: Layout, source: DebeziumSource, unchanged: Collection[str], shape: Shape) -> _Feed | None:
    value, key = value_of(shape.root), _key_of(shape.root)
    if value is None or any(decimal_of(str(c.type)) for c in layout.key) or not _plain_headers(shape.root):
        return None
    after, position, topic = value.part.members.get("after"), _position(value), _topic(value, source, shape.root)
    if position is None or topic is None or not isinstance(after, Branch) or not after.members.keys() >= set(layout.required):
        return None
    if kind_at(value.part, ("op",)) != TEXT or (key is None and "value" in shape.root.members):
        return None
    return _Feed(layout, shape, value, key, position, topic, Values(False, {}, dict(source.units), unchanged))


def _upserts(feed: _Feed) -> Judge | None:
    holds = [f"{feed.at('op')} IN ('c', 'u', 'r')", f"{feed.at('after')} IS NOT NULL", *feed.topic, feed.position.holds]
    if feed.key is None:
        after = feed.value.part.members["after"]
        assert isinstance(after, Branch)
        same = list(_same_keys(feed.value, after, [c.name for c in feed.layout.key]))
        if None in same:
            return None
        holds += [text for text in same if text]
    found = feed.judged((*feed.value.path, "after") if feed.key is None else feed.key.path, holds, feed.position.value)
    return None if found is None else replace(found, columns={**found.columns, "_snapshot": _mark(feed.value)})


def _deletes(feed: _Feed) -> Judge | None:
    """Of deletes: without a row, with the key of the message, or the one of ``before``."""
    holds = [f"{feed.at('after')} IS NULL", *feed.topic, feed.position.holds]
    if feed.key is not None:
        return feed.judged(feed.key.path, holds, feed.position.value)
    for column in feed.layout.key:
        was, now = (part_at(feed.value.part, (row, column.name)) for row in ("before", "after"))
        if was != now or was == Leaf(DECIMAL):
            return None
    return feed.judged((*feed.value.path, "before"), holds, feed.position.value)


def value_of(root: Branch) -> Document | None:
    """The value of the messages; None if it has no shape, or lines may be more than one thing (``message.is_bare``)."""
    enveloped = {"op", "source"} <= root.members.keys()
    if "value" in root.members:
        return None if enveloped else _document(root, ("value",), envelope=True)
    return _document(root, (), envelope=True) if enveloped or root.members.keys() == {"schema", "payload"} else None


def texts_of(shape: Shape) -> set[str]:
    """The columns without schema whose values are texts."""
    value = value_of(shape.root)
    after = None if value is None or value.fields is not None else value.part.members.get("after")
    return (
        {name for name, member in after.members.items() if isinstance(member, Leaf) and member.kind == TEXT}
        if isinstance(after, Branch)
        else set()
    )


def committed(shape: Shape) -> Typed | None:
    """What ``Decoder.committed`` makes of the clocks of an event: the first that says it, in microseconds."""
    known, of_millis = [], f"CASE WHEN {{0}} BETWEEN 0 AND {MAX_MICROS // 1000} THEN {{0}} * 1000 END"
    value = value_of(shape.root)
    if value is None:
        return None
    for name, micros in (("ts_us", "{0}"), ("ts_ns", "CASE WHEN {0} >= 0 THEN {0} // 1000 END"), ("ts_ms", of_millis)):
        member = part_at(value.part, ("source", name))
        if isinstance(member, Leaf) and member.kind == WHOLE:
            known.append((at("j", (*value.path, "source", name)), micros))
        elif member is not None and not (isinstance(member, Leaf) and member.kind == NULL):
            return None
    if not known:
        return None
    found = f"CASE {' '.join(f'WHEN {text} IS NOT NULL THEN {micros.format(text)}' for text, micros in known)} END"
    return Typed(found, f"coalesce({found} BETWEEN 0 AND {MAX_MICROS}, false)")  # before 1970, where // rounds up, the careful way


def _document(root: Branch, path: Path, *, envelope: bool) -> Document | None:
    part = part_at(root, path)
    if not isinstance(part, Branch):
        return None
    if part.members.keys() != {"schema", "payload"}:
        return Document(path, part)
    schema, payload = part.members["schema"], part.members["payload"]
    if not isinstance(schema, Constant) or not isinstance(payload, Branch):
        return None
    said = json.loads(schema.text)
    return Document((*path, "payload"), payload, fields_of(said, envelope=envelope)) if "type" in said else None


def _key_of(root: Branch) -> Document | None:
    return _document(root, ("key",), envelope=False) if "value" in root.members else None


def _same_keys(value: Document, after: Branch, keys: Collection[str]) -> Iterator[str | None]:
    """Of each key column the condition under which a bare event does not change it (an empty text: always); None if that is not told."""
    before = value.part.members.get("before")
    for name in keys:
        was, now = part_at(before, (name,)), after.members.get(name)
        if was is None or (isinstance(was, Leaf) and was.kind == NULL):
            yield ""
        elif isinstance(was, Leaf) and isinstance(now, Leaf) and was.kind == now.kind:
            yield f"coalesce({at('j', (*value.path, 'before', name))} = {at('j', (*value.path, 'after', name))}, true)"
        else:
            yield None


def _topic(value: Document, source: DebeziumSource, root: Branch) -> list[str] | None:
    """Under which conditions a line is of the topic that is read; None if that is not told."""
    if source.topic is None:
        return []
    if "value" in root.members:
        if "topic" not in root.members:
            return []
        return [f"coalesce({at('j', ('topic',))} = {quoted(source.topic)}, true)"] if kind_at(root, ("topic",)) == TEXT else None
    names = named_by(_POSTGRESQL)
    if not all(kind_at(value.part, ("source", name)) == TEXT for name in names):
        return None
    parts = ", '.', ".join(at("j", (*value.path, "source", name)) for name in names)
    return [f"concat({parts}) = {quoted(source.topic)}"]


def _position(value: Document) -> Typed | None:
    """What ``positions.position`` makes of PostgreSQL's log positions."""
    lsn, connector, total = ("source", "lsn"), ("source", "connector"), ("transaction", "total_order")
    if kind_at(value.part, connector) != TEXT or kind_at(value.part, lsn) != WHOLE:
        return None

    def told(path: Path) -> str:
        return at("j", (*value.path, *path))

    number, holds = "0", [f"{told(connector)} = {quoted(_POSTGRESQL)}", f"{told(lsn)} >= 0"]
    member = part_at(value.part, total)
    if member is not None and not (isinstance(member, Leaf) and member.kind in (NULL, WHOLE)):
        return None
    if isinstance(member, Leaf) and member.kind == WHOLE:
        number = f"coalesce({told(total)}, 0)"
        holds.append(f"{number} >= 0")
    read, place = f"{told(('op',))} = 'r'", told(lsn)
    if (sequence := _sequence(value)) is not None:
        committed = f"TRY_CAST(regexp_extract({sequence}, {quoted(positions.COMMITTED)}, 1) AS BIGINT)"
        later = f"coalesce(NOT {read} AND {committed} >= {place}, false)"
        number = f"CASE WHEN {later} AND {number} = 0 THEN {place} ELSE {number} END"
        place = f"CASE WHEN {later} THEN {committed} ELSE {place} END"
    return Typed(f"concat({_padded(place)}, CASE WHEN {read} THEN '.0.' ELSE '.1.' END, {_padded(number)})", " AND ".join(holds))


def _sequence(value: Document) -> str | None:
    """SQL of the text ``source.sequence``; None if no event has one."""
    path = ("source", "sequence")
    return at("j", (*value.path, *path)) if kind_at(value.part, path) == TEXT else None


def _mark(value: Document) -> str:
    """What ``marks.mark`` makes of the source block of an event."""
    read, after = f"{at('j', (*value.path, 'op'))} = 'r'", ""
    if (sequence := _sequence(value)) is not None:
        after = f" WHEN starts_with({sequence}, {quoted(positions.FIRST)}) THEN {quoted(ReadMark.AFTER)}"
    if kind_at(value.part, ("source", "snapshot")) != TEXT:
        return f"CASE WHEN {read} THEN {quoted(ReadMark.ROW)}{after} END"
    said, parts = at("j", (*value.path, "source", "snapshot")), [("source", name) for name in marks.ORIGIN]
    named = ", ".join(["'.'", *(at("j", (*value.path, *part)) for part in parts if kind_at(value.part, part) == TEXT)])
    origin = f"concat_ws({named})" if named != "'.'" else "''"
    ends = " ".join(
        f"WHEN {said} IN ({', '.join(map(quoted, words))}) THEN concat({quoted(f'{of} ')}, {origin})"
        for of, words in ((ReadMark.FIRST, marks.FIRST), (ReadMark.LAST, marks.LAST))
    )
    word = f"CASE {ends} WHEN {said} = {quoted(marks.ADDED)} THEN {quoted(ReadMark.ADDED)} ELSE {quoted(ReadMark.ROW)} END"
    return f"CASE WHEN {read} THEN {word}{after} END"


def _padded(number: str) -> str:
    """The arguments of ``concat`` that give 20 digits."""
    return f"substr({quoted('0' * 20)}, length(CAST({number} AS VARCHAR)) + 1), {number}"


def _plain_headers(root: Branch) -> bool:
    headers = root.members.get("headers")
    return not (isinstance(headers, Branch) and "__debezium.oldkey" in headers.members)
