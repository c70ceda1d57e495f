"""Boxes in columns, and arrows between them. Pure: the same boxes and links give the same picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from rejoin.page import text_widths

HEIGHT, LINE = 68, 17
TITLE, TEXT = 13, 12
"""Sizes of a box's letters, as the style sheet has them."""
LEAST, MOST, PADDING = 132, 360, 12
"""A column is as wide as the longest text of its boxes, within these."""
CURVE, DOWN, MARGIN = 56, 22, 4
"""Between two columns, for the part of arrows that is not level; between two boxes; around all."""
APART, TIP, ABOVE = 24, 5, 6
"""At most between two arrows at one box; before a box, for the arrow's head; between an arrow and its label."""

Link = tuple[str, str]


@dataclass(frozen=True)
class Label:
    """What stands on an arrow: where it ends, or else where it begins. It belongs where fewer arrows meet."""

    text: str
    at_end: bool = False


NONE: Mapping[Link, Label] = {}


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
    width: int = 0

    @property
    def height(self) -> int:
        """None where an arrow only bends."""
        return HEIGHT + LINE * max(0, len(self.lines) - 2) if self.title else 0

    @property
    def middle(self) -> int:
        return self.y + self.height // 2

    @property
    def shown(self) -> tuple[tuple[int, str], ...]:
        """The title and the lines as far as there is room for them, each with its place; together they stand in the middle."""
        first = self.middle + 5 - LINE * len(self.lines) // 2
        room = self.width - 2 * PADDING
        texts = (text_widths.cut(self.title, room, TITLE, bold=True), *(text_widths.cut(line, room, TEXT) for line in self.lines))
        return tuple((first + LINE * number, text) for number, text in enumerate(texts))


@dataclass(frozen=True)
class Arrow:
    """From a box to a box: the path of an SVG curve, and a label around a place."""

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


@dataclass(frozen=True)
class _Column:
    """Where a column of boxes is, and how much room there is before and behind it for the labels of arrows that are level there."""

    x: int
    width: int
    before: int
    behind: int


def drawn(boxes: Sequence[Box], links: Sequence[Link], labels: Mapping[Link, Label] = NONE) -> Graph:
    """Every box in its column, columns centred; an arrow a link, from a column to one further right. No label meets another one or a box.

    A column in which no box stands takes no room: its table may be held back, or of another output.
    """
    ranks = {column: rank for rank, column in enumerate(sorted({b.column for b in boxes}))}
    boxes = [replace(b, column=ranks[b.column]) for b in boxes]
    number = {b.id: b.column for b in boxes}
    stops = {(start, end): _stops(start, end, number) for start, end in links}
    bends = [
        Box(stop, "", "", (), number[link[0]] + at) for link, found in stops.items() for at, stop in enumerate(found) if stop not in number
    ]
    pairs = [pair for found in stops.values() for pair in pairwise(found)]
    columns = _columns(boxes, number, labels)
    placed = {b.id: b for b in _placed([*boxes, *bends], pairs, columns)}
    leaving, arriving = _ports(placed, pairs, 0), _ports(placed, pairs, 1)
    arrows = []
    for link, found in stops.items():
        legs = [((placed[a], leaving[a, b]), (placed[b], arriving[a, b])) for a, b in pairwise(found)]
        arrows.append(_arrow(legs, columns, labels.get(link, Label(""))))
    shown = tuple(b for b in placed.values() if b.title)
    width = MARGIN + max(b.x + b.width for b in shown)
    height = MARGIN + max(b.y + b.height for b in placed.values())
    return Graph(width, height, shown, tuple(arrows))


def _stops(start: str, end: str, column: Mapping[str, int]) -> list[str]:
    """A link over several columns bends in each: there it gets a place of its own, a box without height, so that it meets no other box."""
    return [start, *(f"{start} > {end} @ {c}" for c in range(column[start] + 1, column[end])), end]


def _columns(boxes: Iterable[Box], number: Mapping[str, int], labels: Mapping[Link, Label]) -> dict[int, _Column]:
    wide = dict.fromkeys(sorted(set(number.values())), LEAST)
    for box in boxes:
        texts = (text_widths.wide(box.title, TITLE, bold=True), *(text_widths.wide(line, TEXT) for line in box.lines))
        wide[box.column] = max(wide[box.column], min(MOST, ceil(max(texts)) + 2 * PADDING))
    before, behind = dict.fromkeys(wide, 0), dict.fromkeys(wide, 0)
    for (start, end), label in labels.items():
        room, at = (before, end) if label.at_end else (behind, start)
        if label.text:
            room[number[at]] = max(room[number[at]], ceil(text_widths.wide(label.text, TEXT, bold=True)) + 3 * TIP)
    made, x = {}, MARGIN
    for column, width in wide.items():
        x += before[column]
        made[column] = _Column(x, width, before[column], behind[column])
        x += width + behind[column] + CURVE
    return made


def _placed(boxes: Sequence[Box], links: Sequence[Link], at: Mapping[int, _Column]) -> list[Box]:
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
    heights = {c: sum(b.height + DOWN for b in column) - DOWN for c, column in columns.items()}
    placed = []
    for column in sorted(columns):
        y = MARGIN + (max(heights.values()) - heights[column]) // 2
        for box in columns[column]:
            placed.append(replace(box, x=at[column].x, width=at[column].width, y=y))
            y += box.height + DOWN
    return placed


def _ports(at: Mapping[str, Box], pairs: Sequence[Link], side: int) -> dict[Link, int]:
    """How high each arrow leaves its box (``side`` 0) or arrives at it (1): in the order of the boxes at its other end."""
    made: dict[Link, int] = {}
    for one, box in at.items():
        own = sorted((p for p in pairs if p[side] == one), key=lambda p: at[p[1 - side]].middle)
        apart = min(APART, (box.height - APART) // max(1, len(own) - 1))
        made |= {pair: box.middle + round((i - (len(own) - 1) / 2) * apart) for i, pair in enumerate(own)}
    return made


def _arrow(legs: Sequence[tuple[tuple[Box, int], tuple[Box, int]]], at: Mapping[int, _Column], label: Label) -> Arrow:
    """Level beside and through columns, curved between them; the label stands on a level part."""
    (first, top), (last, end) = legs[0][0], legs[-1][1]
    text = f"M {first.x + first.width} {top}"
    for (start, y1), (stop, y2) in legs:
        x1, x2 = start.x + start.width + at[start.column].behind, stop.x - at[stop.column].before - TIP
        half = (x2 - x1) // 2
        text += f" H {x1} C {x1 + half} {y1} {x2 - half} {y2} {x2} {y2} H {stop.x + stop.width}"
    text = text.rpartition(" H ")[0] + f" H {last.x - TIP}"
    if label.at_end:
        return Arrow(text, label.text, last.x - TIP - at[last.column].before // 2, end - ABOVE)
    return Arrow(text, label.text, first.x + first.width + at[first.column].behind // 2, top - ABOVE)
