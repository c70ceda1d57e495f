"""When not to use rejoin, as sentences with the measured numbers."""

from collections.abc import Sequence

from curve import NAMES
from curve_grids import DUCKDB, SPARK, changes, crossover, full_seconds, seconds_of
from grids import seconds
from measure import Row

CHANGES = 1_000


def sentences(curves: dict[int, list[Row]]) -> str:
    """A Markdown list; empty without results."""
    found = [line for n, rows in curves.items() for line in _against_full(n, rows)]
    for tell in (_against_indexes, _of_the_first_load):  # each of the largest size that can tell
        found += next((told for n in sorted(curves, reverse=True) if (told := tell(n, curves[n]))), [])
    return "\n".join(f"- {line}" for line in found)


def _against_full(n: int, rows: Sequence[Row]) -> list[str]:
    runs = [r for r in changes(rows) if r.k]
    run = seconds_of(rows, "rejoin", "left", CHANGES)
    duckdb, spark = full_seconds(rows, [DUCKDB]), full_seconds(rows, SPARK)
    if run is None or duckdb is None:
        return []
    told = f"{n:,} rows: a run of {CHANGES:,} changes took {seconds(run)} s, recomputing everything {seconds(duckdb)} s in DuckDB"
    told += "." if spark is None else f" and {seconds(spark)} s in Spark."
    if run > duckdb:
        told += " If this machine and DuckDB are enough, recompute."
    elif spark is not None:
        told += f" Recomputing was cheaper from {crossover(runs, duckdb)} changes on in DuckDB, from {crossover(runs, spark)} in Spark."
    return [told]


def _against_indexes(n: int, rows: Sequence[Row]) -> list[str]:
    run, other = (seconds_of(rows, engine, "left", CHANGES) for engine in ("rejoin", NAMES["incremental"][2]))
    if run is None or other is None or other > run:
        return []
    told = f"{n:,} rows: a DuckDB file with indexes applied the same {CHANGES:,} changes in {seconds(other)} s"
    told += f" (rejoin: {seconds(run)} s)."
    return [f"{told} Where one machine and one writer are enough, prefer a database."]


def _of_the_first_load(n: int, rows: Sequence[Row]) -> list[str]:
    mine, plain = (seconds_of(rows, engine, "load", n) for engine in ("rejoin", *NAMES["load"]))
    if mine is None or plain is None:
        return []
    told = f"{n:,} rows: the first load took {seconds(mine)} s, {mine / plain:.1f} times a plain Spark job that writes the same tables."
    return [f"{told} A result that is needed once is not worth it."]
