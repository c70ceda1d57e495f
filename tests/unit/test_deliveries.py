"""The ledger's part of a delivery: the newest attempt alone moves the cursor, and what is needed is known."""

import threading
from pathlib import Path

import pytest

from rejoin.errors import SinkFenced
from rejoin.lake.ledger.deliveries import Deliveries, Delivery
from rejoin.lake.ledger.ledger import Ledger


@pytest.fixture
def deliveries(tmp_path: Path) -> Deliveries:
    return Deliveries(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", "town"))


def test_a_new_attempt_goes_on_from_what_was_noted_and_ends_the_older_one(deliveries: Deliveries) -> None:
    first = deliveries.begin("people.kafka")
    assert (first.attempt, first.position) == (1, None)
    deliveries.move(first, "somewhere", 3)
    second = deliveries.begin("people.kafka")
    assert (second.attempt, second.position, second.needs) == (2, "somewhere", 3)
    with pytest.raises(SinkFenced):
        deliveries.move(first, "elsewhere", 4)
    deliveries.move(second, "further", 5)
    assert deliveries.cursors()["people.kafka"].position == "further"


def test_sinks_do_not_see_each_other(deliveries: Deliveries) -> None:
    one, other = deliveries.begin("people.kafka"), deliveries.begin("people.postgres")
    deliveries.move(one, "a", 1)
    deliveries.move(other, "b", 2)
    assert {c.sink: c.position for c in deliveries.cursors().values()} == {"people.kafka": "a", "people.postgres": "b"}


def test_attempts_that_begin_at_once_are_all_different(deliveries: Deliveries) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(deliveries.begin("people.kafka").attempt)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 9))


def test_what_deliveries_came_to_is_kept_newest_last(deliveries: Deliveries) -> None:
    assert deliveries.last("people.kafka") is None
    for attempt, failed in ((1, "SINK_DOWN: no answer"), (2, None)):
        deliveries.end(Delivery("people.kafka", attempt, 7, 1.5, 3, failed, {"transactions": 2}))
    assert deliveries.last("people.kafka") == Delivery("people.kafka", 2, 7, 1.5, 3, None, {"transactions": 2})
