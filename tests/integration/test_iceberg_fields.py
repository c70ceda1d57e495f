"""Rows of Iceberg tables whose columns are fields: changes that tools append, snapshots and records with ``columns=``; PyIceberg writes them, DuckDB says what is right."""

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from integration.shop import rows as stored
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, LessThan
from pyiceberg.table import Table as IcebergTable
from sparkless import no_spark

from rejoin.engines.iceberg_nulls import keep_nulls
from rejoin.errors import SchemaDrift
from rejoin.lake.config import lake_config
from rejoin.lake.query.quarantine_reader import entries
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.sources import SnapshotSource
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology
from rejoin.why.trace import why

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Delete operation did not match")]

CHANGES = """
orders = t.table("orders", key="id", schema="id BIGINT, total DECIMAL(10,2), at TIMESTAMP, lines ARRAY<STRUCT<n: BIGINT, at: TIMESTAMP>>, m MAP<STRING, BIGINT>",
                 source=changes(iceberg("raw.rows", at="bronze"), order_by="lsn", deleted="op = 'D'", columns={"id": "order_id", "total": "replace(amount, ',', '')", "m": "counts"}))
orders.filter("id >= 0").named("out")
"""
SNAPSHOT = """
orders = t.table("orders", key="id", schema="id BIGINT, total DECIMAL(10,2), at TIMESTAMP, lines ARRAY<STRUCT<n: BIGINT, at: TIMESTAMP>>, m MAP<STRING, BIGINT>",
                 source=snapshot(iceberg("raw.rows", at="bronze"), max_delete_share=1.0, columns={"id": "CAST(order_id AS BIGINT) + 1000", "total": "replace(amount, ',', '')", "m": "counts"}))
orders.filter("id >= 0").named("out")
"""
RECORDS = """
seen = t.stream("seen", id=["id", "lsn"], schema="id BIGINT, lsn BIGINT, total DECIMAL(10,2), at TIMESTAMP", event_time="at", lateness="100 days",
                source=records(iceberg("raw.rows", at="bronze"), columns={"id": "order_id", "total": "replace(amount, ',', '')"}))
seen.named("out")
"""
SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("amount", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("lsn", pa.int64()),
        ("op", pa.string()),
        ("lines", pa.list_(pa.struct([("at", pa.timestamp("us", "UTC")), ("n", pa.int32())]))),
        ("counts", pa.map_(pa.string(), pa.int32())),
    ]
)
START = datetime(2026, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


class Bronze:
    """A table that others write, and a topology that reads it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.root = root
        keep_nulls()  # else a compaction by PyIceberg loses them
        (root / "bronze").mkdir()
        where = {"uri": f"sqlite:///{root}/bronze/catalog.db", "warehouse": f"file://{root}/bronze"}
        catalog = SqlCatalog("bronze", **where)
        catalog.create_namespace("raw")
        self.table: IcebergTable = catalog.create_table("raw.rows", SCHEMA)
        monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps({"type": "sql", **where}))
        (root / "t.py").write_text("from rejoin import *\nt = Topology('t')\n" + text)

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def run(self) -> dict[str, int]:
        topology = self.topology
        number, name = run_topology(topology, no_spark, "test").number, topology.plan.tables[0].name
        return dict(self.topology.ledger.steps(number)[f"ingest.{name}"].counts)

    def add(self, *rows: Row) -> None:
        self.table.append(pa.Table.from_pylist(list(rows), SCHEMA))

    def out(self, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(r[c] for c in columns) for r in stored(self.topology, "out"))

    def refused(self) -> dict[str, str]:
        """Text -> code."""
        topology = self.topology
        return {e.raw or "": e.code for e in entries(topology.ledger, topology.refs, topology.plan.tables[0].name)}

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            db.register("rows", self.table.scan().to_arrow())
            return db.sql(query).fetchall()


def row(key: int, lsn: int, op: str = "U", amount: str = "") -> Row:
    at = START + timedelta(seconds=lsn)
    one = {"order_id": key, "amount": amount or f"{lsn // 10},{lsn:03d}.50", "at": at, "lsn": lsn, "op": op}
    nested = {"lines": [{"at": at, "n": n or None} for n in range(lsn % 4)], "counts": [("b", lsn), ("a", None)]} if lsn % 5 else {}
    return one | dict.fromkeys(("lines", "counts")) | nested


def random_of(number: int) -> random.Random:
    seed = int(os.environ.get("REJOIN_SEED") or 20_261_127) + number
    print(f"REJOIN_SEED={seed - number}")
    return random.Random(seed)


NUMBERS = [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 9))]
LINES = "list_transform({0}, lambda x: {{'n': x.n, 'at': x.\"at\"}})"
COUNTS = "list_transform(list_sort(map_entries({0})), lambda e: row(e.key, e.value))"
"""The nested columns as they are declared, as PyArrow and DuckDB give them to Python."""
NEWEST = f"""
SELECT order_id, CAST(replace(arg_max(amount, lsn), ',', '') AS DECIMAL(10,2)), max("at"), {LINES.format("arg_max_null(lines, lsn)")}, {COUNTS.format("arg_max_null(counts, lsn)")}
FROM history GROUP BY 1 HAVING arg_max(op, lsn) <> 'D' ORDER BY 1
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_rows_that_are_appended_are_changes_whatever_else_is_done_to_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    random_, bronze, history = random_of(number), Bronze(tmp_path, monkeypatch, CHANGES), list[Row]()
    for run in range(6):
        fresh = [row(random_.randrange(40), lsn, random_.choice("IUUD")) for lsn in random_.sample(range(run * 50, run * 50 + 50), 30)]
        for some in (fresh[:10], fresh[10:]):
            bronze.add(*some)
        history += fresh
        again = random_.randrange(4)
        if again == 0:  # a compaction
            bronze.table.overwrite(bronze.table.scan().to_arrow())
        elif again == 1:  # what is old is let go
            bronze.table.delete(LessThan("lsn", run * 50 - 60))
        elif again == 2 and (current := bronze.table.current_snapshot()) is not None:  # all is read again
            for old in [s.snapshot_id for s in bronze.table.metadata.snapshots if s.snapshot_id != current.snapshot_id]:
                bronze.table.maintenance.expire_snapshots().by_id(old).commit()
        counts = bronze.run()
        assert (counts["read"] == 30 or again == 2, counts["quarantined"]) == (True, 0)
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            db.register("history", pa.Table.from_pylist(history, SCHEMA))
            assert bronze.out("id", "total", "at", "lines", "m") == db.sql(NEWEST).fetchall() != []
    assert bronze.run()["read"] == 0


@pytest.mark.parametrize("number", NUMBERS)
def test_a_snapshot_is_compared_by_what_is_made_of_its_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    random_, bronze = random_of(number), Bronze(tmp_path, monkeypatch, SNAPSHOT)
    assert isinstance(bronze.topology.plan.tables[0].source, SnapshotSource)
    bronze.add(*(row(i, i) for i in range(60)))
    nested = f"{LINES.format('lines')}, {COUNTS.format('counts')}"
    wanted = f"SELECT order_id + 1000, CAST(replace(amount, ',', '') AS DECIMAL(10,2)), \"at\", {nested} FROM rows ORDER BY 1"
    for run in range(5):
        for _ in range(4):
            key = random_.randrange(80)
            bronze.table.delete(EqualTo("order_id", key))
            if random_.random() < 0.7:
                bronze.add(row(key, random_.randrange(1000)))
        if run == 2:
            bronze.table.overwrite(bronze.table.scan().to_arrow())
        counts = bronze.run()
        assert (counts["read"] < 10 or run == 0, counts["quarantined"]) == (True, 0)
        assert bronze.out("id", "total", "at", "lines", "m") == bronze.sql(wanted)


def test_rows_that_cannot_be_read_keep_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bronze = Bronze(tmp_path, monkeypatch, SNAPSHOT)
    bronze.add(*(row(i, i) for i in range(60)))
    bronze.run()
    bronze.table.delete(EqualTo("order_id", 5))
    bronze.add(row(5, 5, amount="USD 7"), row(6, 6, amount="1"), *(row(i, i) for i in range(100, 170)))
    assert bronze.run()["quarantined"] == 3, "one that cannot be read, and two of one key"
    assert bronze.out("id", "total") == bronze.sql("SELECT order_id + 1000, lsn // 10 * 1000 + lsn + 0.50 FROM rows WHERE amount NOT IN ('1', 'USD 7') UNION SELECT 1005, 5.50 ORDER BY 1")  # fmt: skip
    refused = bronze.refused()
    assert sorted(refused.values()) == ["DUPLICATE_KEY", "DUPLICATE_KEY", "VALUE_TYPE"]
    [text] = [json.loads(text) for text, code in refused.items() if code == "VALUE_TYPE"]
    assert text == {"order_id": "5", "amount": "USD 7", "at": "2026-01-01 00:00:05Z", "lines": None, "counts": None}


def test_changes_are_refused_found_and_missed_as_those_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bronze = Bronze(tmp_path, monkeypatch, CHANGES)
    bronze.add(*(row(i, i) for i in range(40)), row(41, 41, amount="x"))
    assert bronze.run()["quarantined"] == 1
    [(text, code)] = bronze.refused().items()
    assert (code, json.loads(text)["amount"]) == ("VALUE_TYPE", "x")
    topology = bronze.topology
    found = why(topology.ledger, topology.refs, topology.access, "orders", ("7",)).to_dict()
    assert found["record"]["file"].startswith("iceberg://bronze/raw.rows@") and found["record"]["line"] == 8
    with bronze.table.update_schema() as update:
        update.rename_column("amount", "price")
    bronze.table.append(pa.Table.from_pylist([row(1, 50)], SCHEMA).rename_columns({"amount": "price"}))
    with pytest.raises(SchemaDrift, match=r"lacks: total; .*\(renamed\?\): .*price"):
        bronze.run()


def test_records_of_a_table_are_fields_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bronze = Bronze(tmp_path, monkeypatch, RECORDS)
    bronze.add(*(row(i % 7, i) for i in range(40)))
    assert bronze.run()["applied"] == 40
    bronze.table.overwrite(bronze.table.scan().to_arrow())
    bronze.add(row(1, 50))
    assert bronze.run()["applied"] == 1
    assert bronze.out("id", "lsn", "total") == bronze.sql("SELECT order_id, lsn, CAST(replace(amount, ',', '') AS DECIMAL(10,2)) FROM rows ORDER BY 1, 2")  # fmt: skip
