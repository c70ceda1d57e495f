"""The results beside the curve as tables: storage, many runs, wide rows, many outputs, strain."""

import statistics
from collections.abc import Sequence
from typing import Any

from grids import Grid, megabytes, seconds
from measure import Row, quantile
from storage import KEYS, OVERHEAD

Rows = dict[int, list[dict[str, Any]]]
"""N -> rows as they were saved."""


def storage_grid(found: Rows) -> Grid:
    """What rejoin keeps."""
    lines = []
    for n, rows in found.items():
        for r in rows:
            now = sum(r["tables"].values())
            cells = [f"{r['subscriptions']:.1f}", megabytes(now), megabytes(r["plain"]), f"{now / r['plain']:.2f}", megabytes(r["kept"])]
            lines.append([f"{n:,}", r["when"], *cells])
    subscription = f"bytes a subscription (goal {KEYS + OVERHEAD})"
    columns = ["N", "when", subscription, "MB in use", "MB as plain Parquet", "ratio", "MB with old snapshots"]
    return Grid("Storage", columns, lines, 2)


def steady_grid(found: Rows) -> Grid:
    """Many runs in a row, compactions apart."""
    lines = []
    for n, rows in found.items():
        runs, compactions = ([r for r in rows if r["kind"] == kind] for kind in ("run", "compaction"))
        spent = [r["seconds"] for r in runs]
        _, first, last = quarters(rows)
        written = sum(r["written"] for r in rows) / sum(r["changes"] for r in runs)
        line = [f"{n:,}", str(len(runs)), seconds(quantile(spent, 0.5)), seconds(quantile(spent, 0.95)), seconds(first), seconds(last)]
        compaction = seconds(statistics.median(r["seconds"] for r in compactions)) if compactions else "-"
        share = sum(r["seconds"] for r in compactions) / len(runs)
        lines.append([*line, f"{last / first - 1:+.0%}", compaction, seconds(share), f"{written:,.0f}"])
    columns = ["N", "runs", "p50", "p95", "first quarter", "last quarter", "drift"]
    columns += ["a compaction", "compaction a run", "bytes written a change"]
    return Grid("Many runs in a row: seconds", columns, lines)


def commands_grid(rows: Sequence[dict[str, Any]]) -> Grid:
    """What a person waits for."""
    lines = [
        [f"`rejoin {r['what'].partition(',')[0]}`{''.join(r['what'].partition(',')[1:])}", *_spent(r)]
        for r in rows
        if r["part"] == "commands"
    ]
    return Grid("Commands", ["command", "seconds", "longest", "seconds of CPU", "times", "load"], lines)


def dags_grid(rows: Sequence[dict[str, Any]]) -> Grid:
    """DAG runs beside their goals."""
    found = [r for r in rows if r["part"] == "dags"]
    lines = [[r["what"], *_spent(r), "-" if r["goal"] is None else f"{r['goal']:.0f}"] for r in found]
    return Grid("A DAG run, from trigger to end", ["what", "seconds", "longest", "seconds of CPU", "times", "load", "goal"], lines)


def tasks_grid(rows: Sequence[dict[str, Any]]) -> Grid:
    """How long the tasks of these DAG runs took."""
    found = [r for r in rows if r["tasks"]]
    names = list(dict.fromkeys(task for r in found for task in r["tasks"]))
    lines = [[name, *(seconds(r["tasks"].get(name)) for r in found)] for name in names]
    return Grid("Seconds per task of these runs", ["task", *(r["what"] for r in found)], lines)


def _spent(row: dict[str, Any]) -> list[str]:
    taken = row["seconds"]
    return [
        seconds(statistics.median(taken)),
        seconds(max(taken)),
        seconds(statistics.median(row["cpu"])),
        str(len(taken)),
        f"{row['load']:.1f}",
    ]


def quarters(rows: Sequence[dict[str, Any]]) -> tuple[int, float, float]:
    """How many runs there were, and the median seconds of the first and of the last quarter of them."""
    spent = [r["seconds"] for r in rows if r["kind"] == "run"]
    quarter = max(1, len(spent) // 4)
    return len(spent), statistics.median(spent[:quarter]), statistics.median(spent[-quarter:])


def rows_grid(title: str, found: dict[int, list[Row]]) -> Grid:
    """Any rows, as they are."""
    lines = []
    for n, rows in found.items():
        for r in rows:
            cells = [seconds(r.seconds), seconds(r.p95), str(r.jobs or "-"), megabytes(r.read), megabytes(r.written), f"{r.load:.1f}"]
            lines.append([f"{n:,}", r.side, r.engine, f"{r.k:,}", *cells])
    columns = ["N", "what", "engine", "rows", "seconds", "p95", "Spark jobs", "MB read", "MB written", "load"]
    return Grid(title, columns, lines, 3)


def strain_grid(found: Rows) -> Grid:
    """What strains a join, with the memory that it took."""
    lines = []
    for n, rows in found.items():
        for r in rows:
            cells = [f"{r['changed']:,}", seconds(r["seconds"]), str(r["jobs"] or "-"), megabytes(r["python"]), megabytes(r["jvm"])]
            lines.append([f"{n:,}", r["what"], r["way"], *cells])
    return Grid("Strain", ["N", "what", "way", "changed rows", "seconds", "Spark jobs", "MB Python", "MB JVM"], lines, 3)


def filled(grids: Sequence[Grid]) -> list[Grid]:
    """Those with at least one row."""
    return [grid for grid in grids if grid.rows]
