"""Faults of sources and values, a test each that names its id: in whole runs, with a coded error or the right result, and the same rows either way."""

import gzip
import io
import json
import time
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import Sessions
from integration.shop import rows
from integration.texts import Lake, line, put

from rejoin.errors import SourceCorrupt, SourceEpoch, TopologyError
from rejoin.plan.change import fingerprint
from rejoin.plan.model.policy import Fuse

pytestmark = pytest.mark.slow

ORDERS = """
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, total DECIMAL(12,2), at TIMESTAMP, weight DOUBLE", source=debezium("orders", max_bad_share=1))
customers = t.table("customers", key="id", schema="id STRING, name STRING", source=debezium("customers", max_bad_share=1))
orders.left_join(customers, "customer", ["left.*", "right.name"]).named("out")
orders.join(customers, "customer", ["left.id", "left.customer", "right.name"]).named("inner")
"""


@pytest.fixture
def lake(tmp_path: Path, sessions: Sessions) -> Lake:
    made = Lake(tmp_path, sessions, ORDERS)
    land(made, "customers/0.jsonl", customer(1, "a", "Ann"), customer(2, "b", "Bob"))
    return made


def customer(lsn: int, key: str, name: str) -> str:
    return line("c", lsn, {"id": key}, {"id": key, "name": name})


def order(lsn: int, key: int, customer: str | None = None, **values: object) -> str:
    return put(lsn, key, **{"customer": customer, "total": None, "at": None, "weight": None, **values})


def gone(lsn: int, key: int) -> str:
    return line("d", lsn, {"id": key})


def hashes(lake: Lake) -> dict[object, str]:
    """The hash of each order's newest version."""
    return {row["id"]: row["_hash"] for row in sorted(rows(lake.topology, "orders"), key=itemgetter("_run"))}


def land(lake: Lake, name: str, *lines: str) -> None:
    lake.land(name, "".join(one + "\n" for one in lines))


def run(lake: Lake, *lines: str) -> dict[str, int]:
    """A run over some changes of orders; what became of them."""
    number = len(list((lake.root / "orders").glob("*"))) if (lake.root / "orders").exists() else 0
    land(lake, f"orders/{number:03}.jsonl", *lines)
    return {kind: count for kind, count in lake.run()["ingest.orders"].items() if count}


def joined(lake: Lake) -> dict[object, object]:
    return {key: (row["customer"], row["name"]) for key, row in lake.rows("out").items()}


def totals(lake: Lake) -> dict[object, object]:
    return {key: row["total"] for key, row in lake.rows("out").items()}


def codes(lake: Lake) -> list[str]:
    return sorted(code for code, _ in lake.kept_aside("orders").values())


# --- the stream -------------------------------------------------------------------------------------------------------------


def test_fault_s3_rows_of_one_position_are_all_applied(lake: Lake) -> None:
    assert run(lake, *(order(7, key, "a") for key in range(50)))["applied"] == 50
    assert len(joined(lake)) == 50


def test_fault_s7_a_log_that_begins_again_is_told(lake: Lake) -> None:
    run(lake, order(5_000, 1, "a"), order(5_001, 2, "a"))
    assert run(lake, order(7, 1, "b"), order(6, 1, "a"), order(8, 2, "b"))["stale"] == 3
    assert joined(lake) == {1: ("a", "Ann"), 2: ("a", "Ann")}
    [told] = lake.topology.ledger.steps(2)["ingest.orders"].detail["warnings"]
    assert told.startswith("all 3 changes of orders are older than its rows") and "another server's" in told


def test_fault_s7_a_log_that_has_certainly_begun_again_stops_the_run(lake: Lake) -> None:
    def at(minutes: int, *lines: str) -> list[str]:
        stamp = round((time.time() + 60 * minutes) * 1000)
        return [one.replace('"source": {', f'"source": {{"ts_ms": {stamp}, ') for one in lines]

    run(lake, *at(-60, order(5_000, 1, "a"), order(5_001, 2, "a")))
    late = at(5, order(7, 1, "b"), gone(8, 2))  # the clock of the source may be so fast
    assert run(lake, *late)["stale"] == 2
    with pytest.raises(SourceEpoch, match="the log of 'orders' has begun again"):
        run(lake, *late, *at(15, order(9, 2, "b")))
    (lake.root / "orders" / "002.jsonl").unlink()
    assert run(lake, *at(15, order(6, 1, "b"), order(10, 3, "b")))["stale"] == 1  # nothing is older than a row that was not there
    assert joined(lake) == {1: ("a", "Ann"), 2: ("a", "Ann"), 3: ("b", "Bob")}


def test_fault_s8_a_file_that_is_late_is_read_by_the_next_run_whatever_its_name(lake: Lake) -> None:
    run(lake, order(9, 1, "a"))
    land(lake, "orders/+late", order(8, 1, "b"), order(8, 2, "b"))
    lake.run()
    assert joined(lake) == {1: ("a", "Ann"), 2: ("b", "Bob")}


def test_fault_s9_parquet_that_is_cut_stops_the_run(lake: Lake) -> None:
    run(lake, order(1, 1, "a"))
    whole = io.BytesIO()
    pq.write_table(pa.table({"op": ["m"] * 99}), whole)
    lake.land("orders/9.parquet", whole.getvalue()[:-20])
    with pytest.raises(SourceCorrupt, match=r"orders/9\.parquet"):
        lake.run()
    assert joined(lake) == {1: ("a", "Ann")}


def test_fault_s10_a_cut_line_is_kept_aside(lake: Lake) -> None:
    run(lake, order(1, 1, "a"), order(2, 2, "a")[:-30])
    assert joined(lake) == {1: ("a", "Ann")} and codes(lake) == ["BAD_JSON"]


def test_fault_s10_gzip_that_is_cut_stops_the_run(lake: Lake) -> None:
    lake.land("orders/1.jsonl.gz", gzip.compress(order(1, 1, "a").encode())[:-9])
    with pytest.raises(SourceCorrupt, match=r"orders/1\.jsonl\.gz"):
        lake.run()


def test_fault_s10_avro_that_is_cut_stops_the_run(lake: Lake) -> None:
    schema = {"type": "record", "name": "e", "fields": [{"name": "op", "type": "string"}]}
    whole = io.BytesIO()
    fastavro.writer(whole, schema, [{"op": "m"}] * 999)
    lake.land("orders/1.avro", whole.getvalue()[:-7])
    with pytest.raises(SourceCorrupt, match=r"orders/1\.avro"):
        lake.run()


def test_fault_s12_rows_without_a_key_are_refused(lake: Lake) -> None:
    keyless = line("c", 1, None, {"customer": "a"}), line("c", 2, None, {"id": None, "customer": "a"})
    assert run(lake, *keyless, order(3, 1, "a"))["quarantined"] == 2
    assert joined(lake) == {1: ("a", "Ann")} and codes(lake) == ["MISSING_KEY", "MISSING_KEY"]


def test_fault_s13_records_that_are_no_rows_are_counted_and_unknown_ones_kept_aside(lake: Lake) -> None:
    heartbeat = json.dumps({"key": {"serverName": "shop"}, "value": {"ts_ms": 1}})
    transaction = json.dumps(
        {"key": {"id": "7"}, "value": {"status": "BEGIN", "id": "7", "ts_ms": 1, "event_count": None, "data_collections": None}}
    )
    message = line("m", 4, {"prefix": "x"}, value={"message": {"prefix": "x", "content": "eA=="}})
    truncate = line("t", 3, None)
    found = run(lake, order(1, 1, "a"), heartbeat, transaction, message, truncate, order(5, 2, "b"), line("x", 6, {"id": 1}, {"id": 1}))
    assert (found["skipped"], found["quarantined"]) == (3, 1) and codes(lake) == ["UNKNOWN_OP"]
    assert joined(lake) == {2: ("b", "Bob")}


@pytest.mark.parametrize("before", [None, {"id": 1, "customer": None}], ids=["nothing", "the key"])
def test_fault_s16_what_a_row_was_is_known_without_the_source(lake: Lake, before: dict[str, Any] | None) -> None:
    run(lake, order(1, 1, "a"))
    run(lake, line("u", 2, {"id": 1}, {"id": 1, "customer": "b", "total": None, "at": None, "weight": None}, value={"before": before}))
    assert joined(lake) == {1: ("b", "Bob")}
    land(lake, "customers/1.jsonl", customer(3, "a", "Amy"))  # nobody has it any more
    assert not lake.run()["resolve.out"]["updated"]
    run(lake, line("d", 4, {"id": 1}, value={"before": before}))
    assert joined(lake) == {}


def test_fault_s18_a_value_that_took_the_place_of_null_is_the_value(lake: Lake) -> None:
    """Nothing in the record tells: ``replace.null.with.default`` has to be off, as docs/sources.md says."""
    run(lake, order(1, 1, "a", total="0.00"))
    assert totals(lake) == {1: Decimal("0.00")}
    assert "replace.null.with.default" in (Path(__file__).parents[2] / "docs" / "sources.md").read_text()


# --- values and keys ----------------------------------------------------------------------------------------------------------


def test_fault_v1_null_joins_nothing(lake: Lake) -> None:
    land(lake, "customers/1.jsonl", line("c", 9, None, {"id": None, "name": "Nil"}))
    for lsn, customer_, name in ((1, None, None), (2, "a", "Ann"), (3, None, None), (4, None, None)):
        run(lake, order(lsn, 1, customer_, weight=float(lsn)))
        assert joined(lake) == {1: (customer_, name)}
        assert len(lake.rows("inner")) == (name is not None)
    run(lake, gone(5, 1))
    assert joined(lake) == {} and lake.rows("inner") == {}


EXACT = "9007199254740993.00"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("9007199254.93", Decimal("9007199254.93")),
        ("1.1", Decimal("1.10")),
        ("1E+2", Decimal("100.00")),
        ("1.239", "VALUE_RANGE"),
        (EXACT, "VALUE_RANGE"),
        ("NaN", "VALUE_TYPE"),
        ("", "VALUE_TYPE"),
        ({"scale": 1, "value": "ew=="}, Decimal("12.30")),
    ],
)
def test_fault_v2_a_decimal_is_exact_or_refused(lake: Lake, written: object, expected: object) -> None:
    run(lake, order(1, 1, "a", total=written), order(1, 2, "a", total="0.05"))
    if isinstance(expected, str):
        assert totals(lake) == {2: Decimal("0.05")} and len(codes(lake)) == 1
    else:
        assert totals(lake) == {1: expected, 2: Decimal("0.05")}


def test_fault_v3_one_number_in_two_ways_is_one_value(lake: Lake) -> None:
    run(lake, order(1, 1, "a", total="1.10"))
    run(lake, order(2, 1, "a", total="1.1"))
    steps = lake.topology.ledger.steps(2)
    assert not steps["resolve.out"].counts["updated"] and totals(lake) == {1: Decimal("1.10")}


UNITS = {"ms": 1_700_000_000_123, "us": 1_700_000_000_123_456, "ns": 1_700_000_000_123_456_000}


@pytest.mark.parametrize("unit", UNITS)
def test_fault_v4_the_unit_of_a_time_is_that_of_its_schema_or_declared(lake: Lake, unit: str) -> None:
    lake.declare(ORDERS.replace('debezium("orders"', f'debezium("orders", units={{"at": "{unit}"}}'))
    run(lake, order(1, 1, "a", at=UNITS[unit]))
    assert str(lake.rows("out")[1]["at"]).startswith("2023-11-14 22:13:20.123")


@pytest.mark.parametrize(
    "far", [9223372036825200000, -9223372036832400000, "0000-00-00 00:00:00", "0044-03-15T00:00:00Z BC", -62_135_596_800_000_001]
)
def test_fault_v5_a_time_that_no_date_has_is_kept_aside(lake: Lake, far: object) -> None:
    run(lake, order(1, 1, "a", at=far), order(2, 2, "a"))
    assert set(joined(lake)) == {2} and codes(lake)[0] in ("VALUE_RANGE", "VALUE_TYPE", "VALUE_INFINITE")


def test_fault_v6_both_zeros_are_one_value_and_nan_is_itself(lake: Lake) -> None:
    run(lake, order(1, 1, "a", weight=0.0), order(1, 2, "a", weight="NaN"))
    known = lake.topology.ledger.steps(1)["resolve.out"].counts
    run(lake, order(2, 1, "a", weight=-0.0), order(2, 2, "a", weight="NaN"))
    assert known["inserted"] == len(joined(lake)) and not lake.topology.ledger.steps(2)["resolve.out"].counts["updated"]


NAMES = ["é", "e\u0301", "A", "a ", "a\u200b", "\u00a0a", "a\x00"]


def test_fault_v7_keys_that_look_alike_are_several(lake: Lake) -> None:
    land(lake, "customers/1.jsonl", *(customer(9, key, f"name {n}") for n, key in enumerate(NAMES)))
    run(lake, *(order(1, n, key) for n, key in enumerate([*NAMES, "a"])))
    assert joined(lake) == {n: (key, f"name {n}") for n, key in enumerate(NAMES)} | {len(NAMES): ("a", "Ann")}


def test_fault_v8_odd_keys_are_told_apart(tmp_path: Path, sessions: Sessions) -> None:
    parts = [("a,", "b"), ("a", ",b"), ("", "a"), ("a", ""), ("\x1f", "a"), ("a\x1f", ""), ("x" * 1_000_000, "y")]
    schema = 'key=["x", "y"], schema="x STRING, y STRING, n INT"'
    made = Lake(
        tmp_path,
        sessions,
        f'left = t.table("l", {schema}, source=debezium("l"))\nright = t.table("r", {schema}, source=debezium("r"))\n'
        'left.left_join(right, ["x", "y"], ["left.*", "right.n AS m"]).named("out")\n',
    )
    for side in "lr":
        land(made, f"{side}/0.jsonl", *(line("c", 1, {"x": x, "y": y}, {"x": x, "y": y, "n": n}) for n, (x, y) in enumerate(parts)))
    made.run()
    found = rows(made.topology, "out")
    assert sorted(r["n"] for r in found) == list(range(len(parts))) and all(r["n"] == r["m"] for r in found)


def test_fault_v9_keys_of_two_types_are_refused_when_the_file_is_read(lake: Lake) -> None:
    lake.declare(ORDERS.replace('"id STRING, name', '"id INT, name'))
    with pytest.raises(TopologyError, match="customer"):
        lake.run()
    lake.declare(ORDERS.replace("id BIGINT", "id INT"))
    run(lake, order(1, 1, "a"), order(1, 2**31, "a"))
    assert set(joined(lake)) == {1} and codes(lake) == ["VALUE_RANGE"]


def test_fault_v10_rows_that_are_the_same_under_another_version_of_the_hash_change_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lake, order(1, 1, "a"), order(2, 2, "a"))
    before = hashes(lake)
    monkeypatch.setattr(fingerprint, "HASH_VERSION", fingerprint.HASH_VERSION + 1)
    monkeypatch.setattr(fingerprint.fingerprint, "__defaults__", (fingerprint.HASH_VERSION,))
    for lsn in (3, 5):  # the first run makes the output anew, the next one does not
        run(lake, order(lsn, 1, "a"), order(lsn + 1, 2, "ab"[lsn // 5]))
        assert lake.topology.ledger.steps(lsn // 2 + 1)["resolve.out"].counts["updated"] == lsn // 5
    assert joined(lake) == {1: ("a", "Ann"), 2: ("b", "Bob")}
    assert hashes(lake).keys() == before.keys() and not {*hashes(lake).values()} & {*before.values()}


def test_fault_v12_a_row_with_many_subscribers_and_many_versions_is_one_change_of_each(lake: Lake) -> None:
    run(lake, *(order(1, key, "a") for key in range(20_000)))
    land(lake, "customers/1.jsonl", *(customer(n, "a", f"name {n}") for n in range(10, 3_000)))
    assert lake.run(fuse=Fuse.APPLY)["resolve.out"]["updated"] == 20_000
    assert {*joined(lake).values()} == {("a", "name 2999")}


def test_fault_v13_what_can_be_read_in_two_ways_is_kept_aside(lake: Lake) -> None:
    twice = order(1, 1, "a").replace('"customer": "a"', '"customer": "a", "customer": "b"')
    run(lake, twice, order(2, 2, "a", weight=float("nan")), order(3, 3, "a", unknown=1))
    assert set(joined(lake)) == {3} and codes(lake) == ["AMBIGUOUS_JSON", "BAD_JSON"]


def test_fault_v15_a_row_never_goes_back_whichever_side_moves(lake: Lake) -> None:
    run(lake, order(5, 1, "a"))
    land(lake, "customers/1.jsonl", customer(7, "a", "Amy"), customer(3, "a", "Abe"))
    lake.run()
    assert joined(lake) == {1: ("a", "Amy")}
    run(lake, order(4, 1, "b"))
    assert joined(lake) == {1: ("a", "Amy")}
