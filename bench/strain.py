"""What strains a foreign-key join: a right row with most of the left rows, null foreign keys, one row changed again and again, a mass delete.

    bench/strain.py [N] [--out DIR]

Of N left rows (default: 2 million) half have customer 1 and every tenth of the others has none. Each row of the result is one run; memory is
the highest that was seen, of Python and of its JVM (started with 4 GiB). In the end the output is compared with its SQL.
"""

import argparse
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psutil
from engines import Lake, lake_of
from first_load import warm_up
from folders import PROJECT, Folders
from landing import Landing
from measure import CONSOLE, jvms, save, spend, tracked
from report import write
from work import CUSTOMER, TABLE_OF, Shape

TIMES = 100_000
"""How often one left row changes in one batch."""
WHOSE = "CASE WHEN p % 2 = 0 THEN 1 WHEN p % 10 = 1 THEN NULL ELSE 2 + hash(p) % {customers} END"


class Strain:
    """One lake, and the change events that are landed for it."""

    def __init__(self, n: int, root: Path) -> None:
        self.n, self.customers = n, n // 20
        self._root, self._db = root, duckdb.connect()
        self._landing = Landing(root / "landing", tuple(TABLE_OF.values()), self._db)
        (root / "topology.py").write_text(Shape().topology())
        self.lake: Lake = lake_of(root)

    def load(self) -> None:
        """All rows."""
        self._orders("c", self.n, "p", WHOSE.format(customers=self.customers), "note")
        self._customers("c", self.customers, "customer")

    def renamed(self) -> None:
        """The customer of half of the orders."""
        self._customers("u", 1, "renamed")

    def again_and_again(self) -> None:
        """One order, ``TIMES`` times."""
        self._orders("u", TIMES, "5", "2 + p % 100", "changed")

    def mass_delete(self) -> None:
        """Every second order of every kind."""
        self._orders("d", self.n // 2, "CASE WHEN p % 2 = 0 THEN 2 * p ELSE 2 * p - 1 END", "NULL", "")

    def gone(self) -> None:
        """The customer of half of the orders that are left."""
        self._customers("d", 1, "")

    def close(self) -> None:
        """Removes everything."""
        self._db.close()
        shutil.rmtree(self._root)

    def _orders(self, op: str, count: int, key: str, customer: str, note: str) -> None:
        """``count`` events; ``key`` and ``customer`` are SQL over the number ``p`` of each, from 0 on."""
        self._landing.events("orders", op, f"(SELECT {Shape(key=key).select(f'({customer})', note)} FROM range({count}) r(p))", count)

    def _customers(self, op: str, count: int, name: str) -> None:
        """``count`` events of as many customers, from 1 on."""
        self._landing.events("customers", op, f"(SELECT {CUSTOMER.format(name=name)} FROM range(1, {count} + 1) r(p))", count)


def main() -> None:
    """Measures, checks the result, saves, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=2_000_000, help="left rows (default: 2 million)")
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders = Folders(asked.out.resolve())
    warm_up(folders)
    strain = Strain(asked.n, folders.empty("strain"))
    steps: list[tuple[str, Callable[[], None]]] = [
        ("first load", strain.load),
        ("rename the customer of half of the orders", strain.renamed),
        (f"change one order {TIMES:,} times", strain.again_and_again),
        ("delete half of the orders", strain.mass_delete),
        ("delete the customer of half of the rest", strain.gone),
    ]
    rows: list[dict[str, object]] = []
    for what, step in tracked(steps, "strain"):
        step()
        with peaks() as highest:
            spent = spend(strain.lake.run)
        changed = strain.lake.topology.ledger.steps(strain.lake.topology.ledger.head())["resolve.enriched"].counts["changes"]
        rows.append({"what": what, "changed": changed, "seconds": spent.seconds, "jobs": spent.done.jobs, "way": spent.done.way, **highest})
        CONSOLE.print(rows[-1])
        save(rows, folders.results / f"strain-{asked.n}.json")
    strain.lake.check()
    strain.close()
    for grid in write(folders):
        CONSOLE.print(grid.rich())


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The most resident bytes of this process (``python``) and of its JVM (``jvm``) meanwhile, looked at ten times a second."""
    highest, ended, me = {"python": 0, "jvm": 0}, threading.Event(), psutil.Process()

    def look() -> None:
        while not ended.wait(0.1):
            java = [p.memory_info().rss for p in jvms()]
            highest["python"], highest["jvm"] = max(highest["python"], me.memory_info().rss), max(highest["jvm"], *java, 0)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield highest
    finally:
        ended.set()
        watcher.join()


if __name__ == "__main__":
    main()
