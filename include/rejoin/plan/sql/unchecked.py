"""The expressions of a plan that ``plan.sql.typing`` has no rules for: Spark has to say whether they can be."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.plan import Node, Plan, Projection, Table, View
from rejoin.plan.sql.defining_query import groups_query, node_query
from rejoin.plan.sql.spelling import SPARK, view_query
from rejoin.plan.sql.typing.check import Typed, check

Types = Mapping[str, str | None]


@dataclass(frozen=True)
class Unchecked:
    """``title``: what it is, for people. ``sql``: as the plan has it. ``scope``: the text after FROM that has its columns, without
    rows. ``must_be``: the type that it must have; None for a column, which may have any type that a column can have.
    """

    title: str
    sql: str
    scope: str
    must_be: str | None


def unchecked(plan: Plan) -> tuple[Unchecked, ...]:
    """All of them, those of a node after those of the nodes that it reads."""
    known: dict[str, Types] = {t.name: {c.name: c.type for c in t.columns} for t in plan.tables}
    texts = {t.name: _empty(t) for t in plan.tables}
    found: list[Unchecked] = []
    for table in plan.tables:
        found += _expectations(f"table {table.name!r}", table.expectations, texts[table.name], known[table.name])
    for node in plan.nodes:
        found += _node(node, known, texts)
        known[node.name] = _types_of_node(node, known)
        texts[node.name] = f"({node_query(plan, node, texts.__getitem__)})"
        found += _expectations(f"output {node.name!r}", node.expectations, texts[node.name], known[node.name])
    return tuple(dict.fromkeys(found))


def _empty(table: Table) -> str:
    return f"(SELECT {', '.join(f'CAST(NULL AS {c.type}) AS `{c.name}`' for c in table.columns)} WHERE false)"


def _typed(sql: str, known: Mapping[str, Types]) -> Typed:
    """``known``: alias -> column -> type."""
    return check(sql, lambda alias, name: known.get(alias, {}).get(name))


def _types(columns: Iterable[Projection], known: Mapping[str, Types]) -> Types:
    return {p.name: _typed(p.sql, known).type for p in columns}


def _types_of_node(node: Node, known: Mapping[str, Types]) -> Types:
    return _types(node.columns, _sides(node, known) if node.grouping is None else {"l": node.grouping.types})


def _sides(node: Node, known: Mapping[str, Types]) -> dict[str, Types]:
    return {alias: _types(view.columns, {"t": known[view.table]}) for alias, view in _views(node).items()}


def _views(node: Node) -> dict[str, View]:
    return {"l": node.left} | {f"r{number}": edge.right for number, edge in enumerate(node.edges, start=1)}


def _node(node: Node, known: Mapping[str, Types], texts: Mapping[str, str]) -> Iterator[Unchecked]:
    output, sides, views = f"output {node.name!r}", _sides(node, known), _views(node)
    for view in views.values():
        of, base, scope = f"of {view.table!r} as {output} reads it", {"t": known[view.table]}, f"{texts[view.table]} AS t"
        yield from _unknown(((f"column {p.name!r} {of}", p.sql, None) for p in view.columns), base, scope)
        yield from _unknown([(f"a filter {of}", view.where, "BOOLEAN")] if view.where else [], base, scope)
    scope = " CROSS JOIN ".join(f"{view_query(SPARK, view, texts.__getitem__)} AS {alias}" for alias, view in views.items())
    keys = [(f"the foreign key to {edge.name!r} of {output}", part, None) for edge in node.edges for part in edge.foreign_key]
    columns = [(f"column {p.name!r} of {output}", p.sql, None) for p in node.columns]
    where = [(f"a filter of {output}", node.where, "BOOLEAN")] if node.where else []
    if node.grouping is not None:
        yield from _unknown(((f"{called} of {output}", value.sql, value.type) for called, value in node.grouping.made_of), sides, scope)
        sides, scope = {"l": node.grouping.types}, f"({groups_query(SPARK, node, texts.__getitem__)}) AS l"
    yield from _unknown([*keys, *columns, *where], sides, scope)


def _unknown(asked: Iterable[tuple[str, str, str | None]], known: Mapping[str, Types], scope: str) -> Iterator[Unchecked]:
    """A plain column is as good as what makes it."""
    for title, sql, must_be in asked:
        if not _typed(sql, known).certain and sql not in {f"{alias}.`{name}`" for alias, names in known.items() for name in names}:
            yield Unchecked(title, sql, scope, must_be)


def _expectations(of: str, expectations: Iterable[Expectation], text: str, known: Types) -> Iterator[Unchecked]:
    asked = [(f"an expectation of {of}, {e.title}", str(e.kwargs["resolved"]), "BOOLEAN") for e in expectations if e.type == "condition"]
    yield from _unknown(asked, {"t": known}, f"{text} AS t")
