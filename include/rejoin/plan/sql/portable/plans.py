"""The types of a plan's columns, and whether all texts of a node are portable."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rejoin.plan.model.plan import Node, Plan, Projection, View
from rejoin.plan.sql.aggregates import not_portable
from rejoin.plan.sql.portable.printed import NotPortable
from rejoin.plan.sql.portable.printing import printed
from rejoin.plan.sql.typing.check import check

Columns = Mapping[str, Mapping[str, str]]
"""Alias -> column -> its Spark type."""


def types_of(plan: Plan, name: str) -> Mapping[str, str]:
    """The types of a source table's or a node's columns.

    Raises:
        NotPortable: one cannot be known without Spark.
    """
    if plan.is_table(name):
        return {c.name: _known(c.type, f"{name}.{c.name}") for c in plan.table(name).columns}
    node = plan.node(name)
    return _typed(node.columns, lambda: node_columns(plan, node), name)


def view_columns(plan: Plan, view: View) -> Columns:
    """What the texts of a view may name: ``t``.

    Raises:
        NotPortable: the type of a column cannot be known.
    """
    return {"t": types_of(plan, view.table)}


def node_columns(plan: Plan, node: Node) -> Columns:
    """What the texts of a node may name: ``l``, and ``r1``, ``r2`` ... for its edges; of groups ``l`` is a group.

    Raises:
        NotPortable: the type of a column cannot be known.
    """
    if node.grouping is not None:
        return {"l": node.grouping.types}
    views = {"l": node.left, **{f"r{number}": edge.right for number, edge in enumerate(node.edges, 1)}}
    return {alias: _view_types(plan, view) for alias, view in views.items()}


def member_columns(plan: Plan, node: Node) -> Columns:
    """What the texts of a grouping may name: ``l``, a row of the left view.

    Raises:
        NotPortable: the type of a column cannot be known.
    """
    return {"l": _view_types(plan, node.left)}


def _view_types(plan: Plan, view: View) -> Mapping[str, str]:
    return _typed(view.columns, lambda: view_columns(plan, view), view.table)


def _typed(made: Sequence[Projection], columns: Callable[[], Columns], of: str) -> Mapping[str, str]:
    """The types that the plan states. What it leaves open is found from ``columns``, which may lead through many nodes."""
    if all(c.type is not None for c in made):
        return {c.name: str(c.type) for c in made}
    known = columns()
    return {c.name: _known(c.type or _checked(c.sql, known), f"{of}.{c.name}") for c in made}


def _checked(text: str, columns: Columns) -> str | None:
    """By Spark's rules, or as printed: printing knows some functions more."""
    found = check(text, lambda alias, column: columns.get(alias, {}).get(column))
    if found.type is not None and not found.mistakes:
        return found.type
    try:
        return printed(text, columns).type
    except NotPortable:
        return None


def _known(kind: str | None, column: str) -> str:
    if kind is None:
        raise NotPortable(f"the type of {column} is not known without Spark")
    return kind


def why_not(plan: Plan, node: Node) -> str | None:
    """The first reason why not all texts of a node are portable, with the place of the text; None if all are."""
    if node.grouping is not None and (reason := not_portable(node.grouping)):
        return reason
    try:
        for place, text, kind, columns in _texts(plan, node):
            try:
                found = printed(text, columns)
            except NotPortable as reason:
                return f"{place}: {reason}"
            if kind not in (None, found.type):
                return f"{place}: its type is stated as {kind}, and is {found.type}"
    except NotPortable as reason:
        return str(reason)
    return None


def _texts(plan: Plan, node: Node) -> Iterator[tuple[str, str, str | None, Columns]]:
    """The texts of a node: place, text, the type that the plan states, and what the text may name."""
    yield from _view_texts(plan, node.left)
    for edge in node.edges:
        yield from _view_texts(plan, edge.right)
    for called, value in node.grouping.made_of if node.grouping is not None else ():
        yield called, value.sql, value.type, member_columns(plan, node)
    columns = node_columns(plan, node)
    for edge in node.edges:
        for text in edge.foreign_key:
            yield f"the foreign key of {edge.name}", text, None, columns
    for column in node.columns:
        yield f"column {column.name}", column.sql, column.type, columns
    if node.where is not None:
        yield "the filter after the joins", node.where, "BOOLEAN", columns
    for expectation in node.expectations:
        if "resolved" in expectation.kwargs:
            yield f"expectation {expectation.title}", expectation.kwargs["resolved"], "BOOLEAN", {"t": types_of(plan, node.name)}


def _view_texts(plan: Plan, view: View) -> Iterator[tuple[str, str, str | None, Columns]]:
    columns = view_columns(plan, view)
    for column in view.columns:
        yield f"column {column.name} of {view.table}", column.sql, column.type, columns
    if view.where is not None:
        yield f"the filter of {view.table}", view.where, "BOOLEAN", columns
