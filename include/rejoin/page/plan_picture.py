"""A plan as a picture: sources on the left, an output right of everything that it reads, between them a box per join. Pure."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from rejoin.lake import table_names
from rejoin.page.boxes import Box, Graph, Label, Link, drawn
from rejoin.page.model import Kind, TableLine
from rejoin.plan.model import durations
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.match import AsOf, Other, SameKey, Window
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.report.history import many

Content = tuple[tuple[str, ...], str, str]
"""What stands in a box: its lines, its state, and more for the pointer."""


def graph(plan: Plan, tables: Sequence[TableLine]) -> Graph:
    """The picture of a plan with the sizes of its tables."""
    lines = {t.name: t for t in tables}

    def table(name: str) -> Content:
        return (summary(lines.get(name)), last_change(lines.get(name))), "", ""

    def edge(node: Node, to: Edge | Grouping) -> Content:
        return (by(to), matched(to) or summary(lines.get(table_names.subscriptions(node, to)))), "", ""

    return picture(plan, table, edge, frozenset(lines))


def picture(
    plan: Plan,
    table: Callable[[str], Content],
    edge: Callable[[Node, Edge | Grouping], Content],
    linked: frozenset[str],
    labels: Callable[[Node, Edge | Grouping], tuple[str, str, str]] | None = None,
) -> Graph:
    """The picture of a plan.

    Args:
        plan: the plan.
        table: what stands in the box of a table or output.
        edge: what stands in the box of a join, or of what makes groups.
        linked: the tables that have a page.
        labels: of a join's arrows: from its left side, from its right side, to its output.
    """
    level = _levels(plan)
    boxes = [_box(t.name, t.name, Kind.SOURCE, table(t.name), 0, linked) for t in plan.tables]
    links: dict[Link, Label] = {}
    for node in plan.nodes:
        kind = Kind.OUTPUT if node.published else Kind.INTERMEDIATE
        boxes.append(_box(node.name, node.name, kind, table(node.name), 2 * level[node.name], linked))
        for one in node.edges or node.subscribes_to:
            own = table_names.subscriptions(node, one)
            boxes.append(_box(own, joined(one), Kind.SUBSCRIPTIONS, edge(node, one), 2 * level[node.name] - 1, linked))
            left, right, made = labels(node, one) if labels else ("", "", "")
            # Beside the join, each: many arrows may leave a table or arrive at an output, but few meet at a join.
            links[node.left.table, own] = Label(left, at_end=True)
            if isinstance(one, Edge):
                links[one.right.table, own] = Label(right, at_end=True)
            links[own, node.name] = Label(made)
        if not node.edges and node.grouping is None:
            links[node.left.table, node.name] = Label("")
    return drawn(boxes, list(links), links)


def joined(to: Edge | Grouping) -> str:
    """The title of the box of a join or of groups."""
    return f"{to.join} {to.name}" if isinstance(to, Edge) else "groups"


def by(to: Edge | Grouping) -> str:
    """The foreign key of a join, or the key of groups, in a few words."""
    return f"{'on' if isinstance(to, Edge) else 'by'} {', '.join(part.replace('l.`', '').replace('`', '') for part in to.foreign_key)}"


def matched(to: Edge | Grouping) -> str:
    """How a join that has no subscriptions finds right rows, in a few words; empty for one by a foreign key alone."""
    match to.match if isinstance(to, Edge) else None:
        case SameKey():
            return "by their keys"
        case Other() as other:
            return f"by {other.kind}"
        case AsOf() as as_of:
            return f"as of {as_of.left_time or 'the run'}"
        case Window() as window:
            return reach(window.before, window.after)
        case _:
            return ""


def reach(before: int, after: int) -> str:
    """From when to when right records may be, seen from a left one: ``before`` microseconds before it to ``after`` after it. Either may be below zero."""
    if before == after:
        return f"within {durations.text(after)}" if after else "at the same time"
    if before < 0 or after < 0:
        first, last, side = (-before, after, "after") if before < 0 else (-after, before, "before")
        return f"{durations.text(first)} to {durations.text(last)} {side}"
    if before and after:
        return f"{durations.text(before)} before to {durations.text(after)} after"
    return f"up to {durations.text(before)} before" if before else f"up to {durations.text(after)} after"


def summary(line: TableLine | None) -> str:
    """How many rows, in a few words."""
    if line is None or line.rows.value is None:
        return "rows not known"
    counted = many(line.rows.value, "subscription" if line.kind is Kind.SUBSCRIPTIONS else "row")
    return counted if line.rows.exact else f"at most {counted}"


def last_change(line: TableLine | None) -> str:
    """The newest change of a table, in a few words."""
    if line is None or (line.change is None and line.written_by is None):
        return "no run yet"
    if line.change is None:
        return f"written by run {line.written_by}"
    made = dict(line.change.counts)
    if "inserted" in made:
        return f"run {line.change.run}: {net(made)}"
    return f"run {line.change.run}: {made['changes']:,} changed"


def net(made: Mapping[str, int]) -> str:
    """Net changes: +3 ~2 -1."""
    return f"+{made.get('inserted', 0):,} ~{made.get('updated', 0):,} -{made.get('deleted', 0):,}"


def _levels(plan: Plan) -> dict[str, int]:
    level = {t.name: 0 for t in plan.tables}
    for node in plan.nodes:
        level[node.name] = 1 + max(level[name] for name in node.reads)
    return level


def _box(name: str, title: str, kind: Kind, content: Content, column: int, linked: frozenset[str]) -> Box:
    lines, state, more = content
    link = f"/tables/{quote(name, safe='')}" if name in linked else ""
    return Box(name, kind, title, lines, column, link, state, more or f"{title}: {', '.join(lines)}")
