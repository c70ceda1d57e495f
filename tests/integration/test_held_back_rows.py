"""Rows that break an expectation of an output are held back: readers keep what they had until what the rows are made of is mended (P8, I1)."""

from collections.abc import Iterator

import pytest

from rejoin import Topology, condition, debezium
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
NAME = "right.name AS name"


def topology(*columns: str, strict: bool = True) -> Topology:
    """Orders with the names of their customers; ``strict``: an order whose customer is called "bad" is held back."""
    made = Topology("t")
    orders = made.table("orders", key="id", schema="id BIGINT, customer BIGINT, qty BIGINT, note STRING", source=debezium("orders"))
    customers = made.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("customers"))
    enriched = orders.left_join(customers, "customer", ["left.id", "qty", "note", NAME, *columns]).named("enriched")
    enriched.filter("qty < 1000").select(["id", "upper(name) AS shouted"]).named("report")
    if strict:
        enriched.expect(condition("name <> 'bad'"), severity="quarantine")
    return made


@pytest.fixture
def shop() -> Iterator[Driver]:
    """Orders 1 and 2 of Ann, 3 of Bob; then Ann is called "bad", which neither output shows."""
    with Driver(topology()) as made:
        made.run(orders="1 | 1 | 1 | n\n 2 | 1 | 1 | n\n 3 | 2 | 1 | n", customers="1 | Ann\n 2 | Bob")
        changes = made.run(customers="1 | bad")
        assert not changes["enriched"] and not changes["report"]
        assert made.quarantine("enriched") == "id | code\n 1 | EXPECTATION\n 2 | EXPECTATION"
        yield made


def test_a_held_back_row_stays_as_it_was_published_until_its_right_row_is_fixed(shop: Driver) -> None:
    assert not shop.run()["enriched"]  # nothing new: nothing moves
    assert shop.quarantine("enriched") == "id\n1\n2"
    changes = shop.run(customers="1 | Eve")
    assert changes["enriched"] == "op | id | name | was\n U | 1 | Eve | Ann\n U | 2 | Eve | Ann"
    assert changes["report"] == "op | id | shouted | was\n U | 1 | EVE | ANN\n U | 2 | EVE | ANN"
    assert shop.quarantine("enriched") == ""


def test_a_left_change_of_a_held_back_key_leads_to_the_right_row(shop: Driver) -> None:
    changes = shop.run(orders="id | customer | note\n 1 | 2 | n\n 2 | 1 | still bad")
    assert changes["enriched"] == "op | id | name | was\n U | 1 | Bob | Ann"
    assert shop.quarantine("enriched") == "id\n2"
    assert shop.run(orders="- 2")["enriched"] == "op | id | note | was\n D | 2 | | n"
    assert shop.table("enriched") == "id | name\n 1 | Bob\n 3 | Bob"
    assert shop.quarantine("enriched") == ""


def test_a_row_that_becomes_again_what_is_published_is_released_without_a_change(shop: Driver) -> None:
    assert not shop.run(customers="1 | Ann")["enriched"]
    assert shop.quarantine("enriched") == ""


def test_a_new_key_that_fails_is_not_published_at_all(shop: Driver) -> None:
    assert not shop.run(orders="9 | 1 | 1 | n")["enriched"]
    assert shop.quarantine("enriched") == "id\n1\n2\n9"
    assert not shop.run(orders="- 9")["enriched"]
    assert shop.quarantine("enriched") == "id\n1\n2"


def test_relaxing_brings_rows_back_as_they_are_now_and_tightening_holds_only_what_changes(shop: Driver) -> None:
    shop.restart(topology(strict=False))
    assert shop.run()["enriched"] == "op | id | name | was\n U | 1 | bad | Ann\n U | 2 | bad | Ann"
    shop.restart(topology())
    assert not shop.run()["enriched"]
    assert shop.quarantine("enriched") == ""
    assert not shop.run(orders="id | note\n 1 | changed")["enriched"]
    assert shop.quarantine("enriched") == "id\n1"


def test_a_rebuilt_output_keeps_what_is_held_back_until_it_passes(shop: Driver) -> None:
    shop.restart(topology("qty + 1 AS more"))
    assert shop.run()["enriched"] == "op | id | more | was\n U | 3 | 2 | NULL"
    assert shop.quarantine("enriched") == "id\n1\n2"
    changes = shop.run(customers="1 | Eve")
    assert changes["enriched"] == "op | id | name | was | more\n U | 1 | Eve | Ann | 2\n U | 2 | Eve | Ann | 2"
