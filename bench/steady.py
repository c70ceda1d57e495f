"""Many runs in a row: does a run cost the same after two hundred of them?

    bench/steady.py [N] [--runs 200] [--changes 1000] [--every 20] [--out DIR]

Every run applies as many uniformly random changes of orders; after every 20 runs ``rejoin compact``, whose time is counted apart.
"""

import argparse
import time
from pathlib import Path

from engines import Lake, lake_of
from folders import PROJECT, Folders
from measure import CONSOLE, Spent, save, spend, tracked
from report import write
from work import Work


def main() -> None:
    """Measures, checks the result, saves, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=10_000_000, help="left rows (default: 10 million)")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--changes", type=int, default=1_000, help="changed left rows a run")
    parser.add_argument("--every", type=int, default=20, help="runs between two compactions")
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders = Folders(asked.out.resolve())
    work = Work(asked.n, folders.empty("steady"))
    lake = lake_of(work.root)
    work.first_rows()
    lake.run()
    work.landed()
    rows = measure(work, lake, asked.runs, asked.changes, asked.every)
    lake.check()
    work.close()
    save(rows, folders.results / f"steady-{asked.n}.json")
    for grid in write(folders):
        CONSOLE.print(grid.rich())


def measure(work: Work, lake: Lake, runs: int, changes: int, every: int) -> list[dict[str, object]]:
    """One row a run, and one a compaction."""
    rows = []
    for number in tracked(range(1, runs + 1), "runs"):
        work.change("left", changes)
        rows.append(told("run", number, changes, spend(lake.run)))
        work.landed()
        if number % every == 0:
            rows.append(told("compaction", number, changes, spend(lake.compact)))
    return rows


def told(kind: str, number: int, changes: int, spent: Spent) -> dict[str, object]:
    """One row, printed as well."""
    CONSOLE.print(f"{time.strftime('%H:%M:%S')} {kind} {number}: {spent.seconds:.2f} s, load {spent.load:.1f}", highlight=False)
    return {
        "kind": kind,
        "run": number,
        "changes": changes,
        "seconds": round(spent.seconds, 4),
        "jobs": spent.done.jobs,
        "read": spent.read,
        "written": spent.written,
        "load": round(spent.load, 1),
    }


if __name__ == "__main__":
    main()
