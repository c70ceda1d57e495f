"""What was asked of rejoin's speed and size, and what the results say to it: ratios within one run of the benchmark."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from curve import NAMES
from curve_grids import DUCKDB, SPARK, full_seconds, seconds_of
from grids import Grid
from limits import CHANGES
from measure import Row
from other_grids import Rows, quarters
from storage import KEYS, OVERHEAD

GIB = 1 << 30
MANY, MERGED = 100_000, (500_000, 1_000_000)
SMALL, LARGE = 1_000_000, 50_000_000
"""The same changes should cost about the same in both."""
Goal = tuple[str, float, float]
"""What is compared, the goal (at most), and what was measured."""


@dataclass(frozen=True)
class Results:
    """The saved results by N."""

    curves: dict[int, list[Row]]
    storage: Rows
    steady: Rows
    fanout: dict[int, list[Row]]
    subscribers: dict[int, list[Row]]
    joins: dict[int, list[Row]]
    wide: dict[int, list[Row]]
    commands: list[dict[str, Any]]


def goals_grid(found: Results) -> Grid:
    """A line for each goal whose measurement is there."""
    goals: list[tuple[int, Goal]] = []
    for n, rows in found.curves.items():
        beside_small = _beside(rows, found.curves.get(SMALL, [])) if n >= LARGE else ()
        goals += [(n, goal) for goal in (*_of_the_curve(n, rows), *beside_small, *_of_the_storage(found.storage.get(n, [])))]
    goals += [(n, _of_many_runs(rows)) for n, rows in found.steady.items()]
    goals += [(n, goal) for n, rows in found.fanout.items() for goal in _of_many_outputs(rows)]
    goals += [(n, goal) for n, rows in found.subscribers.items() for goal in _of_many_subscribers(n, rows)]
    goals += [(n, goal) for n, rows in found.joins.items() for goal in _of_joins(n, rows, found.joins.get(SMALL, []))]
    goals += [(n, goal) for n, rows in found.wide.items() if n >= SMALL for goal in _of_wide_rows(rows)]
    goals += [(n, goal) for n, goal in _of_commands(found.commands)]
    lines = [
        [f"{n:,}" if n else "-", what, f"{goal:.2f}", f"{is_:.2f}", "yes" if is_ <= goal else "**no**"] for n, (what, goal, is_) in goals
    ]
    return Grid("Goals", ["N", "what", "goal, at most", "measured", "met"], lines, 2)


def _of_the_curve(n: int, rows: Sequence[Row]) -> Iterator[Goal]:
    duckdb, spark = full_seconds(rows, [DUCKDB]), full_seconds(rows, SPARK)
    idle = seconds_of(rows, "rejoin", "left", 0)
    if idle is not None:
        yield "a run without changes: seconds", 1.0, idle
    for side in ("left", "right"):
        run, many = (seconds_of(rows, "rejoin", side, k) for k in (CHANGES, MANY))
        if duckdb is not None and n >= 10_000_000:
            if run is not None:
                yield f"{CHANGES:,} {side} changes / DuckDB recomputing everything", 0.12 if n >= LARGE else 0.45, run / duckdb
            if many is not None and n >= LARGE:
                yield f"{MANY:,} {side} changes / DuckDB recomputing everything", 0.6, many / duckdb
    for engine in ("rejoin", *NAMES["engine"]):
        yield from _of_bulk(engine, n, rows, spark)
    yield from _of_the_memory(n, rows)


def _of_bulk(engine: str, n: int, rows: Sequence[Row], spark: float | None) -> Iterator[Goal]:
    """Of many changes, and of small ones beside MERGE, by either engine. ``spark``: seconds of recomputing everything there."""
    by = "" if engine == "rejoin" else " (by Spark)"
    for side in ("left", "right"):
        many = seconds_of(rows, engine, side, MANY)
        if many is not None and spark is not None and n >= 10_000_000:
            yield f"{MANY:,} {side} changes{by} / Spark recomputing everything", 0.3, many / spark
    for k in (CHANGES, MANY, *MERGED):
        run, merge = (seconds_of(rows, name, "left", k) for name in (engine, NAMES["incremental"][1]))
        if run is not None and merge is not None:
            yield f"{k:,} left changes{by} / Spark MERGE by hand (update only)", 0.8, run / merge
    mine, plain = (seconds_of(rows, name, "load", n) for name in (engine, *NAMES["load"]))
    if mine is not None and plain is not None:
        yield f"first load{by} / a plain Spark job that writes the same tables", 0.8, mine / plain
        for side in ("left", "right"):
            half = seconds_of(rows, engine, side, n // 2)
            if half is not None:
                yield f"half of all {side} rows changed{by} / that Spark job", 0.8, half / plain


def _of_the_memory(n: int, rows: Sequence[Row]) -> Iterator[Goal]:
    """Of the largest tables only: others fit into memory as a whole."""
    for side, k, what in (
        ("load", n, "first load"),
        ("left", n // 2, "half of all left rows"),
        ("right", n // 2, "half of all right rows"),
    ):
        for r in rows:
            if n >= LARGE and (r.engine, r.side, r.k) == ("rejoin", side, k) and r.resident:
                yield f"{what}: GiB of resident memory", 6.0, r.resident / GIB


def _beside(large: Sequence[Row], small: Sequence[Row]) -> Iterator[Goal]:
    """Without ``resolve``, which writes the output."""
    for side in ("left", "right"):
        runs = [r for rows in (large, small) for r in rows if (r.engine, r.k, r.side) == ("rejoin", CHANGES, side)]
        if len(runs) == 2:
            here, there = (sum(seconds for step, (seconds, _) in r.stages.items() if not step.startswith("resolve")) for r in runs)
            yield f"{CHANGES:,} {side} changes, all stages but resolve / the same at {SMALL:,} rows", 1.5, here / there


def _of_the_storage(rows: Sequence[dict[str, Any]]) -> Iterator[Goal]:
    for r in rows[:1]:  # after the first load
        tables, plain = r["tables"], r["plain"]
        feed = sum(size for table, size in tables.items() if table.endswith("__changes"))
        yield "bytes a subscription", KEYS + OVERHEAD, r["subscriptions"]
        yield "all tables / source and output as plain Parquet", 2.5, sum(tables.values()) / plain
        yield "the same without the feed of changes", 2.5, (sum(tables.values()) - feed) / plain


def _of_many_runs(rows: Sequence[dict[str, Any]]) -> Goal:
    runs, first, last = quarters(rows)
    return f"{runs} runs in a row: the last quarter's median / the first quarter's", 1.0, last / first


def _of_many_outputs(rows: Sequence[Row]) -> Iterator[Goal]:
    duckdb = full_seconds(rows, [DUCKDB])
    for r in rows:
        if (r.engine, r.side) == ("rejoin", "change") and duckdb is not None:
            yield f"15 outputs over five tables, {r.k:,} changes / DuckDB recomputing everything", 2.0, r.seconds / duckdb


def _of_wide_rows(rows: Sequence[Row]) -> Iterator[Goal]:
    for r in rows:
        full = next((f.seconds for f in rows if (f.engine, f.side) == (DUCKDB, r.side)), None)
        if r.engine == "rejoin" and full is not None:
            yield f"100 columns, {r.side} keys, {r.k:,} changes / DuckDB recomputing everything", 0.5, r.seconds / full


def _of_commands(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Goal]]:
    for r in rows:
        if r["what"] == "run shop.py, one changed row":
            yield 0, ("`rejoin run` of one changed row in a new process, small lake: seconds", 3.0, statistics.median(r["seconds"]))


def _of_many_subscribers(n: int, rows: Sequence[Row]) -> Iterator[Goal]:
    duckdb = full_seconds(rows, [DUCKDB])
    for r in rows:
        if (r.engine, r.side) == ("rejoin", "right") and duckdb is not None and n >= 10_000_000:
            yield f"one renamed customer of {r.k:,} orders / DuckDB recomputing everything", 1.0, r.seconds / duckdb


def _of_joins(n: int, rows: Sequence[Row], small: Sequence[Row]) -> Iterator[Goal]:
    """Joins of streams and outer joins; the seconds are asked of 10 million rows."""
    found = {(r.engine, r.side): r for r in rows}
    pairs, tables = found.get(("rejoin", "windows")), found.get(("tables", "windows"))
    if pairs is not None and tables is not None:
        new = f"two streams, {pairs.k:,} new records"
        yield f"{new}: bytes read / bytes stored", 0.02, pairs.read / tables.written
        yield f"{new}: seconds", 1.5, pairs.seconds
        before = next((r for r in small if (r.engine, r.side) == ("rejoin", "windows")), None)
        if before is not None and n > SMALL:
            yield f"{new} / the same at {SMALL:,} rows", 1.3, pairs.seconds / before.seconds
        load, computed = found["rejoin", "windows, load"], found["duckdb full", "windows, load"]
        yield "two streams, first load / DuckDB's join of the same records", 2.5, load.seconds / computed.seconds
    for kind in ("full", "same key"):
        for side in ("left", "right"):
            mine, left = (found.get(("rejoin", f"{k}, {side} changes")) for k in (kind, "left"))
            if mine is not None and left is not None:
                yield f"{kind} join, {mine.k:,} {side} changes / the left join by a foreign key", 1.2, mine.seconds / left.seconds
    then, everything = (found.get((engine, "as of event time")) for engine in ("rejoin", "duckdb full"))
    if then is not None and everything is not None:
        yield f"as of event time, {then.k:,} new records: seconds", 1.0, then.seconds
        yield "the same / DuckDB's ASOF join of everything", 0.2, then.seconds / everything.seconds
