"""Many outputs, and many subscribers.

    bench/fanout.py [N] [--subscribers-n 10000000] [--out DIR]

First one topology of 15 outputs over five source tables, of which the largest has N rows: 5,000 changed rows over all tables. Then one
renamed customer with 1,000 orders among 10 million. A size of 0 leaves that part out.
"""

import argparse
from functools import partial
from pathlib import Path

import sqlglot
from engines import ICEBERG, Lake, drop, lake_of
from fifteen import Fifteen
from first_load import warm_up
from folders import PROJECT, Folders
from full import full_engines
from measure import CONSOLE, Done, in_spark, row, save, spend, tracked
from report import write
from work import Work

from rejoin.plan.sql.defining_query import topology_query

COUNTED = 5
SUBSCRIBERS = 1_000


def main() -> None:
    """Measures, checks the results, saves, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=1_000_000, help="rows of the largest table (default: 1 million)")
    parser.add_argument("--subscribers-n", type=int, default=10_000_000, help="left rows of the second part (default: 10 million)")
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders = Folders(asked.out.resolve())
    warm_up(folders)
    if asked.n:
        fifteen_outputs(asked.n, folders)
    if asked.subscribers_n:
        many_subscribers(asked.subscribers_n, folders)
    for grid in write(folders):
        CONSOLE.print(grid.rich())


def fifteen_outputs(n: int, folders: Folders) -> None:
    """One topology, 15 outputs. Saves the results, then checks the outputs, which takes longer."""
    work = Fifteen(n, folders.empty("fanout"))
    lake = lake_of(work.root)
    work.first_rows()
    rows = [row("rejoin", n, work.rows, "load", [spend(lake.run)])]
    work.landing.clear()
    spent = []
    for _ in tracked(range(1 + COUNTED), "15 outputs"):
        changed = work.change()
        spent.append(spend(lake.run))
        work.landing.clear()
    rows.append(row("rejoin", n, changed, "change", spent[1:]))
    for name, recompute in (("duckdb full", recompute_in_duckdb), ("spark full", recompute_in_spark)):
        recompute(work, lake)  # warms up
        rows.append(row(name, n, work.rows, "full", [spend(partial(recompute, work, lake)) for _ in range(2)]))
    save(rows, folders.results / f"fanout-{n}.json")
    lake.check()
    work.close()


def recompute_in_duckdb(work: Fifteen, lake: Lake) -> Done:
    """All outputs from the source tables as they were first, Parquet to Parquet."""
    for node in lake.topology.plan.nodes:
        query = topology_query(lake.topology.plan, node, lambda table: f"`{work.source(table)}`")
        sql = sqlglot.transpile(query, read="spark", write="duckdb")[0]
        work.db.execute(f"COPY ({sql}) TO '{work.root / 'output.parquet'}' (FORMAT parquet)")
    return Done()


def recompute_in_spark(work: Fifteen, lake: Lake) -> Done:
    """The same into Iceberg tables; those of the last time are dropped first."""
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in ICEBERG.items())

    def recompute() -> None:
        for node in lake.topology.plan.nodes:
            query = topology_query(lake.topology.plan, node, lambda table: f"parquet.`{work.source(table)}`")
            lake.spark.sql(f"CREATE TABLE lake.baseline.{node.name} USING iceberg TBLPROPERTIES ({properties}) AS {query}")

    lake.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.baseline")
    drop(lake.spark, *(f"baseline.{node.name}" for node in lake.topology.plan.nodes))
    return in_spark(lake.spark, recompute)


def many_subscribers(n: int, folders: Folders) -> None:
    """One right row changes, which 1,000 left rows need. Saves and checks likewise."""
    subscribers = min(SUBSCRIBERS, n // 10)
    work = Work(n, folders.empty("subscribers"), orders_a_customer=subscribers)
    lake = lake_of(work.root)
    work.first_rows()
    rows = [row("rejoin", n, n, "load", [spend(lake.run)])]
    work.landed()
    spent = []
    for _ in tracked(range(1 + COUNTED), "one customer"):
        work.change("right", subscribers)
        spent.append(spend(lake.run))
        work.landed()
    rows.append(row("rejoin", n, subscribers, "right", spent[1:]))
    work.refresh()
    for engine in full_engines(work, lake.spark, workaround=False):
        engine.recompute()
        engine.clear()
        rows.append(row(engine.name, n, n, "full", [spend(engine.recompute)]))
    save(rows, folders.results / f"subscribers-{n}.json")
    lake.check()
    work.close()


if __name__ == "__main__":
    main()
