"""``changes(...)`` in whole runs: random histories come out as the newest record of each key says, whatever the order of arrival, the format and the engine."""

import json
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.texts import Lake
from limited import limited

from rejoin.errors import BadRecords, SchemaDrift, SchemaRefused
from rejoin.plan.model import json_form
from rejoin.why.trace import why

pytestmark = pytest.mark.slow

TOPOLOGY = """
orders = t.table(
    "orders", key="id", schema="id BIGINT, customer INT, total DECIMAL(10,2)",
    source=changes("bronze/orders", order_by={order}, deleted="__deleted = 'true'",
                   columns={{"id": "order_id", "total": "CAST(replace(amount, ',', '') AS {type})"}}),
)
customers = t.table("customers", key="id", schema="id INT, name STRING", source=changes("bronze/customers", order_by=["at", "n"]))
orders.left_join(customers, "customer", ["left.*", "right.name"]).named("enriched")
"""
USUAL = {"order": '"__lsn"', "type": "DECIMAL(10,2)"}
Record = dict[str, Any]


def order(lsn: int, key: int, customer: int | None = 1, amount: str = "1,000.50", *, gone: bool = False) -> Record:
    return {"order_id": key, "customer": customer, "amount": amount, "__lsn": lsn, "__deleted": "true" if gone else "false"}


def lines(records: list[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def table(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist(records)


def newest(records: list[Record]) -> dict[int, Record]:
    found: dict[int, Record] = {}
    for record in records:
        if record["__lsn"] >= found.get(record["order_id"], record)["__lsn"]:
            found[record["order_id"]] = record
    return {key: record for key, record in found.items() if record["__deleted"] == "false"}


ENGINES = ["here", pytest.param("Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 8))])
def test_the_newest_record_of_each_key_counts_in_whatever_order_files_bring_them(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, engine: str, number: int
) -> None:
    seed = int(os.environ.get("REJOIN_SEED") or 20_261_127) + number
    print(f"REJOIN_SEED={seed - number}")
    random_ = random.Random(seed)
    if engine == "Spark":
        limited(monkeypatch, small_rows=0, fetched_bytes=0, sparse=0)
    history = [
        order(lsn, random_.randrange(9), random_.choice([None, 1, 2]), f"{random_.randrange(3)},{lsn:03d}.5", gone=random_.random() < 0.25)
        for lsn in random_.sample(range(1000), 80)
    ]
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    names = {1: "Ann", 2: "Bob"}
    lake.land("bronze/customers/1.parquet", table([{"id": i, "name": n, "at": "2026-01-01T00:00:00Z", "n": 1} for i, n in names.items()]))
    arrived: list[Record] = []
    for run in range(3):
        part = history[run::3] + random_.sample(history[:run], min(run, 1)) + random_.sample(arrived, min(5, len(arrived)))
        random_.shuffle(part)
        for file, some in enumerate((part[::2], part[1::2])):
            as_json = (run + file) % 2 == 0
            lake.land(f"bronze/orders/{run}-{file}.{'jsonl' if as_json else 'parquet'}", lines(some) if as_json else table(some))
        arrived += part
        fates = lake.run()["ingest.orders"]
        assert fates["read"] == len(part)
        expected = {
            key: {"id": key, "customer": r["customer"], "total": Decimal(r["amount"].replace(",", "")), "name": names.get(r["customer"])}
            for key, r in newest(arrived).items()
        }
        assert lake.rows("enriched") == expected


def test_of_two_records_with_one_position_the_later_one_of_a_run_counts_and_none_of_a_later_run(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    lake.land("bronze/customers/1.jsonl", lines([{"id": 1, "name": "Ann", "at": "2026-01-01", "n": 1}]))
    lake.land("bronze/orders/1.jsonl", lines([order(5, 1, amount="1"), order(5, 1, amount="2")]))
    assert lake.run()["ingest.orders"]["duplicate"] == 1
    assert str(lake.rows("enriched")[1]["total"]) == "2.00"
    lake.land("bronze/orders/2.jsonl", lines([order(5, 1, amount="3")]))
    assert lake.run()["ingest.orders"]["duplicate"] == 1
    assert str(lake.rows("enriched")[1]["total"]) == "2.00"


def test_what_is_refused_can_be_asked_for_and_is_replayed_when_columns_say_how_it_is_read(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    lake.land("bronze/customers/1.jsonl", lines([{"id": 1, "name": "Ann", "at": "2026-01-01", "n": 1}]))
    bad = {**order(7, 2), "amount": "USD 5"}
    lake.land("bronze/orders/1.jsonl", lines([order(5, 1), order(6, 1, amount="2"), bad]))
    assert lake.run()["ingest.orders"]["quarantined"] == 1
    assert lake.kept_aside("orders") == {("bronze/orders/1.jsonl", 3): ("VALUE_EXPRESSION", json.dumps(bad))}
    topology = lake.topology
    answer = why(topology.ledger, topology.refs, topology.access, "enriched", ["1"], None)
    assert "file='bronze/orders/1.jsonl', line=2," in repr(answer)
    lake.declare(TOPOLOGY.replace("replace(amount, ',', '')", "replace(replace(amount, ',', ''), 'USD ', '')").format(**USUAL))
    lake.run(replay=("orders",))
    assert (str(lake.rows("enriched")[2]["total"]), lake.kept_aside("orders")) == ("5.00", {})


def test_fault_another_order_for_rows_that_are_stored_is_refused(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    lake.land("bronze/customers/1.jsonl", lines([{"id": 1, "name": "Ann", "at": "2026-01-01", "n": 1}]))
    lake.land("bronze/orders/1.jsonl", lines([order(5, 1)]))
    lake.run()
    lake.declare(TOPOLOGY.format(**USUAL | {"order": "arrival()"}))
    with pytest.raises(SchemaRefused, match=r"was __lsn and is now arrival\(\)"):
        lake.run()


def test_fault_a_renamed_field_is_no_null(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    lake.land("bronze/customers/1.jsonl", lines([{"id": 1, "name": "Ann", "at": "2026-01-01", "n": 1}]))
    renamed = [{"order_id": 1, "customer": 1, "amounts": "1", "__lsn": 5, "__deleted": "false"}]
    lake.land("bronze/orders/1.jsonl", lines(renamed))
    with pytest.raises(SchemaDrift, match="lacks: total"):
        lake.run()
    lake.land("bronze/orders/1.jsonl", lines([{"deleted" if k == "__deleted" else k: v for k, v in order(5, 1).items()}]))
    with pytest.raises(BadRecords, match="UNKNOWN_OP"):
        lake.run()


@pytest.mark.by_spark
def test_files_that_spark_writes_are_read(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, TOPOLOGY.format(**USUAL))
    lake.land("bronze/customers/1.jsonl", lines([{"id": 1, "name": "Ann", "at": "2026-01-01", "n": 1}]))
    rows = [order(5, 1, amount="1,234.5"), order(6, 2, None, "2"), order(7, 3, gone=True)]
    frame = sessions(lake.topology).createDataFrame(rows, "order_id LONG, customer INT, amount STRING, __lsn LONG, __deleted STRING")
    (tmp_path / "bronze/orders").mkdir()
    for day, (how, ending) in enumerate({"json": ".json", "parquet": ".parquet"}.items()):
        frame.coalesce(1).write.format(how).save(str(tmp_path / how))
        [part] = (tmp_path / how).glob(f"part-*{ending}")
        part.rename(tmp_path / f"bronze/orders/{day}-{part.name}")
    assert lake.run()["ingest.orders"]["duplicate"] == 3
    assert {k: str(row["total"]) for k, row in lake.rows("enriched").items()} == {1: "1234.50", 2: "2.00"}


def test_a_plan_that_was_saved_is_the_same_plan(tmp_path: Path, sessions: Sessions) -> None:
    for order_by in ('"__lsn"', "arrival()", '["a", "CAST(b AS BIGINT)"]'):
        lake = Lake(
            tmp_path, sessions, TOPOLOGY.format(**USUAL | {"order": order_by}).replace("columns=", "format=csv(names=['a']), columns=")
        )
        assert json_form.from_json(json_form.to_json(lake.topology.plan)) == lake.topology.plan
