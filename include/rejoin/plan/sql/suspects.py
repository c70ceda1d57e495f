"""The user's expressions that a step computes, each with a name for people: what an error of an engine can come from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.plan import Edge, Node, Plan, View
from rejoin.plan.model.steps import ON_ROWS, Verb


@dataclass(frozen=True)
class Suspect:
    """An expression of the user: what it is (``column 'total' of output 'sums'``), and its SQL text in the plan."""

    title: str
    sql: str


def of_step(plan: Plan, verb: Verb, target: str) -> tuple[Suspect, ...]:
    """What a step computes; no plain columns, which always have a value."""
    if verb is Verb.INGEST:
        return tuple(_expectations(f"table {target!r}", plan.table(target).expectations))
    if verb not in ON_ROWS:
        return ()
    node_name, _, edge_name = target.partition(".")
    node = plan.node(node_name)
    edges = [e for e in node.edges if edge_name in ("", e.name)]
    return tuple(_node(node, edges, verb))


def of_node(plan: Plan, name: str) -> tuple[Suspect, ...]:
    """What an output is computed from, its own expressions first; no expectations."""
    return of_step(plan, Verb.RESOLVE, name)


def of_side(plan: Plan, name: str, *, right: bool) -> tuple[Suspect, ...]:
    """What the left side of an output is computed from, foreign keys included, or the right side of its only edge."""
    node, output = plan.node(name), f"output {name!r}"
    if right:
        return tuple(_view(node.edges[0].right, output))
    return (
        tuple(_node(node, node.edges, Verb.SUBSCRIBE))
        if node.grouping is not None
        else (*_view(node.left, output), *_keys(node.edges, output))
    )


def _node(node: Node, edges: Iterable[Edge], verb: Verb) -> Iterator[Suspect]:
    output = f"output {node.name!r}"
    if verb is Verb.RESOLVE:
        yield from (Suspect(f"column {p.name!r} of {output}", p.sql) for p in node.columns if not _plain(p.sql))
        if node.where:
            yield Suspect(f"a filter of {output}", node.where)
    if verb is Verb.VALIDATE:
        yield from _expectations(output, node.expectations)
    yield from _view(node.left, output)
    if node.grouping is not None:
        yield from (Suspect(f"{called} of {output}", value.sql) for called, value in node.grouping.made_of if not _plain(value.sql))
    for edge in edges:
        yield from _keys([edge], output)
        yield from _view(edge.right, output)


def _keys(edges: Iterable[Edge], output: str) -> Iterator[Suspect]:
    for edge in edges:
        yield from (Suspect(f"the foreign key to {edge.name!r} of {output}", f) for f in edge.foreign_key if not _plain(f))


def _view(view: View, output: str) -> Iterator[Suspect]:
    of = f"of {view.table!r} as {output} reads it"
    yield from (Suspect(f"column {p.name!r} {of}", p.sql) for p in view.columns if not _plain(p.sql))
    if view.where:
        yield Suspect(f"a filter {of}", view.where)


def _expectations(of: str, expectations: Iterable[Expectation]) -> Iterator[Suspect]:
    yield from (Suspect(f"an expectation of {of}, {e.title}", e.kwargs["resolved"]) for e in expectations if "resolved" in e.kwargs)


def _plain(sql: str) -> bool:
    """Whether it is a column, as the plan writes one."""
    return sql.replace("`", "").replace(".", "").replace("_", "").isalnum()
