"""Iceberg tables that others write, as sources: PyIceberg writes them, rejoin joins them, DuckDB says what the join is at every step."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from integration.shop import Row
from integration.shop import rows as published
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, In
from pyiceberg.table import Table as IcebergTable
from sparkless import no_spark

from rejoin.errors import BadRecords, SchemaDrift, SnapshotShrunk, SourceMissing
from rejoin.lake.config import lake_config
from rejoin.operate.compact import compact
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology
from rejoin.why.trace import why

FILE = """
from rejoin import Topology, iceberg, records, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, total DECIMAL(12,2)",
                 source=snapshot(iceberg("shop.orders", at="bronze"), max_delete_share=1.0))
customers = t.table("customers", key="id", schema="id STRING, name STRING", source=snapshot(iceberg("shop.customers", at="bronze"){share}))
orders.left_join(customers, foreign_key="customer", select=["left.id", "left.total", "right.name AS name"]).named("enriched")
"""
ORDERS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("total", pa.decimal128(12, 2)), ("beside", pa.float64())])
CUSTOMERS = pa.schema([("id", pa.string()), ("name", pa.string())])
JOIN = "SELECT o.id, o.total, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id ORDER BY o.id"


class Shop:
    """A bronze catalog with two tables, and rejoin's lake beside it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        (root / "bronze").mkdir()
        self.uri, self.warehouse = f"sqlite:///{root}/bronze/catalog.db", f"file://{root}/bronze"
        self.catalog = SqlCatalog("bronze", uri=self.uri, warehouse=self.warehouse)
        self.catalog.create_namespace("shop")
        self.orders, self.customers = (self.catalog.create_table(f"shop.{n}", s) for n, s in (("orders", ORDERS), ("customers", CUSTOMERS)))
        monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps({"type": "sql", "uri": self.uri, "warehouse": self.warehouse}))
        self.define()

    def define(self, share: str = ", max_delete_share=1.0") -> None:
        (self.root / "t.py").write_text(FILE.format(share=share))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def run(self) -> int:
        return run_topology(self.topology, no_spark, "test").number

    def stored(self, name: str = "enriched") -> list[Row]:
        return published(self.topology, name)

    def is_right(self) -> None:
        with duckdb.connect() as db:
            db.register("orders", self.orders.scan().to_arrow())
            db.register("customers", self.customers.scan().to_arrow())
            wanted = db.execute(JOIN).fetchall()
        found = sorted((r["id"], r["total"], r["name"]) for r in self.stored())
        assert found == wanted

    def pin(self, table: str) -> dict[str, Any] | None:
        topology = self.topology
        return topology.ledger.pins(topology.ledger.head()).get(table)

    def read(self, table: str) -> int:
        topology = self.topology
        return topology.ledger.steps(topology.ledger.head())[f"ingest.{table}"].counts["read"]


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Delete operation did not match")]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path, monkeypatch)
    made.orders.append(orders(range(1000)))
    made.customers.append(customers("abc"))
    return made


def orders(ids: Any, customer: str = "a", total: float = 1) -> pa.Table:
    rows = [{"id": i, "customer": customer, "total": total, "beside": i / 3} for i in ids]
    return pa.Table.from_pylist(rows, ORDERS)


def customers(ids: str, name: str = "n") -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "name": f"{name} {i}"} for i in ids], CUSTOMERS)


def test_what_changed_is_read_and_no_more(shop: Shop) -> None:
    shop.run()
    shop.is_right()
    assert shop.read("orders") == 1000
    shop.orders.append(orders([5000], "b"))
    shop.orders.overwrite(orders([3], "c", 2), overwrite_filter=EqualTo("id", 3))
    shop.orders.delete(EqualTo("id", 4))
    shop.customers.overwrite(customers("b", "new"), overwrite_filter=EqualTo("id", "b"))
    shop.run()
    shop.is_right()
    assert (shop.read("orders"), shop.read("customers")) == (3, 1)
    shop.orders.overwrite(shop.orders.scan().to_arrow())  # a compaction: other files, the same rows
    shop.run()
    shop.is_right()
    assert shop.read("orders") == 0
    before = shop.topology.ledger.head()
    shop.run()
    assert shop.pin("orders") is None, f"nothing is new since run {before}"


def expired(shop: Shop) -> None:
    current = shop.orders.current_snapshot()
    assert current is not None
    for old in [s.snapshot_id for s in shop.orders.metadata.snapshots if s.snapshot_id != current.snapshot_id]:
        shop.orders.maintenance.expire_snapshots().by_id(old).commit()


def made_anew(shop: Shop) -> None:
    rows = shop.orders.scan().to_arrow()
    shop.catalog.drop_table("shop.orders")
    shop.orders = shop.catalog.create_table("shop.orders", ORDERS)
    shop.orders.append(rows)


@pytest.mark.parametrize("lost", [expired, made_anew], ids=["expired", "made anew"])
def test_where_the_old_snapshot_is_lost_all_rows_are_compared(shop: Shop, lost: Callable[[Shop], None]) -> None:
    shop.run()
    shop.orders.delete(EqualTo("id", 7))
    shop.orders.append(orders([2000]))
    lost(shop)
    shop.run()
    shop.is_right()
    pin = shop.pin("orders")
    assert pin is not None and not pin["partial"] and shop.read("orders") == 1000


def test_a_key_twice_is_refused_until_one_row_goes(shop: Shop) -> None:
    shop.run()
    shop.orders.append(orders([3], "b", 9))
    shop.orders.append(orders([2000, 2001]))
    shop.orders.append(orders(range(3000, 3100)))
    shop.run()
    rows = {r["id"]: r for r in shop.stored()}
    assert rows[3]["total"] == 1, "it keeps its row"
    assert rows[2000]["total"] == 1
    kept = shop.stored("orders__quarantine")
    assert {r["_code"] for r in kept} == {"DUPLICATE_KEY"} and len(kept) == 2
    shop.orders.delete(And(EqualTo("id", 3), EqualTo("total", 1)))
    shop.run()
    shop.is_right()
    assert {r["id"]: r for r in shop.stored()}[3]["total"] == 9


def test_a_table_of_which_every_row_is_refused_stops_the_run(shop: Shop) -> None:
    shop.orders.append(orders(range(1000), "b", 9))  # every key has two rows
    with pytest.raises(BadRecords, match="DUPLICATE_KEY"):
        shop.run()
    assert shop.topology.ledger.head() is None


def test_the_share_of_deletes_is_bounded(shop: Shop) -> None:
    shop.define(share=", max_delete_share=0.3")
    shop.run()
    shop.customers.delete(In("id", {"a", "b"}))
    with pytest.raises(SnapshotShrunk, match="2 of 3"):
        shop.run()


def test_faults_of_the_table_are_said(shop: Shop) -> None:
    shop.run()
    with shop.orders.update_schema() as update:
        update.rename_column("customer", "client")
    shop.orders.append(shop.orders.scan().to_arrow().slice(0, 1))
    with pytest.raises(SchemaDrift, match=r"lacks: customer; .*\(renamed\?\): client"):
        shop.run()
    shop.catalog.drop_table("shop.orders")
    with pytest.raises(SourceMissing, match=r"iceberg://bronze/shop\.orders.*does not exist"):
        shop.run()


def test_why_names_the_snapshot(shop: Shop) -> None:
    shop.run()
    shop.orders.append(orders([5000], "b"))
    shop.run()
    topology = shop.topology
    found = why(topology.ledger, topology.refs, topology.access, "orders", ("5000",)).to_dict()
    assert found["record"]["file"].startswith("iceberg://bronze/shop.orders@")


SECOND = """
from rejoin import Topology, iceberg, snapshot

u = Topology("u")
enriched = u.table("enriched", key="id", schema="id BIGINT, total DECIMAL(12,2), name STRING", source=snapshot(iceberg("t.enriched")))
enriched.filter("name IS NOT NULL").named("known")
"""


def test_an_output_of_another_topology_is_a_source_with_its_position_deletes_and_compactions(shop: Shop) -> None:
    (shop.root / "u.py").write_text(SECOND)
    second = Topology(load(str(shop.root / "u.py")), lake_config(str(shop.root / "lake")), str(shop.root))
    for step in range(4):
        if step:
            shop.orders.overwrite(orders([step, 9000 + step], "c", step), overwrite_filter=EqualTo("id", step))
            shop.orders.delete(EqualTo("id", 500 + step))
            shop.customers.overwrite(customers("c", f"n{step}"), overwrite_filter=EqualTo("id", "c"))
        if step == 3:
            compact(shop.topology, no_spark, "upkeep")
        shop.run()
        run_topology(second, no_spark, "test")
        found = published(second, "known")
        wanted = [row for row in shop.stored() if row["name"] is not None]
        assert sorted((r["id"], r["total"], r["name"]) for r in found) == sorted((r["id"], r["total"], r["name"]) for r in wanted)
    pin = second.ledger.pins(second.ledger.head())["enriched"]
    assert pin is not None and pin["partial"], "a compaction does not have all rows compared"


def change(rng: random.Random, table: IcebergTable, rows: Callable[[list[int]], pa.Table]) -> None:
    """One commit as some job makes it."""
    some = rng.sample(range(40), rng.randint(1, 8))
    match rng.choice(["append", "upsert", "upsert", "delete", "rewrite", "overwrite"]):
        case "append":
            there = set(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
            table.append(rows([i for i in some if str(i) not in there and i not in there]))
        case "upsert":
            table.upsert(rows(some), join_cols=["id"])
        case "delete":
            text = table.schema().find_field("id").field_type.__class__.__name__ == "StringType"
            table.delete(In("id", {str(i) if text else i for i in some}))
        case "rewrite":
            table.overwrite(table.scan().to_arrow())
        case "overwrite":
            table.overwrite(rows(sorted({*some, 1})))


@pytest.mark.parametrize("seed", range(2))
def test_random_histories_of_both_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    print("seed", seed)
    rng, shop = random.Random(seed), Shop(tmp_path, monkeypatch)

    def some_orders(ids: list[int]) -> pa.Table:
        return pa.Table.from_pylist(
            [{"id": i, "customer": rng.choice([None, *map(str, range(6))]), "total": rng.randint(0, 3), "beside": None} for i in ids],
            ORDERS,
        )

    def some_customers(ids: list[int]) -> pa.Table:
        return pa.Table.from_pylist([{"id": str(i), "name": rng.choice([None, "", "x", "ü"])} for i in ids], CUSTOMERS)

    shop.orders.append(some_orders([1, 2, 3]))
    shop.customers.append(some_customers([1, 2]))
    for _ in range(8):
        for _ in range(rng.randint(0, 3)):
            change(rng, shop.orders, some_orders)
        for _ in range(rng.randint(0, 2)):
            change(rng, shop.customers, some_customers)
        if rng.random() < 0.15:
            expired(shop)
        shop.run()
        shop.is_right()
