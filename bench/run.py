"""make bench: what a run costs as k of N rows change, beside recomputing everything in DuckDB and in Spark, in one process and one session.

Work: orders (N rows, 6 columns) left join customers (N/20 rows) by a random foreign key, the result stored. Side ``left``: k random orders get
another foreign key and text. Side ``right``: as many customers are renamed as have about k orders.
Prints a table, appends rows {engine, n, k, side, seconds, jobs, load} to bench/results.json, and writes docs/benchmarks.md.
"""

import json
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from rejoin.conduct import Topology, run_topology
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import StepRecord
from rejoin.lake.session import session
from rejoin.load import load

HERE = Path(__file__).parent
SIZES = (1_000_000, 10_000_000)
CHANGES = (0, 100, 1_000, 10_000, 100_000)
ORDERS_A_CUSTOMER = 20
REPEAT = 3

TOPOLOGY = """
from rejoin import Topology, debezium

bench = Topology("bench")
orders = bench.table(
    "orders",
    key="id",
    schema="id BIGINT, customer_id BIGINT, status STRING, quantity INT, price DECIMAL(10,2), note STRING",
    source=debezium("landing/orders"),
)
customers = bench.table("customers", key="id", schema="id BIGINT, name STRING, region STRING", source=debezium("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS name", "right.region AS region"], name="enriched")
"""

ORDER_COLUMNS = (
    "id, (hash(id) % {customers})::BIGINT AS customer_id, 'status ' || (id % 7) AS status, (id % 50)::INT AS quantity, "
    "(id % 100000)::VARCHAR || '.50' AS price, 'note ' || hash(id) AS note"
)
CUSTOMER_COLUMNS = "id, 'customer ' || id AS name, 'region ' || (id % 9) AS region"
JOIN = "SELECT o.*, c.name, c.region FROM {orders} o LEFT JOIN {customers} c ON o.customer_id = c.id"


@dataclass(frozen=True)
class Result:
    """One measurement: the median of the repeats, the Spark jobs of the last, the machine's load at its start."""

    engine: str
    n: int
    k: int
    side: str
    seconds: float
    jobs: int | None
    load: float


class Bench:
    """One size: its landing files, its lake, and the Parquet files that the other engines read."""

    def __init__(self, n: int, root: Path) -> None:
        self.n, self.root, self.lsn, self.batch = n, root, 1, 0
        self.customers = n // ORDERS_A_CUSTOMER
        self.random = random.Random(n)
        for table in ("orders", "customers"):
            (root / "landing" / table).mkdir(parents=True)
        (root / "topology.py").write_text(TOPOLOGY)
        self.topology = Topology(load(str(root / "topology.py")), lake_config(str(root / "lake")), str(root))
        self.spark: SparkSession = session(self.topology.config)
        self.stages: list[tuple[int, str, dict[str, StepRecord]]] = []

    def first_load(self) -> Result:
        """Lands all rows as snapshot reads, and Parquet files of the same rows for the other engines; then the first run."""
        self._land("orders", self.n, ORDER_COLUMNS.format(customers=self.customers), parts=8)
        self._land("customers", self.customers, CUSTOMER_COLUMNS, parts=1)
        return self.measure(self.n, "load", lambda: None, repeat=1)

    def measure(self, k: int, side: str, prepare: Callable[[], None], repeat: int = REPEAT) -> Result:
        """Median seconds of runs, each after ``prepare``."""
        seconds, load_now, steps = [], os.getloadavg()[0], {}
        for _ in range(repeat):
            prepare()
            started = time.monotonic()
            run = run_topology(self.topology, lambda: self.spark, f"bench {time.monotonic_ns()}")
            seconds.append(time.monotonic() - started)
            steps = self.topology.ledger.steps(run.number)
        self.stages.append((k, side, steps))
        return Result("rejoin", self.n, k, side, statistics.median(seconds), sum(s.jobs or 0 for s in steps.values()), load_now)

    def change_orders(self, k: int) -> None:
        """K random orders get another customer and another note."""
        if k:
            self._write("orders", [self._order(key) for key in self.random.sample(range(self.n), k)])

    def rename_customers(self, k: int) -> None:
        """As many customers get another name as have about k orders."""
        keys = self.random.sample(range(self.customers), max(1, k // ORDERS_A_CUSTOMER))
        self._write("customers", [{"id": c, "name": f"renamed {self.lsn} {c}", "region": f"region {c % 9}"} for c in keys])

    def recompute_in_duckdb(self) -> Result:
        """Join and rewrite everything, Parquet to Parquet."""
        sql = f"COPY ({self._join('read_parquet')}) TO '{self.root}/duckdb.parquet'"
        return self._others("duckdb full", lambda: duckdb.sql(sql), None)

    def recompute_in_spark(self) -> Result:
        """The same by Spark, stored as an Iceberg table."""
        for table in ("orders", "customers"):
            self.spark.read.parquet(f"{self.root}/{table}.parquet").createOrReplaceTempView(f"bench_{table}")
        frame = self.spark.sql(JOIN.format(orders="bench_orders", customers="bench_customers"))
        return self._others("spark full", lambda: frame.writeTo("lake.bench.recomputed").using("iceberg").createOrReplace(), 1)

    def _join(self, reader: str) -> str:
        return JOIN.format(orders=f"{reader}('{self.root}/orders.parquet')", customers=f"{reader}('{self.root}/customers.parquet')")

    def _others(self, engine: str, work: Callable[[], object], jobs: int | None) -> Result:
        seconds, load_now = [], os.getloadavg()[0]
        for _ in range(REPEAT):
            started = time.monotonic()
            work()
            seconds.append(time.monotonic() - started)
        return Result(engine, self.n, self.n, "full", statistics.median(seconds), jobs, load_now)

    def _land(self, table: str, rows: int, columns: str, parts: int) -> None:
        names = "read_parquet('{}')".format(self.root / f"{table}.parquet")
        duckdb.sql(f"COPY (SELECT {columns} FROM range({rows}) t(id)) TO '{self.root / table}.parquet'")
        source = "{'connector': 'postgresql', 'lsn': 1, 'snapshot': 'true'}"
        event = f"SELECT {{'id': id}} AS key, {{'op': 'r', 'source': {source}, 'after': t}} AS value FROM {names} t"
        for part in range(parts):
            target = self.root / "landing" / table / f"0000-{part}.jsonl"
            duckdb.sql(f"COPY ({event} WHERE id % {parts} = {part}) TO '{target}' (FORMAT json)")

    def _order(self, key: int) -> dict[str, object]:
        customer = self.random.randrange(self.customers)
        values = {"status": f"status {key % 7}", "quantity": key % 50, "price": f"{key % 100000}.50", "note": f"changed {self.lsn}"}
        return {"id": key, "customer_id": customer, **values}

    def _write(self, table: str, rows: list[dict[str, object]]) -> None:
        self.batch += 1
        with (self.root / "landing" / table / f"{self.batch:06}.jsonl").open("w") as file:
            for row in rows:
                self.lsn += 1
                source = {"connector": "postgresql", "lsn": self.lsn, "snapshot": "false"}
                file.write(json.dumps({"key": {"id": row["id"]}, "value": {"op": "u", "source": source, "after": row}}) + "\n")


def main(sizes: tuple[int, ...]) -> None:
    """Measures, prints, saves."""
    console, results, sections = Console(), [], []
    for n in sizes:
        root = HERE.parent / "build" / "bench" / str(n)
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        bench = Bench(n, root)
        mine = [_told(console, bench.first_load())]
        mine += [_told(console, bench.recompute_in_duckdb()), _told(console, bench.recompute_in_spark())]
        for k in CHANGES:
            mine.append(_told(console, bench.measure(k, "left", partial(bench.change_orders, k))))
            if k:
                mine.append(_told(console, bench.measure(k, "right", partial(bench.rename_customers, k))))
        results += mine
        sections.append(_section(n, mine, bench.stages))
        shutil.rmtree(root)
        _save(results, sections)  # after each size: the large ones take long
    console.print(_table(results))


def _told(console: Console, result: Result) -> Result:
    console.print(
        f"{result.engine:12} n={result.n:,} k={result.k:,} {result.side}: {result.seconds:.2f} s, jobs {result.jobs}, load {result.load:.1f}"
    )
    return result


def _save(results: list[Result], sections: list[str]) -> None:
    file = HERE / "results.json"
    file.write_text("[\n" + ",\n".join("  " + json.dumps(asdict(r)) for r in results) + "\n]\n")
    head = (HERE / "benchmarks.head.md").read_text()
    (HERE.parent / "docs" / "benchmarks.md").write_text(head + "\n" + "\n".join(sections))


def _section(n: int, results: list[Result], stages: list[tuple[int, str, dict[str, StepRecord]]]) -> str:
    full = {r.engine: r.seconds for r in results if r.side == "full"}
    lines = [f"## N = {n:,} left rows, {n // ORDERS_A_CUSTOMER:,} right rows", ""]
    lines += [f"DuckDB recomputes and rewrites everything in {full['duckdb full']:.2f} s, Spark in {full['spark full']:.2f} s.", ""]
    lines += [
        "| changed | side | seconds | Spark jobs | x DuckDB full | x Spark full | seconds a stage (jobs) |",
        "|---:|---|---:|---:|---:|---:|---|",
    ]
    spent = {(k, side): steps for k, side, steps in stages}
    for r in results:
        if r.engine == "rejoin":
            ratios = f"{r.seconds / full['duckdb full']:.2f} | {r.seconds / full['spark full']:.2f}"
            parts = ", ".join(f"{s.step} {s.seconds:.2f} ({s.jobs})" for s in spent[(r.k, r.side)].values() if s.seconds >= 0.01)
            lines.append(f"| {r.k:,} | {r.side} | {r.seconds:.2f} | {r.jobs} | {ratios} | {parts} |")
    return "\n".join([*lines, ""])


def _table(results: list[Result]) -> Table:
    table = Table("engine", "n", "k", "side", "seconds", "Spark jobs", "load", box=None)
    for r in results:
        table.add_row(r.engine, f"{r.n:,}", f"{r.k:,}", r.side, f"{r.seconds:.2f}", str(r.jobs), f"{r.load:.1f}")
    return table


if __name__ == "__main__":
    main(tuple(int(a) for a in sys.argv[1:]) or SIZES)
