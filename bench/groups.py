"""Groups: what a run costs beside the left join's, and beside DuckDB's GROUP BY of everything. `python bench/groups.py 1000000`

One process without Java, in CPU seconds. N orders of N / 20 customers: left joined with their customers, by customer with count, sum and max, the same with an
array of the orders. The same changes for all of them: 1,000 orders, five times after one that warms up, then half of all. Then a customer with a million orders
(or half of all) gets one more, and one with about 20. Prints a line for each goal.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from work import Work

from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

CHANGED, COUNTED, LARGE = 1_000, 5, 1_000_000
ORDERS = """
from rejoin import Topology, debezium

bench = Topology("bench")
schema = "id BIGINT, customer_id BIGINT, status STRING, quantity INT, price DECIMAL(10,2), note STRING"
orders = bench.table("orders", key="id", schema=schema, source=debezium("landing/orders"))
"""
JOIN = """
customers = bench.table("customers", key="id", schema="id BIGINT, name STRING, region STRING", source=debezium("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name", "right.region"]).named("made", max_change_share=1.0)
"""
GROUPS = 'orders.group_by("customer_id").aggregate({columns}).named("made", max_change_share=1.0)\n'
TOTALS = '''n="count(*)", total="sum(price)"'''
WITH_MAX = f'''{TOTALS}, most="max(quantity)"'''
DOCUMENTS = f'''{WITH_MAX}, orders="collect(struct(id, status, quantity, price, note) ORDER BY id)"'''
TOPOLOGIES = {
    "join": JOIN,
    "groups": GROUPS.format(columns=WITH_MAX),
    "documents": GROUPS.format(columns=DOCUMENTS),
}
QUERY = """
SELECT customer_id, count(*) AS n, sum(price) AS total, max(quantity) AS most,
    list({{id: id, status: status, quantity: quantity, price: price, note: note}} ORDER BY id) AS orders
FROM {orders} GROUP BY customer_id
"""


@dataclass(frozen=True)
class Goal:
    """What is compared: CPU seconds, beside which, and how many times as many are allowed."""

    what: str
    spent: float
    beside: float
    most: float

    @property
    def line(self) -> str:
        """As a line of a table."""
        times = self.spent / self.beside
        return f"| {self.what} | {self.spent:.2f} | {self.beside:.2f} | {times:.2f} | {self.most} | {'yes' if times <= self.most else '**no**'} |"


def no_spark() -> NoReturn:
    raise SystemExit("this work needs no Spark")


def spent(work: Callable[[], object]) -> float:
    """The CPU seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


class Lake:
    """A topology on a lake of its own, beside the landed files that all of them read."""

    def __init__(self, root: Path, name: str, text: str) -> None:
        file = root / f"{name}.py"
        file.write_text(ORDERS + text)
        self.name = name
        self.topology = Topology(load(str(file)), replace(lake_config(str(root / name)), engine=EngineChoice.LOCAL), str(root))

    def run(self) -> float:
        """The CPU seconds of a run."""
        return spent(lambda: run_topology(self.topology, no_spark, f"groups {time.monotonic_ns()}"))

    def check(self) -> None:
        """Fails if an output is not what its SQL says."""
        if wrong := {d.node: d.total for d in verify(self.topology, no_spark, fast=False) if d.total}:
            raise SystemExit(f"outputs of {self.name} differ from their definition: {wrong}")


def of_many(n: int, root: Path, *, check: bool) -> Iterator[Goal]:
    """What follows the changes of orders of many customers. ``check``: the outputs are compared with their definitions."""
    work = Work(n, root)
    work.first_rows()
    lakes = [Lake(root, name, text) for name, text in TOPOLOGIES.items()]
    loads = {lake.name: lake.run() for lake in lakes}
    work.landed()
    runs: dict[str, list[float]] = {lake.name: [] for lake in lakes}
    for _ in range(1 + COUNTED):
        work.change("left", CHANGED)
        for lake in lakes:
            runs[lake.name].append(lake.run())
        work.landed()
    some = {name: statistics.median(times[1:]) for name, times in runs.items()}
    work.refresh()
    text = f"COPY ({QUERY.format(**work.sources())}) TO '{root}/computed.parquet' (FORMAT parquet)"
    full = statistics.median(spent(lambda: work.db.execute(text)) for _ in range(3))
    work.change("left", n // 2)
    half = lakes[-1].run()
    for lake in lakes if check else ():
        lake.run()
        lake.check()
    work.close()
    yield Goal(f"{CHANGED:,} changed orders: customers with count, sum, max / the left join", some["groups"], some["join"], 1.3)
    yield Goal(f"{CHANGED:,} changed orders: the same with collect / the left join", some["documents"], some["join"], 1.6)
    yield Goal(
        f"{CHANGED:,} changed orders with collect / DuckDB's GROUP BY with list of everything, written", some["documents"], full, 0.3
    )
    yield Goal("first load with collect / DuckDB's GROUP BY with list", loads["documents"], full, 6)
    yield Goal("half of all orders with collect / the first load", half, loads["documents"], 1.3)


def of_one(n: int, root: Path, *, check: bool) -> Goal:
    """One more order of a customer who has many, and of one who has about 20."""
    work = Work(n, root)
    large = min(LARGE, n // 2)
    work.first_rows(f"CASE WHEN p < {large} THEN -1 ELSE hash(p) % {work.customers} END")
    lake = Lake(root, "totals", GROUPS.format(columns=TOTALS))
    lake.run()
    work.landed()
    runs: dict[int, list[float]] = {-1: [], 0: []}
    for number in range(1 + COUNTED):
        for customer, times in runs.items():
            work.added(customer, n + 2 * number - customer)
            times.append(lake.run())
            work.landed()
    if check:
        lake.check()
    work.close()
    many, few = (statistics.median(times[1:]) for times in runs.values())
    return Goal(f"one more order of a customer with {large:,} / of one with 20, count and sum", many, few, 1.5)


def main() -> None:
    """Measures, checks the results, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=1_000_000, help="orders (default: 1 million)")
    parser.add_argument(
        "--check", action="store_true", help="compare the outputs with their definitions: the speed of wrong results is worth nothing"
    )
    asked = parser.parse_args()
    print("| | CPU seconds | beside | times | at most | reached |\n|---|---:|---:|---:|---:|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("many", "one"):
            (Path(folder) / part).mkdir()
        for goal in of_many(asked.n, Path(folder) / "many", check=asked.check):
            print(goal.line, flush=True)
        print(of_one(asked.n, Path(folder) / "one", check=asked.check).line, flush=True)


if __name__ == "__main__":
    main()
