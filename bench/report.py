"""From the saved results to docs/benchmarks.md and its pictures. The words are in benchmarks.template.md, the numbers come from here."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from curve_grids import budget_grid, crossover_grid, engines_grid, full_grid, load_grid, memory_grid, runs_grid, tidy_grid
from folders import Folders
from goals import Results, goals_grid
from grids import Grid
from limits import sentences
from measure import saved_rows
from other_grids import commands_grid, dags_grid, filled, rows_grid, steady_grid, storage_grid, strain_grid, tasks_grid
from plots import plot_curves, plot_steady

TEMPLATE = Path(__file__).parent / "benchmarks.template.md"
NONE_YET = "Not measured yet.\n"

T = TypeVar("T")


def write(folders: Folders) -> list[Grid]:
    """Writes page and pictures from all saved results; returns the page's tables."""
    curves = _by_size(folders.results, "curve", saved_rows)
    steady, storage = (_by_size(folders.results, name, _plain) for name in ("steady", "storage"))
    fanout, subscribers, joins, wide = (_by_size(folders.results, name, saved_rows) for name in ("fanout", "subscribers", "joins", "wide"))
    waited = _plain(folders.results / "commands.json") if (folders.results / "commands.json").is_file() else []
    sections = {
        "goals": [goals_grid(Results(curves, storage, steady, fanout, subscribers, joins, wide, waited))],
        "crossovers": [crossover_grid(curves)],
        "curves": [grid for n, rows in curves.items() for grid in (engines_grid(n, rows), full_grid(n, rows), runs_grid(n, rows))],
        "budgets": [budget_grid(n, rows) for n, rows in curves.items()],
        "loads": [load_grid(curves)],
        "memory": [memory_grid(curves)],
        "storage": [storage_grid(storage)],
        "steady": [steady_grid(steady), tidy_grid(curves)],
        "wide": [rows_grid("100 columns, by kind of key", wide)],
        "fanout": [
            rows_grid("15 outputs over five tables", fanout),
            rows_grid("One renamed customer and its orders", subscribers),
        ],
        "joins": [rows_grid("Joins by time and outer joins", joins)],
        "commands": [commands_grid(waited), dags_grid(waited), tasks_grid(waited)],
        "strain": [strain_grid(_by_size(folders.results, "strain", _plain))],
    }
    texts = {name: "\n".join(g.markdown() for g in filled(grids)) or NONE_YET for name, grids in sections.items()}
    texts |= {"limits": sentences(curves) or NONE_YET, "curve_picture": "", "steady_picture": ""}
    if curves:
        plot_curves(curves, folders.images / "benchmarks.png")
        texts["curve_picture"] = "![Seconds against changed rows, one panel a size](images/benchmarks.png)"
    if steady:
        plot_steady(steady, folders.images / "benchmarks-steady.png")
        texts["steady_picture"] = "![Seconds of every run](images/benchmarks-steady.png)"
    page = Template(TEMPLATE.read_text()).substitute(texts)
    folders.page.parent.mkdir(parents=True, exist_ok=True)
    folders.page.write_text(re.sub(r"\n{3,}", "\n\n", page).rstrip() + "\n")
    return filled([grid for grids in sections.values() for grid in grids])


def _by_size(folder: Path, name: str, read: Callable[[Path], T]) -> dict[int, T]:
    """N -> results of one benchmark, smallest first."""
    files = {int(file.stem.removeprefix(f"{name}-")): file for file in folder.glob(f"{name}-*.json")}
    return {n: read(files[n]) for n in sorted(files)}


def _plain(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return rows
