"""The results of the curve as tables: what a change set costs, where recomputing is cheaper, where a run's time goes."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from curve import NAMES
from grids import Grid, megabytes, seconds
from measure import Row

from rejoin.plan.model.steps import Verb

DUCKDB, SPARK = NAMES["duckdb"][0], NAMES["spark"][:2]
SIDES = ("left", "right")


def changes(rows: Sequence[Row], engine: str = "rejoin", side: str = "left") -> list[Row]:
    """An engine's change sets of one side, smallest first."""
    return sorted((r for r in rows if r.engine == engine and r.side == side), key=lambda r: r.k)


def seconds_of(rows: Iterable[Row], engine: str, side: str, k: int) -> float | None:
    """Median seconds of one engine's change set, or first load (k: all rows)."""
    return next((r.seconds for r in rows if (r.engine, r.side, r.k) == (engine, side, k)), None)


def full_seconds(rows: Iterable[Row], engines: Sequence[str]) -> float | None:
    """Seconds of the fastest of some full recomputations."""
    return min((r.seconds for r in rows if r.side == "full" and r.engine in engines), default=None)


def engines_grid(n: int, rows: Sequence[Row]) -> Grid:
    """Seconds of every engine that keeps the result up to date."""
    names = [name for name in ("rejoin", *NAMES["engine"], *NAMES["incremental"]) if changes(rows, name)]
    found = {(r.engine, r.side, r.k): seconds(r.seconds) for r in rows}
    keys = [(r.k, side) for side in SIDES for r in changes(rows, side=side)]
    lines = [[f"{k:,}", side, *(found.get((name, side, k), "-") for name in names)] for k, side in keys]
    return Grid(f"{n:,} rows: seconds to apply k changes", ["k", "side", *names], lines, 2)


def full_grid(n: int, rows: Sequence[Row]) -> Grid:
    """What recomputing everything costs."""
    lines = [
        [r.engine, seconds(r.seconds), str(r.repeats), str(r.jobs or "-"), megabytes(r.read), megabytes(r.written), f"{r.load:.1f}"]
        for r in rows
        if r.side == "full"
    ]
    columns = ["engine", "seconds", "repeats", "Spark jobs", "MB read", "MB written", "load"]
    return Grid(f"{n:,} rows: recomputing everything", columns, lines)


def runs_grid(n: int, rows: Sequence[Row]) -> Grid:
    """The runs of rejoin in detail."""
    duckdb, spark = full_seconds(rows, [DUCKDB]), full_seconds(rows, SPARK)
    lines = []
    for r in (r for side in SIDES for r in changes(rows, side=side)):
        ratios = [f"{r.seconds / full:.2f}" if full else "-" for full in (duckdb, spark)]
        line = [f"{r.k:,}", r.side, r.way or "-", seconds(r.seconds), seconds(r.p95), str(r.repeats), str(r.jobs)]
        lines.append([*line, megabytes(r.read), megabytes(r.written), *ratios, f"{r.load:.1f}"])
    columns = [
        "k",
        "side",
        "way",
        "seconds",
        "p95",
        "repeats",
        "Spark jobs",
        "MB read",
        "MB written",
        "x DuckDB full",
        "x Spark full",
        "load",
    ]
    return Grid(f"{n:,} rows: rejoin's runs", columns, lines, 3)


def budget_grid(n: int, rows: Sequence[Row]) -> Grid:
    """Seconds (Spark jobs) a stage of the median run, of the slower one of two."""
    runs = [r for side in ("load", *SIDES) for r in changes(rows, side=side)]
    known = [str(v) for v in Verb if v is not Verb.PUBLISH]
    verbs = known + sorted({_verb(step) for r in runs for step in r.stages} - {*known, str(Verb.PUBLISH)})
    lines = []
    for r in runs:
        parts = [[spent for step, spent in r.stages.items() if _verb(step) == verb] for verb in verbs]
        cells = [f"{sum(s for s, _ in part):.2f} ({sum(j for _, j in part)})" if part else "-" for part in parts]
        lines.append([f"{r.k:,}", r.side, *cells])
    return Grid(f"{n:,} rows: seconds (Spark jobs) a stage", ["k", "side", *verbs], lines, 2)


def load_grid(curves: dict[int, list[Row]]) -> Grid:
    """First loads, and rejoin's against the plain Spark job."""
    lines = []
    for n, rows in curves.items():
        plain = next((r.seconds for r in rows if r.engine in NAMES["load"]), None)
        for r in (r for r in rows if r.side == "load"):
            ratio = f"{r.seconds / plain:.2f}" if plain and r.engine in ("rejoin", *NAMES["engine"], *NAMES["load"]) else "-"
            cells = [seconds(r.seconds), ratio, f"{n / r.seconds:,.0f}", megabytes(r.read), megabytes(r.written), f"{r.load:.1f}"]
            lines.append([f"{n:,}", r.engine, *cells])
    return Grid("First load", ["N", "engine", "seconds", "x plain Spark", "rows a second", "MB read", "MB written", "load"], lines, 2)


def memory_grid(curves: dict[int, list[Row]]) -> Grid:
    """The most memory of the process in rejoin's largest runs."""
    largest = [
        (n, r)
        for n, rows in curves.items()
        for side in ("load", *SIDES)
        for r in changes(rows, side=side)
        if side == "load" or r.k == n // 2
    ]
    lines = [
        [f"{n:,}", "first load" if r.side == "load" else f"half of all {r.side} rows", megabytes(r.resident)]
        for n, r in largest
        if r.resident
    ]
    return Grid("Memory of the process", ["N", "what", "MB resident at most"], lines, 2)


def tidy_grid(curves: dict[int, list[Row]]) -> Grid:
    """The compaction after the first load, and the median of those between change sets."""
    lines = []
    for n, rows in curves.items():
        for engine in dict.fromkeys(r.engine for r in rows if r.side == "tidy"):
            tidied = [r for r in rows if r.engine == engine and r.side == "tidy"]
            first, later = ([r.seconds for r in tidied if bool(r.k) is loaded] for loaded in (True, False))
            cells = [seconds(statistics.median(spent)) if spent else "-" for spent in (first, later)]
            lines.append([f"{n:,}", engine, *cells, str(len(later))])
    return Grid("Compactions: seconds", ["N", "engine", "after the first load", "later", "times"], lines, 2)


def crossover_grid(curves: dict[int, list[Row]]) -> Grid:
    """From which k on recomputing is cheaper than a run."""
    lines = []
    for n, rows in curves.items():
        for side in SIDES:
            runs = [r for r in changes(rows, side=side) if r.k]
            full = [full_seconds(rows, names) for names in ([DUCKDB], SPARK)]
            if runs and None not in full:
                lines.append([f"{n:,}", side, *(crossover(runs, f) for f in full if f is not None)])
    return Grid("Recomputing is cheaper than a run from this k on", ["N", "side", "in DuckDB", "in Spark"], lines, 2)


def crossover(runs: Sequence[Row], full: float) -> str:
    """The smallest k whose run takes longer than ``full``, between two measured ones on logarithmic scales."""
    if runs[0].seconds >= full:
        return f"less than {runs[0].k:,}"
    for before, after in pairwise(runs):
        if after.seconds >= full:
            share = math.log(full / before.seconds) / math.log(after.seconds / before.seconds)
            k = before.k * (after.k / before.k) ** share
            return f"{float(f'{k:.2g}'):,.0f} ({k / runs[0].n:.1%})"
    return f"more than {runs[-1].k:,}"


def _verb(step: str) -> str:
    return step.split(".", maxsplit=1)[0]
