"""Which values of lines of a shape become which columns of events: of PostgreSQL's envelopes, as ``decoder`` and ``versions`` read them."""

from collections.abc import Collection
from dataclasses import replace

from rejoin.plan.model.durations import MAX_MICROS
from rejoin.plan.model.sources import DebeziumSource
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import NULL, TEXT, WHOLE, Branch, Leaf, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.sql_values import Typed
from rejoin.sources.decode.values import decimal_of
from rejoin.sources.events import Layout, ReadMark
from rejoin.sources.shapes.debezium import marks
from rejoin.sources.shapes.rows import Values, judged

_WRAPPED = {"schema", "payload"}


def of_events(layout: Layout, source: DebeziumSource, unchanged: Collection[str], shape: Shape) -> Judge | None:
    """Of a feed: inserts, updates and reads of PostgreSQL, without schema and with a Kafka key.

    Args:
        layout: the table's columns.
        source: where events come from.
        unchanged: the texts that stand for an unchanged value.
        shape: of the lines.
    """
    key, value = shape.root.members.get("key"), shape.root.members.get("value")
    if not isinstance(key, Branch) or not isinstance(value, Branch) or _WRAPPED in (key.members.keys(), value.members.keys()):
        return None
    after, position = value.members.get("after"), _position(value)
    if position is None or not isinstance(after, Branch) or not after.members.keys() >= set(layout.required):
        return None
    if kind_at(value, ("op",)) != TEXT or any(decimal_of(str(c.type)) for c in layout.key) or not _plain_headers(shape.root):
        return None
    holds = [f"{at('j', ('value', 'op'))} IN ('c', 'u', 'r')", f"{at('j', ('value', 'after'))} IS NOT NULL"]
    if source.topic is not None and "topic" in shape.root.members:
        if kind_at(shape.root, ("topic",)) != TEXT:
            return None
        holds.append(f"coalesce({at('j', ('topic',))} = {quoted(source.topic)}, true)")
    paths = {c.name: ("key", c.name) for c in layout.key} | {c.name: ("value", "after", c.name) for c in layout.values}
    values = Values(units=dict(source.units), unchanged=unchanged)
    found = judged(layout, paths, shape, position.value, [*holds, position.holds], values)
    return None if found is None else replace(found, columns={**found.columns, "_snapshot": _mark(value)})


def committed(shape: Shape) -> Typed | None:
    """What ``Decoder.committed`` makes of the clocks of an event: the first that says it, in microseconds."""
    known, of_millis = [], f"CASE WHEN {{0}} BETWEEN 0 AND {MAX_MICROS // 1000} THEN {{0}} * 1000 END"
    for name, micros in (("ts_us", "{0}"), ("ts_ns", "CASE WHEN {0} >= 0 THEN {0} // 1000 END"), ("ts_ms", of_millis)):
        member = part_at(shape.root, ("value", "source", name))
        if isinstance(member, Leaf) and member.kind == WHOLE:
            known.append((at("j", ("value", "source", name)), micros))
        elif member is not None and not (isinstance(member, Leaf) and member.kind == NULL):
            return None
    if not known:
        return None
    value = f"CASE {' '.join(f'WHEN {text} IS NOT NULL THEN {micros.format(text)}' for text, micros in known)} END"
    return Typed(value, f"coalesce({value} BETWEEN 0 AND {MAX_MICROS}, false)")  # before 1970, where // rounds up, the careful way


def _position(value: Branch) -> Typed | None:
    """What ``positions.position`` makes of PostgreSQL's log positions."""
    lsn, connector = ("source", "lsn"), ("source", "connector")
    if kind_at(value, connector) != TEXT or kind_at(value, lsn) != WHOLE:
        return None
    order, holds = quoted("0" * 20), [f"{at('j.value', connector)} = 'postgresql'", f"{at('j.value', lsn)} >= 0"]
    total = part_at(value, ("transaction", "total_order"))
    if isinstance(total, Branch) or (isinstance(total, Leaf) and total.kind not in (NULL, WHOLE)):
        return None
    if isinstance(total, Leaf) and total.kind == WHOLE:
        number = f"coalesce({at('j.value', ('transaction', 'total_order'))}, 0)"
        order = _padded(number)
        holds.append(f"{number} >= 0")
    rank = f"CASE {at('j.value', ('op',))} WHEN 'r' THEN '.0.' ELSE '.1.' END"
    return Typed(f"concat({_padded(at('j.value', lsn))}, {rank}, {order})", " AND ".join(holds))


def _mark(value: Branch) -> str:
    """What ``marks.mark`` makes of the source block of an event that a snapshot read; null of others."""
    read = f"{at('j.value', ('op',))} = 'r'"
    if kind_at(value, ("source", "snapshot")) != TEXT:
        return f"CASE WHEN {read} THEN {quoted(ReadMark.ROW)} END"
    said, parts = at("j.value", ("source", "snapshot")), [("source", name) for name in marks.ORIGIN]
    named = ", ".join(["'.'", *(at("j.value", part) for part in parts if kind_at(value, part) == TEXT)])
    origin = f"concat_ws({named})" if named != "'.'" else "''"
    ends = " ".join(
        f"WHEN {said} IN ({', '.join(map(quoted, words))}) THEN concat({quoted(f'{of} ')}, {origin})"
        for of, words in ((ReadMark.FIRST, marks.FIRST), (ReadMark.LAST, marks.LAST))
    )
    return f"CASE WHEN {read} THEN CASE {ends} WHEN {said} = {quoted(marks.ADDED)} THEN {quoted(ReadMark.ADDED)} ELSE {quoted(ReadMark.ROW)} END END"


def _padded(number: str) -> str:
    """The arguments of ``concat`` that give 20 digits."""
    return f"substr({quoted('0' * 20)}, length(CAST({number} AS VARCHAR)) + 1), {number}"


def _plain_headers(root: Branch) -> bool:
    headers = root.members.get("headers")
    return not (isinstance(headers, Branch) and "__debezium.oldkey" in headers.members)
