"""Checked relations -> the plan: names for intermediate nodes, views without what nobody reads, ``used`` columns."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rejoin.plan.check.relations import Arm, Draft, Groups, Rows, Star, null_keys
from rejoin.plan.model.added_columns import DELETED
from rejoin.plan.model.grouping import Grouping, Value
from rejoin.plan.model.match import AsOf, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, Table, View
from rejoin.plan.sql.expressions import Expression, column


def plan(topology: str, tables: Iterable[Table], outputs: Iterable[Draft]) -> Plan:
    """The plan of checked tables and named outputs, in the order of their declaration; every node after what it reads."""
    drafts = _in_order(outputs)
    nodes: list[Node] = []
    for draft, published in drafts.items():
        nodes.append(_node(draft, published=published))
    reads = _reads(drafts)
    return Plan(
        topology,
        tuple(replace(table, used=_used(reads, table, [c.name for c in table.columns])) for table in tables),
        tuple(replace(node, used=_used(reads, node, [c.name for c in node.columns])) for node in nodes),
    )


def _used(reads: Mapping[str, set[str]], of: Table | Node, columns: list[str]) -> tuple[str, ...]:
    return tuple(name for name in columns if name in reads.get(of.name, ()) and name not in of.key)


def _reads(drafts: Iterable[Draft]) -> dict[str, set[str]]:
    """Table or node -> the columns of it that any view evaluates."""
    reads: dict[str, set[str]] = {}
    for draft in drafts:
        star = _star(draft)
        for alias, rows in {"l": star.left, **{f"r{i}": arm.right for i, arm in enumerate(star.arms, start=1)}}.items():
            evaluated = [*_needed(rows, alias, _read(star)).values(), *([rows.where] if rows.where else [])]
            reads.setdefault(_name(rows.base), set()).update(ref.column for made in evaluated for ref in made.refs)
    return reads


def _in_order(outputs: Iterable[Draft]) -> dict[Draft, bool]:
    """All nodes, upstream first, and whether the user named them. The others are named after the first output that reads
    them, so adding an output at the end of a file renames nothing.
    """
    outputs = list(outputs)
    named = set(outputs)
    order: dict[Draft, bool] = {}
    taken: set[str] = set()
    for output in outputs:
        for draft in _upstream_first(output, set(order)):
            if draft.name is None:
                draft.name, draft.policy = _free(f"{output.name}__{_contents(_star(draft))}", taken), output.policy
                taken.add(draft.name)
            order[draft] = draft in named
    return order


def _contents(star: Star) -> str:
    """What tells an intermediate node's tables from those of others: which tables it joins, its key, its columns and their types. Not its
    place in the file: another one before it must not take its tables over, whose columns are others.
    """
    joined = sorted(_name(arm.right.base) for arm in star.arms)
    columns = [(name, made.type) for name, made in star.columns.items()]
    text = json.dumps([_name(star.left.base), joined, star.key, columns], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:8]


def _upstream_first(draft: Draft, seen: set[Draft]) -> Iterator[Draft]:
    if draft in seen:
        return
    seen.add(draft)
    shape = draft.shape
    for rows in (shape.left, *(arm.right for arm in shape.arms)) if isinstance(shape, Star) else (shape,):
        if isinstance(rows.base, Draft):
            yield from _upstream_first(rows.base, seen)
    yield draft


def _star(draft: Draft) -> Star:
    """A node as a star; a filter or select without joins has no arms, and its view does all the work."""
    shape = draft.shape
    if isinstance(shape, Star):
        return shape
    columns = {name: column("l", name, made.type) for name, made in shape.columns.items()}
    return Star(shape, (), shape.label, columns, shape.key)


def _read(star: Star) -> list[Expression]:
    """Every expression that a node evaluates over its left and right views."""
    if star.groups is not None:
        return [*star.groups.keys.values(), *star.groups.values.values()]
    keys = [part for arm in star.arms for part in arm.foreign_key]
    matched = [column(alias, name, None) for i, arm in enumerate(star.arms, start=1) for alias, name in _matched(arm, f"r{i}")]
    return [*star.columns.values(), *keys, *matched, *([star.where] if star.where else [])]


def _matched(arm: Arm, right: str) -> Iterator[tuple[str, str]]:
    """The columns, with their side, by which a join finds right rows beside the foreign key."""
    match arm.match:
        case Window() as window:
            yield from (
                ("l", window.left_time),
                (right, window.right_time),
                *((right, name) for name in window.on),
                *(("l", name) for name in window.left_clock),
            )
        case AsOf(left_time=str() as time) as as_of:
            yield from (("l", time), (right, DELETED), *((right, name) for name in as_of.on))


def _node(draft: Draft, *, published: bool) -> Node:
    star = _star(draft)
    read = _read(star)
    return Node(
        name=_name(draft),
        left=_view(star.left, "l", read),
        edges=_edges(star, read),
        columns=_projections(star.columns),
        where=star.where.sql if star.where else None,
        key=star.key,
        used=(),
        published=published,
        policy=draft.policy,
        sinks=draft.sinks,
        null_keys=null_keys(draft.shape),
        grouping=None if star.groups is None else _grouping(star.groups),
    )


def _grouping(groups: Groups) -> Grouping:
    keys, values = (tuple(Value(n, made.sql, made.known or "") for n, made in some.items()) for some in (groups.keys, groups.values))
    return Grouping(keys, values, groups.aggregates)


def _edges(star: Star, read: list[Expression]) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    for number, arm in enumerate(star.arms, start=1):
        name = _free(_name(arm.right.base), {edge.name for edge in edges})
        key = tuple(part.sql for part in arm.foreign_key)
        edges.append(Edge(name, _view(arm.right, f"r{number}", read), key, arm.kind, arm.match))
    return tuple(edges)


def _free(name: str, taken: set[str]) -> str:
    """The name, or the first of ``name_2``, ``name_3`` ... that is not taken (a table joined twice)."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _view(rows: Rows, alias: str, read: list[Expression]) -> View:
    where = rows.where.sql if rows.where else None
    return View(_name(rows.base), _projections(_needed(rows, alias, read)), where, rows.key)


def _needed(rows: Rows, alias: str, read: list[Expression]) -> dict[str, Expression]:
    """The columns of a view that its node reads, and its key."""
    needed = {ref.column for made in read for ref in made.refs if ref.alias == alias} | set(rows.key)
    return {name: made for name, made in rows.columns.items() if name in needed}


def _projections(columns: Mapping[str, Expression]) -> tuple[Projection, ...]:
    return tuple(Projection(name, made.sql, made.type) for name, made in columns.items())


def _name(base: Table | Draft) -> str:
    if base.name is None:
        raise AssertionError("an intermediate node is read before it was named")
    return base.name
