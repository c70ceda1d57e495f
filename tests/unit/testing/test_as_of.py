"""Streams with tables, as of the time of a record and as of the run."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from rejoin import Topology, debezium, records
from rejoin.testing import Driver


def topology() -> Topology:
    """Visits at the price of their time. Shop 1 and shop 2 have the same products."""
    made = Topology("prices")
    visits = made.stream(
        "visits", id=["s", "id"], key=["s", "p"], event_time="at", schema="s INT, id INT, p STRING, at TIMESTAMP", source=records("visits")
    )
    prices = made.table("prices", ["s", "p"], "s INT, p STRING, price INT", debezium("prices"))
    columns = ["left.s", "left.id", "right.price"]
    visits.left_join(prices, as_of="event_time", select=columns, name="then")
    visits.join(prices.filter("price <> 13"), as_of="event_time", select=columns, name="then_inner")
    visits.left_join(prices, as_of="run", select=columns, name="now")
    return made


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(topology()) as made:
        made.clock = at(8)
        made.run(prices="s | p | price\n 1 | a | 10\n 1 | b | 20\n 2 | a | 30")
        made.clock = at(12)
        made.run(prices="1 | a | 11", visits="s | id | p | at\n 1 | 1 | a | 2026-01-01 09:00\n 1 | 2 | b | 2026-01-01 09:00")
        yield made


def test_a_record_has_the_version_that_was_valid_when_it_happened(driver: Driver) -> None:
    driver.run(
        visits="""
          s | id | p    | at
          1 | 3  | a    | 2026-01-01 07:59:59.999999
          1 | 4  | a    | 2026-01-01 08:00
          1 | 5  | a    | 2026-01-01 11:59:59.999999
          1 | 6  | a    | 2026-01-01 12:00
          1 | 7  | NULL | 2026-01-01 12:00
          1 | 8  | c    | 2026-01-01 12:00
          2 | 1  | a    | 2026-01-01 12:00
          2 | 2  | b    | 2026-01-01 12:00
        """
    )
    rows = """
      s | id | price
      1 | 1  | 10
      1 | 2  | 20
      1 | 4  | 10
      1 | 5  | 10
      1 | 6  | 11
      2 | 1  | 30
    """
    assert driver.table("then_inner") == rows
    assert driver.table("then") == rows + "1 | 3 | NULL\n 1 | 7 | NULL\n 1 | 8 | NULL\n 2 | 2 | NULL"
    assert driver.table("now") == (
        "s | id | price\n 1 | 1 | 11\n 1 | 2 | 20\n 1 | 3 | 11\n 1 | 4 | 11\n 1 | 5 | 11\n 1 | 6 | 11\n 1 | 7 | NULL\n"
        "1 | 8 | NULL\n 2 | 1 | 30\n 2 | 2 | NULL"
    )


def test_a_version_that_comes_late_corrects_the_records_up_to_the_next_one(driver: Driver) -> None:
    driver.run(
        visits="""
          s | id | p | at
          1 | 3  | a | 2026-01-01 09:59:59.999999
          1 | 4  | a | 2026-01-01 10:00
          1 | 5  | a | 2026-01-01 11:59:59.999999
          1 | 6  | a | 2026-01-01 12:00
          1 | 7  | b | 2026-01-01 10:00
          2 | 4  | a | 2026-01-01 10:00
        """
    )
    driver.clock = at(10)
    made = driver.run(prices="1 | a | 12")
    assert made["then"] == "op | s | id | price | was\n U | 1 | 4 | 12 | 10\n U | 1 | 5 | 12 | 10"
    assert made["now"] == ""
    driver.clock = at(9)
    assert driver.run(prices="1 | a | 13")["then_inner"] == "op | s | id | price | was\n D | 1 | 1 | | 10\n D | 1 | 3 | | 10"
    assert (
        driver.table("then")
        == "s | id | price\n 1 | 1 | 13\n 1 | 2 | 20\n 1 | 3 | 13\n 1 | 4 | 12\n 1 | 5 | 12\n 1 | 6 | 11\n 1 | 7 | 20\n 2 | 4 | 30"
    )


def test_a_deleted_row_is_none_and_lets_no_older_one_shine_through(driver: Driver) -> None:
    driver.clock = at(14)
    driver.run(prices="- 1 | a", visits="s | id | p | at\n 1 | 3 | a | 2026-01-01 13:00\n 1 | 4 | a | 2026-01-01 15:00")
    assert driver.table("then") == "s | id | price\n 1 | 1 | 10\n 1 | 2 | 20\n 1 | 3 | 11\n 1 | 4 | NULL"
    assert driver.table("then_inner") == "s | id | price\n 1 | 1 | 10\n 1 | 2 | 20\n 1 | 3 | 11"
    driver.clock = at(16)
    driver.run(prices="1 | a | 14", visits="1 | 5 | a | 2026-01-01 15:00\n 1 | 6 | a | 2026-01-01 17:00")
    assert driver.table("now") == "s | id | price\n 1 | 1 | 11\n 1 | 2 | 20\n 1 | 3 | NULL\n 1 | 4 | NULL\n 1 | 5 | 14\n 1 | 6 | 14"
    assert driver.table("then_inner") == "s | id | price\n 1 | 1 | 10\n 1 | 2 | 20\n 1 | 3 | 11\n 1 | 6 | 14"


def test_a_newest_version_that_comes_late_corrects_all_records_since(driver: Driver) -> None:
    driver.run(visits="1 | 3 | a | 2026-01-01 15:00\n 1 | 4 | a | 2026-01-01 13:00")
    driver.clock = at(14)
    assert driver.run(prices="1 | a | 12")["then"] == "op | s | id | price | was\nU | 1 | 3 | 12 | 11"
