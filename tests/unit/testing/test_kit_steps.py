"""What steps ask in passing, told by small runs: what they count, and who is told of a right row."""

from collections.abc import Iterator
from io import StringIO

import pytest
from limited import limited
from rich.console import Console

from rejoin import Topology, debezium
from rejoin.report.history import decisions
from rejoin.testing import Driver

ORDERS, CUSTOMERS = "order_id BIGINT, customer_id BIGINT, total INT", "customer_id BIGINT, name STRING"


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(shop()) as made:
        yield made


def shop() -> Topology:
    made = Topology("shop")
    orders = made.table("orders", key="order_id", schema=ORDERS, source=debezium("landing/orders"))
    customers = made.table("customers", key="customer_id", schema=CUSTOMERS, source=debezium("landing/customers"))
    orders.left_join(customers, "customer_id", ["left.order_id", "right.name"]).named("plain")
    orders.full_join(customers, "customer_id", ["left.order_id", "right.customer_id", "right.name"]).named("full")
    return made


def counts(driver: Driver, step: str) -> dict[str, int]:
    ledger = driver._topology.ledger
    head = ledger.head()
    assert head is not None
    return ledger.steps(head)[step].counts


def test_subscriptions_are_counted(driver: Driver) -> None:
    driver.run(orders="1 | 7 | 5\n 2 | 8 | 5\n 3 | 9 | 5", customers="7 | Ann")
    assert counts(driver, "subscribe.plain") == {"subscribed": 3, "unsubscribed": 0}
    driver.run(orders="2 | 7 | 5\n - 1")
    assert counts(driver, "subscribe.plain") == {"subscribed": 1, "unsubscribed": 2}


def test_new_left_rows_and_those_of_a_changed_right_row_are_answered_in_one_run(driver: Driver) -> None:
    driver.run(orders="1 | 7 | 5\n 2 | 8 | 5", customers="7 | Ann\n 8 | Bob")
    made = driver.run(orders="3 | 8 | 5\n 4 | 7 | 5", customers="7 | Anna")
    assert made["plain"] == "op | order_id | name\n I | 3 | Bob\n I | 4 | Anna\n U | 1 | Anna"


def test_a_right_row_is_alone_when_its_last_left_row_goes_elsewhere(driver: Driver) -> None:
    driver.run(orders="1 | 7 | 5\n 2 | 8 | 5", customers="7 | Ann\n 8 | Bob\n 9 | Cid")
    driver.run(orders="1 | 8 | 5\n 3 | 9 | 5")
    assert driver.table("full") == "order_id | customer_id | name\n 1 | 8 | Bob\n 2 | 8 | Bob\n 3 | 9 | Cid\n NULL | 7 | Ann"


def test_explain_says_of_a_run_which_way_it_got_the_rows_before(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.run(orders="1 | 7 | 5", customers="7 | Ann")
    assert "plain none the output is new" in told(driver)
    limited(monkeypatch, read_values=2)
    driver.run(customers="7 | Anna")
    assert "plain read they have 2 values at most" in told(driver)
    limited(monkeypatch, read_values=1)
    driver.run(customers="7 | Ann")
    assert "plain made they have up to 2 values" in told(driver)


def told(driver: Driver) -> list[str]:
    """What ``explain --run`` prints of the newest run."""
    ledger, out = driver._topology.ledger, StringIO()
    head = ledger.head()
    assert head is not None
    decisions(Console(file=out, width=200), ledger.run(head), list(ledger.steps(head).values()))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]
