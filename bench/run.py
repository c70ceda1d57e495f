"""make bench: what a run costs as k of N rows change, beside recomputing everything and beside incremental updates written by hand.

    bench/run.py [N ...] [--out DIR]           measures and writes the report
    bench/run.py --report [--out DIR]          only writes the report from saved results
    bench/run.py 20000 --check [--out DIR]     a small curve; fails if any engine's result differs

Results are saved in DIR/bench/results/*.json, the report in DIR/docs. With --parts (load,duckdb,spark,engine,incremental,storage), saved rows of what
is left out stay as they are; --changes and --repeats make a shorter curve.
"""

import argparse
import sys
from pathlib import Path

from check import differences
from curve import COUNTED, PARTS, Curve, change_sizes
from first_load import warm_up
from folders import PROJECT, Folders
from measure import CONSOLE
from report import write

SIZES = (1_000_000, 10_000_000)
CHECKED = PROJECT / "build" / "bench" / "check"
"""A check leaves the project's own results alone."""


def main() -> int:
    """Does what the arguments say; 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, help="numbers of left rows (default: 1 and 10 million)")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure beside rejoin's curve, separated by commas; may be empty")
    parser.add_argument("--changes", nargs="+", type=int, metavar="K", help="changed rows of the curve (default: 0 to half of N)")
    parser.add_argument("--repeats", type=int, default=COUNTED, help=f"of every small change set (default: {COUNTED})")
    parser.add_argument("--check", action="store_true", help="a few change sets, once each, then compare all results")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, help="where results and report go (default: the project; for a check build/bench/check)")
    asked = parser.parse_args()
    parts = [p for p in asked.parts.split(",") if p]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    folders, failed = Folders((asked.out or (CHECKED if asked.check else PROJECT)).resolve()), False
    if not asked.report:
        warm_up(folders)
        for n in asked.sizes or SIZES:
            if asked.check:
                failed |= not check(n, folders)
            else:
                measure(n, parts, asked.changes or change_sizes(n), asked.repeats, folders)
    for grid in write(folders):
        CONSOLE.print(grid.rich())
    return int(failed)


def measure(n: int, parts: list[str], changed: list[int], repeats: int, folders: Folders) -> None:
    """One size."""
    curve = Curve(n, folders.empty(str(n)), parts, sorted(changed), repeats, folders.results)
    curve.measure()
    curve.check()
    curve.close()
    write(folders)  # after each size: the large ones take long


def check(n: int, folders: Folders) -> bool:
    """A few change sets, once each; false if an engine's result differs."""
    curve = Curve(n, folders.empty(str(n)), PARTS, [0, 100, n // 10], 1, folders.results, tidy_every=3)
    curve.measure()
    wrong = differences(curve)
    curve.close()
    return not wrong


if __name__ == "__main__":
    sys.exit(main())
