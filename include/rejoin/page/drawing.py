"""Boxes in columns, and arrows between them. Pure: the same boxes and links give the same picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rejoin.page.words import cut_off

WIDTH, HEIGHT = 204, 68
ACROSS, DOWN, MARGIN = 64, 22, 4
LETTERS, NAME = 30, 26
"""So many letters of a line, and of a title, fit in a box."""

Link = tuple[str, str]
NONE: Mapping[Link, str] = {}


@dataclass(frozen=True)
class Box:
    """``kind`` and ``state`` are classes of the style sheet; ``link``: a page, below that of the topology, or empty; ``more``: for the pointer."""

    id: str
    kind: str
    title: str
    lines: tuple[str, ...]
    column: int
    link: str = ""
    state: str = ""
    more: str = ""
    x: int = 0
    y: int = 0

    @property
    def middle(self) -> int:
        return self.y + _height(self) // 2


@dataclass(frozen=True)
class Arrow:
    """From a box to a box: the path of an SVG curve, and a label at a place."""

    path: str
    label: str = ""
    x: int = 0
    y: int = 0


@dataclass(frozen=True)
class Graph:
    """The whole picture."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def drawn(boxes: Sequence[Box], links: Sequence[Link], labels: Mapping[Link, str] = NONE) -> Graph:
    """Every box in its column, columns centred; an arrow a link, from a column to one further right."""
    placed = {b.id: b for b in _placed(*_with_bends(boxes, links))}
    shown = tuple(b for b in placed.values() if b.title)
    width = MARGIN + max(b.x for b in shown) + WIDTH
    height = MARGIN + max(b.y + _height(b) for b in placed.values())
    return Graph(width, height, shown, tuple(_arrow(placed, link, labels.get(link, "")) for link in dict.fromkeys(links)))


def fits(text: str, most: int = LETTERS) -> str:
    """A text cut to the width of a box."""
    return cut_off(text, most)


def _bend(start: str, end: str, column: int) -> str:
    return f"{start} > {end} @ {column}"


def _with_bends(boxes: Sequence[Box], links: Sequence[Link]) -> tuple[list[Box], list[Link]]:
    """A link over several columns bends in each: there it gets a place of its own, a box without height, so that it meets no other box."""
    column = {b.id: b.column for b in boxes}
    every, short = list(boxes), []
    for start, end in dict.fromkeys(links):
        between = [Box(_bend(start, end, c), "", "", (), c) for c in range(column[start] + 1, column[end])]
        every += between
        stops = [start, *(b.id for b in between), end]
        short += list(pairwise(stops))
    return every, short


def _placed(boxes: Sequence[Box], links: Sequence[Link]) -> list[Box]:
    """The boxes with their places: each column centred, and ordered so that arrows cross less."""
    columns: dict[int, list[Box]] = {}
    for box in boxes:
        columns.setdefault(box.column, []).append(box)
    order = {b.id: float(i) for column in columns.values() for i, b in enumerate(column)}
    # Once from the left and once from the right: a box goes where the boxes stand that it is linked with.
    for column, forward in [(c, True) for c in sorted(columns)] + [(c, False) for c in sorted(columns, reverse=True)]:
        beside = {b.id: [order[a if forward else z] for a, z in links if (z if forward else a) == b.id] for b in columns[column]}
        columns[column].sort(key=lambda b: sum(beside[b.id]) / len(beside[b.id]) if beside[b.id] else order[b.id])
        order |= {b.id: float(i) for i, b in enumerate(columns[column])}
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


def _arrow(at: Mapping[str, Box], link: Link, label: str) -> Arrow:
    """Straight through its bends, curved between columns; the label in the middle of its first curve."""
    start, end = at[link[0]], at[link[1]]
    x, y = start.x + WIDTH, start.middle
    text = f"M {x} {y}"
    first = at[_bend(*link, start.column + 1)] if end.column > start.column + 1 else end
    place = (x + ACROSS // 2, (y + first.middle) // 2 + 4)
    for column in range(start.column + 1, end.column):
        bend = at[_bend(*link, column)]
        text += f"{_curve(x, y, bend.x, bend.y)} H {bend.x + WIDTH}"
        x, y = bend.x + WIDTH, bend.y
    return Arrow(text + _curve(x, y, end.x - 5, end.middle), label, *place)


def _curve(x1: int, y1: int, x2: int, y2: int) -> str:
    half = (x2 - x1) // 2
    return f" C {x1 + half} {y1} {x2 - half} {y2} {x2} {y2}"
