"""The last runs as a small picture: a bar per run for its time, a line over them for the rows that it changed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.page.formats import seconds
from rejoin.page.model import Pace

HIGH, GAP = 36, 2
MANY, FEW = 8, 16
"""From one bar to the next, of more or of at most ``SEVERAL`` runs."""
SEVERAL = 12


@dataclass(frozen=True)
class Bar:
    """A run: where its bar stands, and what it says."""

    run: int
    x: int
    y: float
    height: float
    text: str


@dataclass(frozen=True)
class Sparkline:
    """``bar``: how wide a bar is; ``line``: the points of the rows, ``x,y x,y ...``; a square root, so that one large run does not flatten all others."""

    width: int
    bar: int
    height: int
    bars: tuple[Bar, ...]
    line: str


def sparkline(paces: Sequence[Pace]) -> Sparkline:
    """The picture of runs, oldest first."""
    longest = max((p.seconds for p in paces), default=0) or 1
    most = max((p.changes for p in paces), default=0) or 1
    bars, points, step = [], [], MANY if len(paces) > SEVERAL else FEW
    for at, pace in enumerate(paces):
        height = max(1.5, round(HIGH * pace.seconds / longest, 1))
        text = f"run {pace.run}: {seconds(pace.seconds)}, {pace.changes:,} rows changed"
        bars.append(Bar(pace.run, at * step, HIGH - height, height, text))
        points.append(f"{at * step + (step - GAP) / 2},{round(2 + (HIGH - 4) * (1 - (pace.changes / most) ** 0.5), 1)}")
    return Sparkline(max(1, len(paces)) * step, step - GAP, HIGH, tuple(bars), " ".join(points))
