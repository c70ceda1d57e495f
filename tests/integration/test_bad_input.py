"""Bad input is quarantined with reason, file and line and counted, or stops the run before anything is visible; nothing is lost (S*, V*)."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import Go, Sessions
from integration.shop import Shop, event, output, rows

from rejoin.errors import (
    BadRecords,
    RejoinError,
    SchemaDrift,
    SnapshotEmpty,
    SnapshotShrunk,
    SourceCorrupt,
    SourceFileChanged,
    SourceMissing,
)
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.steps import Step, Verb
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"{feed}))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"{snap}))
orders.left_join(customers, foreign_key="customer_id", select=["left.id", "left.note", "right.name AS customer"], name="enriched")
"""


def shop(root: Path, feed: str = "", snap: str = "") -> Shop:
    made = Shop(root)
    made.file.write_text(FILE.format(feed=feed, snap=snap))
    return made


def topology(made: Shop) -> Topology:
    return Topology(load(str(made.file)), lake_config(str(made.lake)), str(made.root))


def land(made: Shop, name: str, text: str | bytes) -> Path:
    path = made.root / "landing" / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def order(lsn: int, key: object, **after: object) -> str:
    return event(lsn, key, {"id": key, "customer_id": 1, "note": "n", **after})  # type: ignore[arg-type]


CUSTOMERS = "id,name\n1,Ann\n2,Bob\n3,Cid\n4,Dee\n"


def test_every_refused_record_is_kept_with_reason_file_and_line_and_the_others_are_applied(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path)
    nobody = json.loads(event(5, 0, {"customer_id": 1}))["value"]
    no_key = json.dumps({"key": None, "value": nobody, "headers": {}}) + "\n"
    unknown = order(6, 9).replace('"op": "u"', '"op": "z"')
    lines = [order(1, 1), '{"key": {"id": 2}, "val\n', order(3, 3, customer_id="many"), order(4, 2**70), no_key, unknown, order(7, 7)]
    land(made, "orders/001.jsonl", "".join(lines) + order(8, 8)[:60])
    land(made, "customers/001.csv", "id,name\n1,Ann\nx,Bob\n3,Cid\n,Dee\n3,Cid\n4,Eve\n4,Eva\n")
    run = go(topology(made))
    found = {(r["_line"], r["_code"]) for r in rows(topology(made), "orders__quarantine")}
    assert found == {(2, "BAD_JSON"), (3, "VALUE_TYPE"), (4, "VALUE_RANGE"), (5, "MISSING_KEY"), (6, "UNKNOWN_OP"), (8, "BAD_JSON")}
    assert {str(r["_source_file"]) for r in rows(topology(made), "orders__quarantine")} == {"landing/orders/001.jsonl"}
    assert all(r["_raw"] for r in rows(topology(made), "orders__quarantine"))
    bad = sorted((r["_line"], r["_code"]) for r in rows(topology(made), "customers__quarantine"))
    assert bad == [(3, "VALUE_TYPE"), (5, "MISSING_KEY"), (7, "DUPLICATE_KEY"), (8, "DUPLICATE_KEY")]
    counts = {k: v.counts for k, v in topology(made).ledger.steps(run.number).items()}
    assert (counts["ingest.orders"]["read"], counts["ingest.orders"]["quarantined"], counts["ingest.orders"]["applied"]) == (8, 6, 2)
    assert (counts["ingest.customers"]["duplicate"], counts["ingest.customers"]["quarantined"]) == (1, 4)
    assert set(output(topology(made))) == {1, 7}


def test_the_policy_fail_stops_the_run_names_the_first_records_and_loses_nothing(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path, feed=', on_bad_record="fail"')
    land(made, "customers/001.csv", CUSTOMERS)
    path = land(made, "orders/001.jsonl", order(1, 1) + "not json\n")
    with pytest.raises(BadRecords, match=r"1 of 2 records of table 'orders'.*BAD_JSON at landing/orders/001.jsonl:2") as stopped:
        go(topology(made))
    assert stopped.value.exit_code == 3
    assert topology(made).ledger.head() is None
    path.write_text(order(1, 1))
    go(topology(made))
    assert set(output(topology(made))) == {1}


def test_more_bad_records_than_the_stated_share_stop_the_run(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path, feed=", max_bad_share=0.1")
    land(made, "customers/001.csv", CUSTOMERS)
    land(made, "orders/001.jsonl", "".join(order(i, i) for i in range(1, 50)) + "bad\n" * 11)
    with pytest.raises(BadRecords, match="11 of 60 records"):
        go(topology(made))


def test_a_quarantined_row_never_becomes_a_delete(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path, snap=", max_delete_share=0.5")
    land(made, "orders/001.jsonl", "".join(order(i, i, customer_id=i) for i in range(1, 5)))
    land(made, "customers/001.csv", CUSTOMERS)
    go(topology(made))
    land(made, "customers/002.csv", "id,name\n1,Ann\n2,Bob\n2,Rob\n4,Dee\n")  # 2 cannot be told; 3 is gone
    go(topology(made))
    assert [r["customer"] for _, r in sorted(output(topology(made)).items())] == ["Ann", "Bob", None, "Dee"]
    land(made, "customers/003.csv", "id,name\n1,Ann\nnobody,Bob\n")  # a key that is not readable may be anybody's
    go(topology(made))
    assert [r["customer"] for _, r in sorted(output(topology(made)).items())] == ["Ann", "Bob", None, "Dee"]


STOPS = {
    "a snapshot that lost most rows": ("customers/002.csv", "id,name\n1,Ann\n", SnapshotShrunk, "would delete 3 of 4 rows"),
    "a snapshot without rows": ("customers/002.csv", "id,name\n", SnapshotEmpty, "has no rows"),
    "a snapshot without bytes": ("customers/002.csv", "", SnapshotEmpty, "customers"),
    "a dropped column": ("customers/002.csv", "id,title\n1,Ann\n2,Bob\n3,Cid\n4,Dee\n", SchemaDrift, "name"),
    "a dropped key": ("customers/002.csv", "nr,name\n1,Ann\n2,Bob\n3,Cid\n4,Dee\n", SchemaDrift, "id"),
    "a truncated gzip": ("customers/002.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03KLL", SourceCorrupt, "002.csv.gz"),
    "a truncated Parquet file": ("customers/002.parquet", b"PAR1 and then nothing", SourceCorrupt, "002.parquet"),
}


@pytest.mark.parametrize("case", STOPS)
def test_what_cannot_be_trusted_stops_the_run_before_anything_is_visible(tmp_path: Path, go: Go, case: str) -> None:
    name, content, error, message = STOPS[case]
    made = shop(tmp_path)
    land(made, "orders/001.jsonl", "".join(order(i, i, customer_id=i) for i in range(1, 5)))
    land(made, "customers/001.csv", CUSTOMERS)
    go(topology(made))
    before = output(topology(made))
    land(made, "orders/002.jsonl", order(9, 9))
    bad = land(made, name, content)
    with pytest.raises(error, match=message) as stopped:
        go(topology(made))
    assert isinstance(stopped.value, RejoinError)
    assert stopped.value.exit_code == 3
    assert output(topology(made)) == before
    assert topology(made).ledger.head() == 1
    bad.unlink()
    land(made, "customers/003.csv", CUSTOMERS)
    go(topology(made))
    assert set(output(topology(made))) == {1, 2, 3, 4, 9}, "the orders of the stopped run are taken along"


def test_a_parquet_column_of_a_narrower_type_is_widened_and_of_another_type_refused(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path)
    land(made, "orders/001.jsonl", order(1, 1))
    target = made.root / "landing" / "customers"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["Ann", "Bob"]}), target / "001.parquet")
    go(topology(made))
    assert output(topology(made))[1]["customer"] == "Ann"
    pq.write_table(pa.table({"id": [1, 2], "name": [1.5, 2.5]}), target / "002.parquet")
    with pytest.raises(SchemaDrift, match="name"):
        go(topology(made))


def test_a_file_that_changed_after_it_was_cut_or_applied_stops_the_run(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    made = shop(tmp_path)
    land(made, "customers/001.csv", CUSTOMERS)
    path = land(made, "orders/001.jsonl", order(1, 1))
    here = topology(made)
    spark, run = sessions(here), here.open("me")
    here.cut(run)
    path.write_text(order(1, 2))
    with pytest.raises(SourceFileChanged, match=r"orders/001\.jsonl"):
        here.stage(lambda: spark, run, Step(Verb.INGEST, "orders", ()))
    here.ledger.abandon(run.number, "test")
    go(here)
    path.write_text(order(1, 1) + order(2, 2))
    with pytest.raises(SourceFileChanged, match=r"orders/001\.jsonl"):
        go(here)


def test_a_missing_path_is_named(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path)
    (made.root / "landing" / "orders").rmdir()
    land(made, "customers/001.csv", CUSTOMERS)
    with pytest.raises(SourceMissing, match="landing/orders"):
        go(topology(made))


def test_an_unchanged_snapshot_means_unchanged_and_starts_nothing(tmp_path: Path, go: Go) -> None:
    made = shop(tmp_path)
    land(made, "customers/001.csv", CUSTOMERS)
    land(made, "orders/001.jsonl", order(1, 1))
    go(topology(made))
    run = go(topology(made))
    steps = topology(made).ledger.steps(run.number)
    assert sum(s.jobs or 0 for s in steps.values()) == 0
    assert topology(made).ledger.writes(run.number) == {}
