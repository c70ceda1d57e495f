"""Rows of tables and queries on a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoin.lake.export import plain

WIDEST = 40
"""Letters of a value that are shown."""
NARROWEST = 12
"""Letters that each column gets at least; columns for which there is no room are named below the table."""
_GAP = 2


def table(console: Console, columns: Sequence[str], types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Prints the rows, as many columns of them as fit."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [min(WIDEST, max(len(_safe(n)), *(len(r[i]) for r in cells), 1)) for i, n in enumerate(columns)]
    fit = fitting(widths, console.width)
    shown = Table(box=None, padding=(0, _GAP, 0, 0))
    for name, kind in zip(columns[:fit], types, strict=False):
        shown.add_column(
            Text(_safe(name)), justify="right" if _number(kind) else "left", no_wrap=True, overflow="ellipsis", max_width=WIDEST
        )
    for row in cells:
        shown.add_row(*row[:fit])
    console.print(shown)
    if fit < len(columns):
        console.print(f"not shown: {', '.join(map(_safe, columns[fit:]))}", markup=False, soft_wrap=True)


def as_of(runs: Mapping[str, int]) -> str:
    """Which state a query has read."""
    return ", ".join(f"as of run {run} of {topology}" for topology, run in runs.items())


def fitting(widths: Sequence[int], room: int) -> int:
    """How many of the columns, at least one, fit beside each other, each as wide as it is or, where it has to be, ``NARROWEST``."""
    taken = 0
    for count, width in enumerate(widths):
        taken += min(width, NARROWEST) + _GAP
        if taken > room:
            return max(count, 1)
    return len(widths)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    found = plain(value)
    return Text(_safe(("false", "true")[found] if isinstance(found, bool) else str(found)))


def _safe(text: str) -> str:
    """The text without letters that would do something to the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: 2 * WIDEST])


def _number(kind: str) -> bool:
    return kind.startswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "U")) and kind != "UUID"
