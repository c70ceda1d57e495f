"""Rows of tables and queries on a terminal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoin.lake.query.json_values import plain

WIDEST = 40
"""Letters of a value that are shown."""
NARROWEST = 12
"""Letters that each column gets at least; columns for which there is no room are named below the table."""
_GAP = 2


def table(console: Console, columns: Sequence[str], types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Prints the rows, as many columns of them as fit."""
    cells = [[_cell(value) for value in row] for row in rows]
    names = [_safe(name) for name in columns]
    widths = fitting([max(cell_len(n), *(r[i].cell_len for r in cells), 1) for i, n in enumerate(names)], console.width)
    shown = Table(box=None, padding=(0, _GAP, 0, 0))
    for name, kind, width in zip(names, types, widths, strict=False):
        shown.add_column(Text(name), justify="right" if _number(kind) else "left", no_wrap=True, overflow="ellipsis", width=width)
    for row in cells:
        shown.add_row(*row[: len(widths)])
    console.print(shown)
    if len(widths) < len(names):
        console.print(f"not shown: {', '.join(names[len(widths) :])}", markup=False, soft_wrap=True)


def as_of(runs: Mapping[str, int]) -> str:
    """Which state a query has read."""
    return ", ".join(f"as of run {run} of {topology}" for topology, run in runs.items())


def fitting(widths: Sequence[int], room: int) -> list[int]:
    """The widths of the first columns, at least one, that fit beside each other: the widest of them are narrowed, not below ``NARROWEST``."""
    most = WIDEST
    while most > NARROWEST and sum(min(w, most) + _GAP for w in widths) > room:
        most -= 1
    found: list[int] = []
    for width in widths:
        if found and sum(found) + min(width, most) + _GAP * (len(found) + 1) > room:
            break
        found.append(min(width, most))
    return found


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    found = plain(value, str)
    return Text(_safe(json.dumps(found, ensure_ascii=False) if isinstance(found, bool | list | dict) else str(found)))


def _safe(text: str) -> str:
    """The text without letters that would do something to the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: 2 * WIDEST])


def _number(kind: str) -> bool:
    return kind.startswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "U")) and kind != "UUID"
