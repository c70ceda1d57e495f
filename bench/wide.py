"""Left rows of 100 columns and keys of several kinds: 1,000 changes, and recomputing everything.

    bench/wide.py [N] [--keys BIGINT STRING UUID time] [--out DIR]

Keys: BIGINT, STRING, UUID (random text), time (text that begins with a time; mostly the newest hundredth of the rows changes).
"""

import argparse
from pathlib import Path

from engines import Lake, lake_of
from first_load import warm_up
from folders import PROJECT, Folders
from full import full_engines
from measure import CONSOLE, Row, Spent, row, save, spend, tracked
from report import write
from work import VALUES, Shape, Work

CHANGES = 1_000
COUNTED = 5
COLUMNS = 100

_MORE = (
    ("INT", "(hash(p + {i}) % 1000)::INT"),
    ("STRING", "'value ' || hash(p * {i})"),
    ("BIGINT", "(hash(p) % 1000003 * {i})::BIGINT"),
    ("DOUBLE", "(hash(p + {i}) % 10000) / 7.0::DOUBLE"),
    ("STRING", "'kind ' || (p % {i})"),
)
_UUID = "md5(p::VARCHAR)::UUID::VARCHAR"
_MILLIS = "(1700000000000 + p * 250)"
KEYS = {
    "BIGINT": ("BIGINT", "p"),
    "STRING": ("STRING", "'order ' || p"),
    "UUID": ("STRING", _UUID),
    "time": ("STRING", f"format('{{:08x}}-{{:04x}}-7', {_MILLIS} // 65536, {_MILLIS} % 65536) || substr({_UUID}, 16)"),
}


def main() -> None:
    """Measures, checks the results, saves, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=1_000_000, help="left rows (default: 1 million)")
    parser.add_argument("--keys", nargs="+", choices=KEYS, default=list(KEYS))
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders, rows = Folders(asked.out.resolve()), []
    warm_up(folders)
    for key in tracked(asked.keys, "kinds of keys"):
        measure(asked.n, key, folders, rows)
    for grid in write(folders):
        CONSOLE.print(grid.rich())


def measure(n: int, key: str, folders: Folders, rows: list[Row]) -> None:
    """Adds the rows of one kind of key, whose side is the kind, to ``rows``; saves all, then checks the output, which takes longer."""
    type_, sql = KEYS[key]
    work = Work(n, folders.empty(f"wide-{key}"), shape=Shape(type_, sql, VALUES + more_values(), recent=key == "time"))
    lake = lake_of(work.root)
    work.first_rows()
    rows.append(row("rejoin", n, n, f"{key}, load", [spend(lake.run)]))
    work.landed()
    rows.append(row("rejoin", n, min(CHANGES, n // 20), key, changes(work, lake)))
    work.refresh()
    for engine in full_engines(work, lake.spark, workaround=False):
        spent = [spend(engine.recompute)]
        for _ in range(2):
            engine.clear()
            spent.append(spend(engine.recompute))
        engine.clear()
        rows.append(row(engine.name, n, n, key, spent[1:]))
    save(rows, folders.results / f"wide-{n}.json")
    lake.check()
    work.close()


def changes(work: Work, lake: Lake) -> list[Spent]:
    """Some runs of ``CHANGES`` left changes each (fewer of a small table); a first one warms up."""
    spent = []
    for _ in range(1 + COUNTED):
        work.change("left", min(CHANGES, work.n // 20))
        spent.append(spend(lake.run))
        work.landed()
    return spent[1:]


def more_values() -> tuple[tuple[str, str, str], ...]:
    """Columns to make 100 of them, with the key, the foreign key and the note."""
    kinds = [_MORE[i % len(_MORE)] for i in range(COLUMNS - len(VALUES) - 3)]
    return tuple((f"c{i}", type_, sql.format(i=i + 2)) for i, (type_, sql) in enumerate(kinds))


if __name__ == "__main__":
    main()
