"""A plan as a picture: boxes in columns from sources to outputs, and arrows. Pure: the same plan and lines give the same picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rejoin.lake import names
from rejoin.page.model import Kind, TableLine
from rejoin.page.words import cut_off
from rejoin.plan.model import Edge, JoinKind, Node, Plan

WIDTH, HEIGHT = 200, 66
ACROSS, DOWN, MARGIN = 56, 22, 4
LETTERS = 25
"""So many letters fit in a box."""


@dataclass(frozen=True)
class Box:
    """A table or an edge: where it stands, what it says, and the table that it links to."""

    table: str
    kind: Kind
    title: str
    lines: tuple[str, ...]
    column: int
    x: int = 0
    y: int = 0

    @property
    def middle(self) -> int:
        return self.y + _height(self) // 2


@dataclass(frozen=True)
class Arrow:
    """From a box to a box, as the path of an SVG curve."""

    path: str


@dataclass(frozen=True)
class Graph:
    """The whole picture."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def graph(plan: Plan, tables: Sequence[TableLine]) -> Graph:
    """The picture of a plan: sources on the left; an output right of everything that it reads; between them a box an edge."""
    lines = {t.name: t for t in tables}
    level = _levels(plan)
    boxes = [_table_box(lines, t.name, Kind.SOURCE, 0) for t in plan.tables]
    links: list[tuple[str, str]] = []
    for node in plan.nodes:
        kind = Kind.OUTPUT if node.published else Kind.INTERMEDIATE
        boxes.append(_table_box(lines, node.name, kind, 2 * level[node.name]))
        for edge in node.edges:
            box = _edge_box(lines, node, edge, 2 * level[node.name] - 1)
            boxes.append(box)
            links += [(node.left.table, box.table), (edge.right.table, box.table), (box.table, node.name)]
        if not node.edges:
            links.append((node.left.table, node.name))
    placed = {b.table: b for b in _placed(*_with_bends(boxes, links))}
    shown = tuple(b for b in placed.values() if b.title)
    width = MARGIN + max(b.x for b in shown) + WIDTH
    height = MARGIN + max(b.y + _height(b) for b in placed.values())
    return Graph(width, height, shown, tuple(Arrow(_path(placed, start, end)) for start, end in dict.fromkeys(links)))


def summary(line: TableLine | None) -> str:
    """How many rows, in a few words."""
    if line is None or line.rows.value is None:
        return "rows not known"
    noun = "subscriptions" if line.kind is Kind.SUBSCRIPTIONS else "rows"
    return f"{'' if line.rows.exact else 'at most '}{line.rows.value:,} {noun}"


def last_change(line: TableLine | None) -> str:
    """The newest change of a table, in a few words."""
    if line is None or (line.change is None and line.written_by is None):
        return "no run yet"
    if line.change is None:
        return f"written by run {line.written_by}"
    made = dict(line.change.counts)
    if "inserted" in made:
        return f"run {line.change.run}: +{made['inserted']:,} ~{made['updated']:,} -{made['deleted']:,}"
    return f"run {line.change.run}: {made['changes']:,} changed"


def _levels(plan: Plan) -> dict[str, int]:
    level = {t.name: 0 for t in plan.tables}
    for node in plan.nodes:
        level[node.name] = 1 + max(level[name] for name in (node.left.table, *(e.right.table for e in node.edges)))
    return level


def _table_box(lines: Mapping[str, TableLine], name: str, kind: Kind, column: int) -> Box:
    line = lines.get(name)
    return Box(name, kind, name, (summary(line), last_change(line)), column)


def _edge_box(lines: Mapping[str, TableLine], node: Node, edge: Edge, column: int) -> Box:
    table = names.subscriptions(node, edge)
    kind = "left join" if edge.kind is JoinKind.LEFT else "join"
    foreign = ", ".join(part.replace("l.`", "").replace("`", "") for part in edge.foreign_key)
    return Box(table, Kind.SUBSCRIPTIONS, f"{kind} {edge.name}", (f"on {foreign}", summary(lines.get(table))), column)


def _bend(start: str, end: str, column: int) -> str:
    return f"{start} > {end} @ {column}"


def _with_bends(boxes: Sequence[Box], links: Sequence[tuple[str, str]]) -> tuple[list[Box], list[tuple[str, str]]]:
    """A link over several columns bends in each: there it gets a place of its own, a box without height, so that it meets no other box."""
    column = {b.table: b.column for b in boxes}
    every, short = list(boxes), []
    for start, end in dict.fromkeys(links):
        between = [Box(_bend(start, end, c), Kind.OTHER, "", (), c) for c in range(column[start] + 1, column[end])]
        every += between
        stops = [start, *(b.table for b in between), end]
        short += list(pairwise(stops))
    return every, short


def _placed(boxes: Sequence[Box], links: Sequence[tuple[str, str]]) -> list[Box]:
    """The boxes with their places: each column centred, and ordered so that arrows cross less."""
    columns: dict[int, list[Box]] = {}
    for box in boxes:
        columns.setdefault(box.column, []).append(box)
    order = {b.table: float(i) for column in columns.values() for i, b in enumerate(column)}
    # Once from the left and once from the right: a box goes where the boxes stand that it is linked with.
    for column, forward in [(c, True) for c in sorted(columns)] + [(c, False) for c in sorted(columns, reverse=True)]:
        beside = {b.table: [order[a if forward else z] for a, z in links if (z if forward else a) == b.table] for b in columns[column]}
        columns[column].sort(key=lambda b: sum(beside[b.table]) / len(beside[b.table]) if beside[b.table] else order[b.table])
        order |= {b.table: float(i) for i, b in enumerate(columns[column])}
    heights = {c: sum(_height(b) + DOWN for b in column) - DOWN for c, column in columns.items()}
    placed = []
    for number, column in enumerate(sorted(columns)):
        y = MARGIN + (max(heights.values()) - heights[column]) // 2
        for box in columns[column]:
            placed.append(replace(box, x=MARGIN + number * (WIDTH + ACROSS), y=y))
            y += _height(box) + DOWN
    return placed


def _height(box: Box) -> int:
    return HEIGHT if box.title else 0


def _path(at: Mapping[str, Box], start: str, end: str) -> str:
    """The way of an arrow: straight through its bends, curved between columns."""
    x, y = at[start].x + WIDTH, at[start].middle
    text = f"M {x} {y}"
    for column in range(at[start].column + 1, at[end].column):
        bend = at[_bend(start, end, column)]
        text += f"{_curve(x, y, bend.x, bend.y)} H {bend.x + WIDTH}"
        x, y = bend.x + WIDTH, bend.y
    return text + _curve(x, y, at[end].x - 5, at[end].middle)


def _curve(x1: int, y1: int, x2: int, y2: int) -> str:
    half = (x2 - x1) // 2
    return f" C {x1 + half} {y1} {x2 - half} {y2} {x2} {y2}"


def fits(text: str) -> str:
    """A text cut to the width of a box."""
    return cut_off(text, LETTERS)
