"""A node's defining SQL, as ``plan.model.plan`` says it: what ``verify``, ``explain --sql`` and the tests compare an output with."""

from collections.abc import Callable

from rejoin.plan.extensions import join_kinds
from rejoin.plan.model.match import AsOf, Other, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, View
from rejoin.plan.sql import defining_query_by_time

_INDENT = "  "


def node_query(plan: Plan, node: Node, relation: Callable[[str], str], whole: Callable[[str], str] | None = None) -> str:
    """The query whose result is the node's output, in Spark SQL.

    Args:
        plan: the plan of the node.
        node: the node.
        relation: the SQL text after FROM for a table or another node, such as a qualified name or ``(SELECT ...)``.
        whole: the same for a stream whose newest event time counts, if that is another one.
    """
    lines = [f"SELECT {_columns(node.columns)}", f"FROM {view_query(node.left, relation)} AS l"]
    for number, edge in enumerate(node.edges, start=1):
        match edge.match:
            case Window() as window:
                lines += defining_query_by_time.window(node, window, relation, whole or relation, view_query)
            case AsOf(left_time=str()) as as_of:
                lines.append(defining_query_by_time.as_of(plan, edge, as_of, relation, view_query))
            case Other():
                lines = [lines[0], defining_query_by_time.first(node, f"{lines[1]} {_join(edge, number, relation)}")]
            case _:
                lines.append(_join(edge, number, relation))
    where = [text for text in (defining_query_by_time.chosen(node), node.where, defining_query_by_time.closed(node)) if text is not None]
    if where:
        lines.append(f"WHERE {' AND '.join(where if len(where) == 1 else (f'({text})' for text in where))}")
    return "\n".join(lines)


def topology_query(plan: Plan, node: Node, table: Callable[[str], str] = lambda name: f"`{name}`") -> str:
    """One query from the source tables down to this node: every node that it needs is a common table expression.

    Args:
        plan: the plan of the node.
        node: the node whose output the query gives.
        table: the SQL text after FROM for a source table.
    """

    def relation(name: str) -> str:
        return table(name) if plan.is_table(name) else f"`{name}`"

    parts = [f"`{n.name}` AS (\n{_indented(node_query(plan, n, relation))}\n)" for n in upstream(plan, node)]
    query = node_query(plan, node, relation)
    return "WITH " + ",\n".join(parts) + "\n" + query if parts else query


def upstream(plan: Plan, node: Node) -> tuple[Node, ...]:
    """The nodes that a node is made of, without itself; every one after those that it reads."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        for name in current.reads:
            if not plan.is_table(name) and name not in found:
                found.add(name)
                waiting.append(plan.node(name))
    return tuple(n for n in plan.nodes if n.name in found)


def _join(edge: Edge, number: int, relation: Callable[[str], str]) -> str:
    rule = (join_kinds.faces(edge.match.kind).condition if isinstance(edge.match, Other) else None) or "{} = {}".format
    pairs = zip(edge.foreign_key, edge.right.key, strict=True)
    condition = " AND ".join(rule(f"({part})", f"r{number}.`{key}`") for part, key in pairs)
    return f"{edge.kind.upper()} JOIN {view_query(edge.right, relation)} AS r{number} ON {condition}"


def view_query(view: View, relation: Callable[[str], str]) -> str:
    """A view in parentheses, as it stands after FROM; ``relation`` as in ``node_query``."""
    where = f" WHERE {view.where}" if view.where is not None else ""
    return f"(SELECT {_columns(view.columns)} FROM {relation(view.table)} AS t{where})"


def _columns(columns: tuple[Projection, ...]) -> str:
    return ", ".join(f"{column.sql} AS `{column.name}`" for column in columns)


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.split("\n"))
