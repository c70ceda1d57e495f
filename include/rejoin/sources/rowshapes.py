"""Which values of lines of a shape become which columns of events: of Debezium's envelopes, and of the rows of snapshots."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rejoin.plan.durations import MAX_MICROS
from rejoin.plan.model import Column
from rejoin.plan.portable import quoted
from rejoin.plan.sources import DebeziumSource
from rejoin.sources.events import Layout
from rejoin.sources.proven import Judge
from rejoin.sources.shape import NULL, TEXT, WHOLE, Branch, Leaf, Path, Shape, at
from rejoin.sources.typed import Typed, typed
from rejoin.sources.values import decimal_of

_WRAPPED = {"schema", "payload"}


def of_rows(layout: Layout, position: str, shape: Shape) -> Judge | None:
    """Of a snapshot: every line is a row. ``position``: that of every row."""
    return _judge(layout, {c.name: (c.name,) for c in (*layout.key, *layout.values)}, shape, f"'{position}'", [], _Values(numbers=True))


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
    if _leaf(value, ("op",)) != TEXT or any(decimal_of(str(c.type)) for c in layout.key) or not _plain_headers(shape.root):
        return None
    holds = ["j IS NOT NULL", f"{at('j', ('value', 'op'))} IN ('c', 'u', 'r')", f"{at('j', ('value', 'after'))} IS NOT NULL"]
    if source.topic is not None and "topic" in shape.root.members:
        if _leaf(shape.root, ("topic",)) != TEXT:
            return None
        holds.append(f"coalesce({at('j', ('topic',))} = {quoted(source.topic)}, true)")
    paths = {c.name: ("key", c.name) for c in layout.key} | {c.name: ("value", "after", c.name) for c in layout.values}
    values = _Values(units=dict(source.units), unchanged=unchanged)
    return _judge(layout, paths, shape, position.value, [*holds, position.holds], values)


def committed(shape: Shape) -> Typed | None:
    """What ``Decoder.committed`` makes of the clocks of an event: the first that says it, in microseconds."""
    known, of_millis = [], f"CASE WHEN {{0}} BETWEEN 0 AND {MAX_MICROS // 1000} THEN {{0}} * 1000 END"
    for name, micros in (("ts_us", "{0}"), ("ts_ns", "{0} // 1000"), ("ts_ms", of_millis)):
        member = _member(shape.root, ("value", "source", name))
        if isinstance(member, Leaf) and member.kind == WHOLE:
            known.append((at("j", ("value", "source", name)), micros))
        elif member is not None and not (isinstance(member, Leaf) and member.kind == NULL):
            return None
    if not known:
        return None
    value = f"CASE {' '.join(f'WHEN {text} IS NOT NULL THEN {micros.format(text)}' for text, micros in known)} END"
    return Typed(value, f"coalesce({value} BETWEEN 0 AND {MAX_MICROS}, false)")  # before 1970 the careful way


@dataclass(frozen=True)
class _Values:
    """How values are written. ``numbers``: texts of decimals are numbers; ``units``: of integer timestamps; ``unchanged``: texts that stand for no value."""

    numbers: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    unchanged: Collection[str] = ()


def _judge(layout: Layout, paths: Mapping[str, Path], shape: Shape, position: str, holds: list[str], of: _Values) -> Judge | None:
    columns, keys = {"_position": position}, {c.name for c in layout.key}
    for column in (*layout.key, *layout.values):
        found = _column(column, paths[column.name], shape, of.units.get(column.name, "us"), numbers=of.numbers)
        if found is None:
            return None
        written = at("j", paths[column.name])
        columns[column.name] = found.value
        if column.name in keys:
            holds.append(f"{written} IS NOT NULL AND {found.holds}" if _leaf(shape.root, paths[column.name]) else "false")
        elif found.holds != "true":
            holds.append(f"({written} IS NULL OR {found.holds})")
        if of.unchanged and _leaf(shape.root, paths[column.name]) == TEXT:
            # Not IN: of five texts or more DuckDB makes a join, and the rows come in another order than the lines. No line has a chr(1).
            listed = quoted("\x01" + "\x01".join(sorted(of.unchanged)) + "\x01")
            holds.append(f"coalesce(NOT contains({listed}, chr(1) || {written} || chr(1)), true)")
    return Judge(columns, tuple(holds))


def _column(column: Column, path: Path, shape: Shape, unit: str, *, numbers: bool) -> Typed | None:
    kind = _leaf(shape.root, path)
    if kind is None:  # the rows do not have it, or hold objects there
        return typed(NULL, "", str(column.type)) if _member(shape.root, path) is None else None
    return typed(kind, at("j", path), str(column.type), unit=unit, numbers=numbers)


def _position(value: Branch) -> Typed | None:
    """What ``positions.position`` makes of PostgreSQL's log positions."""
    lsn, connector = ("source", "lsn"), ("source", "connector")
    if _leaf(value, connector) != TEXT or _leaf(value, lsn) != WHOLE:
        return None
    order, holds = "0", [f"{at('j.value', connector)} = 'postgresql'", f"{at('j.value', lsn)} >= 0"]
    total = _member(value, ("transaction", "total_order"))
    if isinstance(total, Branch) or (isinstance(total, Leaf) and total.kind not in (NULL, WHOLE)):
        return None
    if isinstance(total, Leaf) and total.kind == WHOLE:
        order = f"coalesce({at('j.value', ('transaction', 'total_order'))}, 0)"
        holds.append(f"{order} >= 0")
    rank = f"CASE {at('j.value', ('op',))} WHEN 'r' THEN '.0.' ELSE '.1.' END"
    return Typed(f"{_padded(at('j.value', lsn))} || {rank} || {_padded(order)}", " AND ".join(holds))


def _padded(number: str) -> str:
    return f"right(concat('{'0' * 20}', {number}), 20)"


def _plain_headers(root: Branch) -> bool:
    headers = root.members.get("headers")
    return not (isinstance(headers, Branch) and "__debezium.oldkey" in headers.members)


def _member(part: Branch | Leaf | None, path: Path) -> Branch | Leaf | None:
    for name in path:
        part = part.members.get(name) if isinstance(part, Branch) else None
    return part


def _leaf(part: Branch | Leaf, path: Path) -> str | None:
    """The kind of a value; None if there is none in this place."""
    found = _member(part, path)
    return found.kind if isinstance(found, Leaf) else None
