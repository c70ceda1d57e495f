"""A node's defining SQL, as ``plan.model.plan`` says it: what ``verify``, ``explain --sql`` and the tests compare an output with.

In the SQL of whoever runs it, the node's texts too (``Engine.node``); Spark SQL where people read it.
"""

from collections.abc import Callable

from rejoin.plan.extensions import join_kinds
from rejoin.plan.model.match import AsOf, Other, Window
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.plan.sql.aggregates import aggregated
from rejoin.plan.sql.defining_query_by_time import ByTime
from rejoin.plan.sql.spelling import SPARK, Spelling, columns, view_query

_INDENT = "  "
_NTH = "_nth"


def node_query(
    plan: Plan, node: Node, relation: Callable[[str], str], whole: Callable[[str], str] | None = None, sql: Spelling = SPARK
) -> str:
    """The query whose result is the node's output.

    Args:
        plan: the plan of the node.
        node: the node, its texts in the same SQL.
        relation: the SQL text after FROM for a table or another node, such as a qualified name or ``(SELECT ...)``.
        whole: the same for a stream whose newest event time counts, if that is another one.
        sql: whose SQL.
    """
    by_time = ByTime(sql, relation, whole or relation)
    rows = view_query(sql, node.left, relation) if node.grouping is None else f"({groups_query(sql, node, relation)})"
    lines = [f"SELECT {columns(sql, node.columns)}", f"FROM {rows} AS l"]
    for number, edge in enumerate(node.edges, start=1):
        match edge.match:
            case Window() as window:
                lines += by_time.window(node, window)
            case AsOf(left_time=str()) as as_of:
                lines.append(by_time.as_of(plan, edge, as_of))
            case Other():
                lines = [lines[0], _first(sql, node, f"{lines[1]} {_join(sql, edge, number, relation)}")]
            case _:
                lines.append(_join(sql, edge, number, relation))
    where = [text for text in (_chosen(node), node.where, by_time.closed(node)) if text is not None]
    if where:
        lines.append(f"WHERE {' AND '.join(where if len(where) == 1 else (f'({text})' for text in where))}")
    return "\n".join(lines)


def groups_query(sql: Spelling, node: Node, relation: Callable[[str], str]) -> str:
    """The query that gives the groups of a node."""
    grouping = node.grouping
    assert grouping is not None
    keys, of_member = (
        {f"{letter}_{at}": part for at, part in enumerate(some, start=1)}
        for letter, some in (("k", grouping.foreign_key), ("m", [f"l.{sql.name(key)}" for key in node.left.key]))
    )
    members = ", ".join(
        f"{text} AS {name}" for name, text in [*keys.items(), *of_member.items(), *((v.name, v.sql) for v in grouping.values)]
    )
    made = [*zip((key.name for key in grouping.keys), keys, strict=True), *aggregated(sql, grouping, list(of_member))]
    shown = ", ".join(f"{text} AS {sql.name(name)}" for name, text in made)
    return f"SELECT {shown} FROM (SELECT {members} FROM {view_query(sql, node.left, relation)} AS l) GROUP BY {', '.join(keys)}"


def topology_query(plan: Plan, node: Node, table: Callable[[str], str] = lambda name: f"`{name}`") -> str:
    """One query of Spark from the source tables down to this node: every node that it needs is a common table expression.

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


def _join(sql: Spelling, edge: Edge, number: int, relation: Callable[[str], str]) -> str:
    rule = (join_kinds.faces(edge.match.kind).condition if isinstance(edge.match, Other) else None) or "{} = {}".format
    pairs = zip(edge.foreign_key, edge.right.key, strict=True)
    condition = " AND ".join(rule(f"({part})", f"r{number}.{sql.name(key)}") for part, key in pairs)
    return f"{edge.kind.upper()} JOIN {view_query(sql, edge.right, relation)} AS r{number} ON {condition}"


def _first(sql: Spelling, node: Node, pairs: str) -> str:
    """``pairs``, the text from FROM on of a join by a rule, with the place of each among those of its left row in the order of the right key."""
    lefts, rights = (sql.names(key, row) for row, key in (("l", node.left.key), ("r1", node.edges[0].right.key)))
    nth = f"row_number() OVER (PARTITION BY {lefts} ORDER BY {rights})"
    return f"FROM (SELECT {sql.whole_row('l')} AS l, {sql.whole_row('r1')} AS r1, {nth} AS {_NTH} {pairs})"


def _chosen(node: Node) -> str | None:
    """The condition that a row is the first of its left row; None where a left row cannot have several, or all are meant."""
    return f"{_NTH} = 1" if isinstance(node.match, Other) else None


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.split("\n"))
