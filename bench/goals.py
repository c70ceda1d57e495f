"""What was asked of rejoin's speed and size, and what the results say to it: ratios within one run of the benchmark."""

from collections.abc import Iterator, Sequence

from curve import NAMES
from curve_grids import DUCKDB, SPARK, changes, full_seconds
from grids import Grid
from measure import Row
from other_grids import Rows
from storage import KEYS, OVERHEAD

CHANGES, MANY = 1_000, 100_000
Goal = tuple[str, float, float]
"""What is compared, the goal (at most), and what was measured."""


def goals_grid(curves: dict[int, list[Row]], storage: Rows) -> Grid:
    """A line for each goal whose measurement is there."""
    lines = []
    for n, rows in curves.items():
        for what, goal, found in [*_of_the_curve(n, rows), *_of_the_storage(storage.get(n, []))]:
            lines.append([f"{n:,}", what, f"{goal:.2f}", f"{found:.2f}", "yes" if found <= goal else "**no**"])
    return Grid("Goals", ["N", "what", "goal, at most", "measured", "met"], lines, 2)


def _of_the_curve(n: int, rows: Sequence[Row]) -> Iterator[Goal]:
    duckdb, spark = full_seconds(rows, [DUCKDB]), full_seconds(rows, SPARK)
    idle = _seconds(rows, "rejoin", "left", 0)
    if idle is not None:
        yield "a run without changes: seconds", 1.0, idle
    for side in ("left", "right"):
        run, merge = (_seconds(rows, engine, side, CHANGES) for engine in ("rejoin", NAMES["incremental"][1]))
        if run is not None and duckdb is not None and n >= 10_000_000:
            yield f"{CHANGES:,} {side} changes / DuckDB recomputing everything", 0.25 if n >= 50_000_000 else 1.0, run / duckdb
        if run is not None and merge is not None:
            yield f"{CHANGES:,} {side} changes / Spark MERGE by hand (update only)", 1.0, run / merge
        many = _seconds(rows, "rejoin", side, MANY)
        if many is not None and spark is not None and n >= 10_000_000:
            yield f"{MANY:,} {side} changes / Spark recomputing everything", 1 / 3, many / spark
    mine, plain = (_seconds(rows, engine, "load", n) for engine in ("rejoin", *NAMES["load"]))
    if mine is not None and plain is not None:
        yield "first load / a plain Spark job that writes the same tables", 1.5, mine / plain
        for side in ("left", "right"):
            half = _seconds(rows, "rejoin", side, n // 2)
            if half is not None:
                yield f"half of all {side} rows changed / that Spark job", 1.3, half / plain


def _of_the_storage(rows: Sequence[dict[str, object]]) -> Iterator[Goal]:
    for r in rows[:1]:
        tables, plain = r["tables"], r["plain"]
        assert isinstance(tables, dict)
        assert isinstance(plain, int)
        feed = sum(size for table, size in tables.items() if table.endswith("__changes"))
        yield "bytes a subscription", KEYS + OVERHEAD, float(str(r["subscriptions"]))
        yield "all tables / source and output as plain Parquet", 2.5, sum(tables.values()) / plain
        yield "the same without the feed of changes", 2.5, (sum(tables.values()) - feed) / plain


def _seconds(rows: Sequence[Row], engine: str, side: str, k: int) -> float | None:
    return next((r.seconds for r in changes(rows, engine, side) if r.k == k), None)
