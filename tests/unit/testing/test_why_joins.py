"""``rejoin why`` of joins that are no star of foreign keys: which version, record or row is on the right, and why there is none."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from rejoin import Topology, debezium, records
from rejoin.testing import Driver
from rejoin.why.trace import why
from rejoin.why.tree import WIDE, tree

DAY = "2026-01-01"


def told(driver: Driver, name: str, *key: str | None, run: int | None = None) -> tuple[dict[str, Any], str]:
    """The answer as data and as a text."""
    topology = driver._topology
    answer, out = why(topology.ledger, topology.refs, topology.access, name, key, run), io.StringIO()
    Console(file=out, width=WIDE, highlight=False, color_system=None).print(tree(answer))
    return answer.to_dict(), out.getvalue()


def causes(found: dict[str, Any]) -> list[str]:
    return [reason["cause"] for reason in found["reasons"]]


# --- a stream with a table --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prices() -> Iterator[Driver]:
    """Orders at the price of their time, and at the price that was known when they came."""
    shop = Topology("shop")
    schema = "id BIGINT, product BIGINT, at TIMESTAMP"
    orders = shop.stream("orders", id="id", key="product", event_time="at", schema=schema, source=records("landing/orders"))
    products = shop.table("products", key="id", schema="id BIGINT, price BIGINT", source=debezium("landing/products"))
    select = ["left.id", "left.product", "right.price"]
    orders.left_join(products, as_of="event_time", select=select, name="then")
    orders.join(products, as_of="event_time", select=select, name="then_inner")
    orders.left_join(products, as_of="run", select=select, name="now")
    orders.join(products, as_of="arrival", foreign_key="product + 0", select=select, name="computed")
    with Driver(shop) as driver:
        for hour, products_, orders_ in (
            (8, "id | price\n 1 | 10", ""),
            (10, "1 | 11", f"id | product | at\n 5 | 1 | {DAY} 09:00:00\n 6 | 1 | {DAY} 07:00:00\n 7 | NULL | {DAY} 09:00:00"),
            (12, "- 1", f"8 | 1 | {DAY} 13:00:00"),
        ):
            driver.clock = driver.clock.replace(hour=hour) if driver.clock else at(hour)
            driver.run(products=products_, **({"orders": orders_} if orders_ else {}))
        yield driver


def at(hour: int) -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, hour, tzinfo=UTC)


def test_as_of_event_time_it_is_the_version_of_the_row_that_was_valid_then(prices: Driver) -> None:
    found, text = told(prices, "then", "5")
    (right,) = found["rights"]
    assert (right["match"], right["how"]["since"], right["how"]["until"]) == ("found", at(8), at(10))
    assert right["row"]["table"] == "products" and right["row"]["key"] == {"id": 1}
    assert (right["row"]["record"]["run"], right["row"]["record"]["line"]) == (1, 1)
    assert (
        f"left join products 1 by product: there, came in run 1, applied, landing/products/000001-products.jsonl line 1, valid since {DAY} 08:00:00+00:00, until before {DAY} 10:00:00+00:00; the record happened at {DAY} 09:00:00+00:00"
        in text
    )


def test_before_the_first_version_there_is_none_and_a_deleted_row_is_said_to_be_deleted(prices: Driver) -> None:
    found, text = told(prices, "then", "6")
    assert (found["rights"][0]["match"], found["rights"][0]["how"]["since"]) == ("absent", None)
    assert (
        f"left join products 1: none was valid at {DAY} 07:00:00+00:00, when the record happened: its first version is valid since {DAY} 08:00:00+00:00"
        in text
    )
    found, text = told(prices, "then", "8")
    (right,) = found["rights"]
    assert (found["row"]["price"], right["match"], right["how"]["gone"], right["row"]["state"]) == (None, "absent", True, "removed")
    assert f"deleted since {DAY} 12:00:00+00:00, which is the newest; the record happened at {DAY} 13:00:00+00:00" in text


def test_an_inner_join_as_of_event_time_has_no_row_where_none_was_valid(prices: Driver) -> None:
    found, text = told(prices, "then_inner", "6")
    assert (found["state"], causes(found), found["certain"]) == ("never", ["absent"], True)
    assert "the inner join with products drops it: no right row" in text
    assert told(prices, "then_inner", "7")[0]["rights"][0]["match"] == "null"


def test_as_of_the_run_it_is_the_row_that_the_run_has_seen(prices: Driver) -> None:
    found, text = told(prices, "now", "5")
    (right,) = found["rights"]
    assert (found["row"]["price"], right["how"], right["match"]) == (11, {"as_of": "run", "run": 2, "expired": False}, "found")
    assert (right["row"]["state"], right["row"]["record"]["run"]) == ("there", 2)
    assert "as it was in run 2, which read the record; later changes do not reach the row" in text
    gone = told(prices, "now", "8")[0]["rights"][0]
    assert (gone["match"], gone["how"]["run"], gone["row"]["state"]) == ("absent", 3, "removed")


def test_a_key_that_is_computed_is_said_to_be_not_known(prices: Driver) -> None:
    found, _ = told(prices, "computed", "5")
    assert (found["state"], found["rights"][0]["match"]) == ("there", "unknown")


# --- two streams ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visits() -> Iterator[Driver]:
    made = Topology("visits")
    views, clicks = (
        made.stream(
            name, id="id", key="ad", event_time="at", schema="id STRING, ad STRING, at TIMESTAMP", source=records(f"landing/{name}")
        )
        for name in ("views", "clicks")
    )
    select = ["left.id AS view", "right.id AS click"]
    views.full_join(clicks, before="0 seconds", after="10 seconds", select=select, name="both")
    views.join(clicks, within="10 seconds", select=select, name="pairs")
    with Driver(made) as driver:
        driver.run(
            views=f"id | ad | at\n a | A | {DAY} 10:00:00\n b | B | {DAY} 10:00:00\n n | NULL | {DAY} 10:00:55",
            clicks=f"id | ad | at\n 1 | A | {DAY} 10:00:09\n 2 | A | {DAY} 10:00:30\n w | W | {DAY} 10:01:00",
        )
        driver.run(views=f"v | V | {DAY} 10:00:55")
        yield driver


def test_of_a_pair_both_records_and_their_times_are_told(visits: Driver) -> None:
    found, text = told(visits, "both", "a", "1")
    (right,) = found["rights"]
    assert (found["state"], right["match"], right["row"]["record"]["line"]) == ("there", "found", 1)
    assert (right["how"]["left"].second, right["how"]["right"].second, right["how"]["last"].second) == (0, 9, 10)
    assert (
        f"it happened at {DAY} 10:00:09+00:00, the left one at {DAY} 10:00:00+00:00; a partner is from {DAY} 10:00:00+00:00 to {DAY} 10:00:10+00:00"
        in text
    )


def test_a_record_without_partner_names_the_times_where_none_was(visits: Driver) -> None:
    found, text = told(visits, "both", "b", None)
    assert (found["state"], found["rights"][0]["how"]["partners"]) == ("there", [])
    assert (
        f"no right record is its partner, from {DAY} 10:00:00+00:00 to {DAY} 10:00:10+00:00; the record happened at {DAY} 10:00:00+00:00, the watermark is at {DAY} 10:01:00+00:00"
        in text
    )
    found, text = told(visits, "both", None, "2")
    assert (found["state"], found["left"], found["rights"][0]["how"]["partners"]) == ("there", None, [])
    assert f"no left record is its partner, from {DAY} 10:00:20+00:00 to {DAY} 10:00:30+00:00" in text


def test_a_record_that_waits_names_the_end_of_its_window_and_the_watermark(visits: Driver) -> None:
    found, text = told(visits, "both", "v", None)
    assert (found["state"], causes(found), found["certain"]) == ("never", ["waits"], True)
    assert f"it waits: its window ends at {DAY} 10:01:05+00:00, and the watermark has not passed that" in text
    assert causes(told(visits, "both", None, "w")[0]) == ["waits"], "its window ends at the watermark, which has to be later"
    assert told(visits, "both", "n", None)[0]["state"] == "there", "what is null has no partner, and waits for none"


@pytest.mark.parametrize(
    ("name", "key", "cause", "said"),
    [
        ("both", ("a", None), "partners", "it is not alone: the join with clicks finds 1"),
        ("both", (None, "1"), "partners", "it is not alone: the join with clicks finds a"),
        ("both", ("a", "2"), "outside", "the two records are further apart than the window"),
        ("pairs", ("b", "1"), "different", "the two records differ in what has to be equal"),
        ("pairs", ("b", None), "only_pairs", "this join with clicks has only pairs on that side"),
    ],
)
def test_why_two_streams_have_no_such_result(visits: Driver, name: str, key: tuple[str | None, ...], cause: str, said: str) -> None:
    found, text = told(visits, name, *key)
    assert (found["state"], causes(found), found["certain"]) == ("never", [cause], True)
    assert said in text


# --- right and full joins, and tables by one key ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop() -> Iterator[Driver]:
    made = Topology("shop")
    orders = made.table("orders", key="id", schema="id BIGINT, customer BIGINT", source=debezium("landing/orders"))
    customers = made.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("landing/customers"))
    orders.full_join(customers, foreign_key="customer", select=["left.id AS id", "right.id AS customer", "right.name"], name="full")
    orders.join(customers, select=["left.id", "right.name"], name="same")
    with Driver(made) as driver:
        driver.run(orders="id | customer\n 1 | 7\n 2 | 9\n 3 | NULL\n 4 | 7", customers="id | name\n 7 | Ann\n 8 | Bob\n 1 | Cleo")
        yield driver


def test_a_right_row_alone_is_so_as_no_left_row_has_its_key(shop: Driver) -> None:
    found, text = told(shop, "full", None, "8")
    assert (found["state"], found["left"], found["rights"][0]["how"]["lefts"]) == ("there", None, [])
    assert "no left row has it as its foreign key" in text


def test_a_left_row_alone_has_no_key_or_no_right_row_of_that_key(shop: Driver) -> None:
    assert told(shop, "full", "2", None)[0]["rights"][0]["match"] == "absent"
    assert "full join customers 9 by customer: no row had this key" in told(shop, "full", "2", None)[1]
    assert told(shop, "full", "3", None)[0]["state"] == "there"


@pytest.mark.parametrize(
    ("name", "key", "cause", "said"),
    [
        ("full", (None, "7"), "partners", "it is not alone: the join with customers finds 1, 4"),
        ("full", ("1", None), "partners", "it is not alone: the join with customers finds 7"),
        ("full", ("1", "8"), "moved", "the foreign key of the left row is another one: 7"),
        ("same", ("2",), "absent", "the inner join with customers drops it: no right row"),
        ("same", ("8",), "left_row", "left orders 8: no row had this key"),
    ],
)
def test_why_there_is_no_such_row(shop: Driver, name: str, key: tuple[str | None, ...], cause: str, said: str) -> None:
    found, text = told(shop, name, *key)
    assert (found["state"], causes(found), found["certain"]) == ("never", [cause], True)
    assert said in text
