"""What a real Debezium 3.6.3 wrote of a real PostgreSQL becomes the same events: its engine in three modes, and Debezium Server, which posts values by HTTP."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from source_cases import CAPTURES, capture, decode, table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource

ORDERS = (
    "id BIGINT; customer_id STRING; total DECIMAL(12,2); qty INT; small INT; rate FLOAT; dbl DOUBLE; ok BOOLEAN; ts3 TIMESTAMP_NTZ;"
    "raw STRING; big STRING; st STRING; c STRING; ip STRING; m DECIMAL(10,2)"
)
ITEMS, CUSTOMERS = (
    "order_id BIGINT; line INT; sku STRING; note STRING",
    "id STRING; name STRING; birth DATE; created TIMESTAMP; photo BINARY",
)


@pytest.fixture(params=["debezium_capture.jsonl", "debezium_capture_schemas.jsonl", "debezium_capture_string.jsonl"])
def capture_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def of(topic: str, ddl: str, key: str = "id") -> Table:
    return table(ddl, key, DebeziumSource("x", topic=f"e6.{topic}", units=(("ts3", "ms"),)))


@pytest.mark.parametrize(
    ("topic", "ddl", "key", "expected"),
    [
        ("shop.orders", ORDERS, "id", {"upsert": 9, "delete": 4}),
        ("shop.items", ITEMS, "order_id,line", {"upsert": 5, "delete": 2, "truncate": 1}),
        ("shop.customers", CUSTOMERS, "id", {"upsert": 3}),
        ("shop.full_ri", "id BIGINT; big STRING; v INT", "id", {"upsert": 2, "delete": 2}),
        ("shop.nopk", "id BIGINT; a INT; b STRING", "id", {"quarantined": 1, "truncate": 1}),
        ("shop.nopk", "a INT; b STRING", "a", {"upsert": 1, "truncate": 1}),
        ("shop.done", "id BIGINT", "id", {"upsert": 1}),
        ("transaction", "id STRING", "id", {"skipped": 30}),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_every_line_of_a_capture_is_one_event(capture_name: str, topic: str, ddl: str, key: str, expected: dict[str, int]) -> None:
    found = Counter(row["_kind"] for row in capture(of(topic, ddl, key), capture_name))
    others = 61 - sum(expected.values())
    assert found == Counter(expected) + Counter(skipped=others if topic != "transaction" else 31)


def test_a_row_with_every_type_has_exactly_the_values_of_the_database(capture_name: str) -> None:
    row = next(r for r in capture(of("shop.orders", ORDERS), capture_name) if r["id"] == 1)
    assert {c: row[c] for c in row if c != "big" and not c.startswith("_")} == {
        "id": 1,
        "customer_id": "11111111-1111-4111-8111-111111111111",
        "total": Decimal("12345.60"),
        "qty": 7,
        "small": 3,
        "rate": 1.5,
        "dbl": 2.25,
        "ok": True,
        "ts3": datetime(2024, 2, 29, 13, 14, 15, 123000),  # noqa: DTZ001
        "raw": '{"a": 1,  "b":[true,null]}',
        "st": "paid",
        "c": "ab   ",
        "ip": "10.0.0.1",
        "m": Decimal("12.34"),
    }
    assert row["big"] == "x" * 9000


def test_the_largest_decimal_of_a_column_is_exact(capture_name: str) -> None:
    assert [r["total"] for r in capture(of("shop.orders", ORDERS), capture_name) if r["_line"] == 8] == [Decimal("9999999999.99")]


def test_decimals_of_variable_scale_are_exact_and_refused_where_they_do_not_fit(capture_name: str) -> None:
    rows = capture(of("shop.orders", "id BIGINT; free DECIMAL(38,9)"), capture_name)
    assert [(r["free"], r["_code"]) for r in rows if r["_line"] in (5, 8)] == [(Decimal("0.000123000"), None), (None, "VALUE_RANGE")]


def test_dates_and_instants_are_equal_in_all_modes(capture_name: str) -> None:
    rows = capture(of("shop.orders", "id BIGINT; d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP"), capture_name)
    assert [(r["d"], r["ts"], r["tz"]) for r in rows if r["_line"] == 5] == [
        (date(2024, 2, 29), datetime(2024, 2, 29, 13, 14, 15, 123456), datetime(2024, 2, 29, 11, 14, 15, 123456, tzinfo=UTC))  # noqa: DTZ001
    ]
    customers = capture(of("shop.customers", CUSTOMERS), capture_name)
    assert [(r["birth"], r["created"], r["photo"]) for r in customers if r["_line"] < 3] == [
        (date(1980, 5, 6), datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), b"\x00\xff\x10"),
        (None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), None),
    ]


@pytest.mark.parametrize("column", ["d DATE", "ts TIMESTAMP_NTZ", "tz TIMESTAMP"])
def test_an_infinite_value_is_refused_and_the_key_is_kept(capture_name: str, column: str) -> None:
    rows = capture(of("shop.orders", f"id BIGINT; {column}"), capture_name)
    assert [(r["_line"], r["id"], r["_code"]) for r in rows if r["_kind"] == "quarantined"] == [
        (17, 3, "VALUE_INFINITE"),
        (22, 30, "VALUE_INFINITE"),
    ]


def test_an_unchanged_toast_value_is_missing_and_not_text(capture_name: str) -> None:
    rows = capture(of("shop.orders", ORDERS), capture_name)
    assert [(r["_line"], r["big"]) for r in rows if r["_missing"] == ["big"]] == [(11, None), (17, None), (22, None)]


def test_a_change_of_the_key_is_a_delete_a_duplicate_tombstone_and_an_upsert_with_the_old_key(capture_name: str) -> None:
    rows = [r for r in capture(of("shop.orders", ORDERS), capture_name) if 20 <= r["_line"] <= 22]
    at = "00000000000022190848.1.0000000000000000000"
    assert [(r["_kind"], r["id"], r["_position"], r["_old_key"]) for r in rows] == [
        ("delete", 3, at + "1", None),
        ("delete", 3, at + "1", None),
        ("upsert", 30, at + "2", {"id": 3}),
    ]


def test_a_delete_carries_no_false_zeros(capture_name: str) -> None:
    rows = [r for r in capture(of("shop.orders", ORDERS), capture_name) if r["_kind"] == "delete"]
    assert {r["total"] for r in rows} == {None}


def test_a_truncate_has_a_position_and_no_key(capture_name: str) -> None:
    rows = capture(of("shop.items", ITEMS, "order_id,line"), capture_name)
    found = [(r["order_id"], r["line"], r["_position"]) for r in rows if r["_kind"] == "truncate"]
    assert found == [(None, None, "00000000000022226792.1.00000000000000000001")]


def test_a_column_that_was_added_later_is_null_before(capture_name: str) -> None:
    rows = capture(of("shop.items", ITEMS, "order_id,line"), capture_name)
    assert [(r["sku"], r["note"], r["_missing"]) for r in rows if r["_kind"] == "upsert"][-2:] == [
        ("s2", None, []),
        ("after ddl", "n", []),
    ]


def test_no_line_of_a_capture_fails_when_key_and_value_are_objects(capture_name: str) -> None:
    def opened(text: Any) -> Any:
        return json.loads(text) if isinstance(text, str) else text

    lines = [json.loads(line) for line in (CAPTURES / capture_name).read_text().splitlines()]
    objects = [line | {"key": opened(line["key"]), "value": opened(line["value"])} for line in lines]
    orders = of("shop.orders", ORDERS)
    strip = [{c: r[c] for c in r if c not in ("_file", "_raw")} for r in capture(orders, capture_name)]
    assert [{c: r[c] for c in r if c not in ("_file", "_raw")} for r in decode(orders, *objects)] == strip


@pytest.mark.parametrize("form", ["bare", "schemas", "cloudevents"])
def test_what_debezium_server_posts_a_line_each_is_the_changes_of_the_database(form: str) -> None:
    ddl = "id INT; customer INT; total DECIMAL(12,2); placed TIMESTAMP; born DATE; photo BINARY; note STRING"
    found = capture(table(ddl, "id", DebeziumSource("x")), f"debezium_server_{form}.jsonl")
    shown = [(row["_kind"], row["id"], row["total"], row["note"]) for row in sorted(found, key=itemgetter("_position"))]
    assert sorted(shown[:3]) == [("upsert", n, Decimal(n) * 5 / 4, f"n{n}") for n in (1, 2, 3)]
    assert shown[3:5] == [("upsert", 1, Decimal("99.99"), "n1"), ("delete", 2, None, None)]
    assert sorted(shown[5:7]) == [("delete", 3, None, None), ("upsert", 33, Decimal("3.75"), "moved")]
    assert shown[7] == ("upsert", 4, None, None)
    seen = {(row["placed"], row["born"], row["photo"]) for row in found if row["total"] is not None}
    assert seen == {(datetime(2026, 11, 28, 10, tzinfo=UTC), date(2026, 11, 28), b"\x01\xff")}
