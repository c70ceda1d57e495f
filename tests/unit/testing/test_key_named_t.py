"""A key may have the name that a row goes by in the statements of joins."""

import pytest

from rejoin import Topology, matched, records, snapshot
from rejoin.testing import Driver


def tables(at_least: float | None = None) -> Topology:
    made = Topology("shop")
    left = made.table("orders", key="t", schema="t BIGINT, a STRING, customer BIGINT", source=snapshot("landing/orders"))
    right = made.table("customers", key="t", schema="t BIGINT, b STRING", source=snapshot("landing/customers"))
    star = left.left_join(right, foreign_key="customer", select=["left.t", "right.b"]).named("star")
    if at_least is not None:
        star.expect(matched("customers", at_least))
    left.full_join(right, select=["left.t", "left.a", "right.b"]).named("same")
    left.full_join(right, foreign_key="customer", select=["left.t AS o", "right.t AS c", "right.b"]).named("outer_")
    return made


def streams() -> Topology:
    made = Topology("streams")
    left = made.stream(
        "clicks", id="t", key="key", event_time="at", schema="t STRING, key BIGINT, at TIMESTAMP", source=records("landing/clicks")
    )
    right = made.table("customers", key="t", schema="t BIGINT, b STRING", source=snapshot("landing/customers"))
    left.left_join(right, as_of="run", select=["left.t", "right.b"]).named("seen")
    left.full_join(left, within="10 seconds", select=["left.t AS one", "right.t AS other"]).named("pairs")
    return made


@pytest.mark.slow
def test_joins_of_tables_by_all_kinds_of_keys() -> None:
    with Driver(tables()) as driver:
        driver.run(orders="1 | x | 1\n 2 | y | 3", customers="1 | A\n 3 | C")
        driver.run(orders="1 | x | 3", customers="1 | B")
        assert driver.table("star") == "t | b\n 1 | C\n 2 | C"
        assert driver.table("same") == "t | a | b\n 1 | x | B\n 2 | y | NULL\n 3 | NULL | C"
        assert driver.table("outer_") == "o | c | b\n 1 | 3 | C\n 2 | 3 | C\n NULL | 1 | B"


@pytest.mark.slow  # loads Great Expectations
def test_the_share_that_finds_a_row() -> None:
    with Driver(tables(at_least=0.5)) as driver:
        driver.run(orders="1 | x | 1\n 2 | y | 3", customers="1 | A\n 3 | C")
        assert driver.table("star") == "t | b\n 1 | A\n 2 | C"


def test_joins_of_streams() -> None:
    with Driver(streams()) as driver:
        driver.run(clicks="a | 1 | 2026-01-01 10:00:00", customers="1 | A")
        driver.run(clicks="b | 1 | 2026-01-01 10:00:05", customers="1 | B")
        assert driver.table("seen") == "t | b\n a | A\n b | B"
        assert driver.table("pairs") == "one | other\n a | a\n a | b\n b | a\n b | b"
