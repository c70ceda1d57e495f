"""A bootstrap of Maxwell, which begins again when Maxwell was killed in it, and one that is asked for later: at its end the table is as it was then."""

import random
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest
from integration import bootstrapper
from integration.bootstrapper import Bootstrapper
from integration.conftest import Go, Sessions
from integration.snapshot_feed import MAXWELL, Feed, live
from limited import limited

from rejoin.errors import SnapshotAgain, SnapshotShrunk
from rejoin.plan.pin import Pin
from rejoin.why.trace import why
from rejoin.why.tree import record_said

pytestmark = pytest.mark.slow

Bootstraps = Feed[Bootstrapper]
NOTES = "shop.notes"


@pytest.fixture
def feed(tmp_path: Path, go: Go) -> Bootstraps:
    made = Feed(tmp_path, go, Bootstrapper(), MAXWELL)
    for key in range(6):
        made.connector.put(key, f"n{key}", seen=False)
    return made


def test_rows_that_were_deleted_between_two_tries_are_gone_at_the_end_of_the_second(feed: Bootstraps) -> None:
    feed.connector.bootstrap(4)
    feed.connector.put(9, "a change that does not end it")
    feed.run()
    assert feed.incomplete == {NOTES: 1}
    feed.connector.delete(1, seen=False)
    feed.connector.begin()
    feed.connector.bring(3)
    counts = feed.run()
    assert (counts["reconciled"], feed.incomplete, set(feed.published)) == (0, {NOTES: 2}, {0, 1, 2, 3, 9}), "not before its end"
    feed.connector.bring()
    counts = feed.run()
    assert (counts["reconciled"], counts["implied"], feed.incomplete) == (1, 1, {})
    assert feed.published == feed.connector.rows


def test_one_that_is_asked_for_after_changes_were_lost_says_how_rows_are_now(feed: Bootstraps) -> None:
    feed.connector.bootstrap()
    feed.connector.put(7, "new")
    feed.run()
    feed.connector.put(0, "changed", seen=False)
    feed.connector.delete(7, seen=False)
    feed.connector.begin()
    feed.connector.put(2, "while it is read")
    feed.connector.bring()
    assert feed.run()["reconciled"] == 1
    assert feed.published == feed.connector.rows


def test_all_tries_may_come_in_one_run_and_an_empty_table_is_told(feed: Bootstraps) -> None:
    for gone in range(3):
        feed.connector.bootstrap(4)
        feed.connector.delete(gone, seen=False)
    feed.connector.bootstrap()
    counts = feed.run()
    assert (counts["reconciled"], counts["stale"]) == (0, 12)
    assert feed.published == feed.connector.rows and feed.incomplete == {}
    for key in list(feed.connector.rows):
        feed.connector.delete(key, seen=False)
    feed.connector.bootstrap()
    assert (feed.run()["reconciled"], feed.published) == (3, {})
    feed.connector.put(1, "again")
    feed.run()
    assert feed.published == feed.connector.rows


def test_one_that_would_delete_too_much_is_refused_and_one_that_only_adds_deletes_nothing(feed: Bootstraps) -> None:
    feed.declare("")
    feed.connector.bootstrap()
    feed.run()
    for key in (1, 2):
        feed.connector.delete(key, seen=False)
    feed.connector.bootstrap()
    with pytest.raises(SnapshotShrunk, match="would delete 2 of 6 rows, which it did not bring, in run 2"):
        feed.run()
    feed.declare(', snapshots="additive"')
    feed.run()
    assert len(feed.published) == 6 and feed.incomplete == {}


def test_rows_whose_beginning_was_never_seen_only_fill_in_what_no_change_has_told(feed: Bootstraps) -> None:
    feed.connector.bootstrap()
    feed.connector.lines.pop(0)
    feed.connector.put(0, "changed")
    feed.run()
    assert feed.published == feed.connector.rows and feed.incomplete == {}


def test_records_of_one_in_several_partitions_stop_the_run(feed: Bootstraps) -> None:
    """They are in no order; parts that are files are."""
    feed.connector.bootstrap()
    feed.write(feed.connector.take(3))
    with patch.object(Pin, "files", PropertyMock(return_value=())), pytest.raises(SnapshotAgain, match="come in 2 partitions, in run 1"):
        feed.run()
    feed.run()
    assert feed.published == feed.connector.rows


def test_an_empty_table_can_be_the_first_that_is_told(feed: Bootstraps) -> None:
    feed.connector.rows.clear()
    feed.connector.bootstrap()
    assert (feed.run()["skipped"], feed.incomplete) == (2, {})


def test_why_a_row_is_gone_that_it_did_not_bring(feed: Bootstraps) -> None:
    feed.connector.bootstrap()
    feed.run()
    feed.connector.delete(1, seen=False)
    feed.connector.bootstrap()
    feed.run()
    topology = feed.topology
    row = why(topology.ledger, topology.refs, topology.access, "notes", ["1"]).row
    assert row.record is not None and "which ended in landing/002.jsonl, did not bring it" in record_said(row.record)


@pytest.mark.parametrize(
    ("engine", "count", "limits"),
    [
        pytest.param("local", 6, {}, id="in the process"),
        pytest.param("local", 4, {"fetched_bytes": 0, "small_rows": 0}, id="in the process, in bulk"),
        pytest.param("spark", 4, {}, id="by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly, pytest.mark.timeout(3600)]),
        pytest.param("local", 200, {}, id="many in the process", marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]),
    ],
)
def test_random_histories_of_killed_bootstraps_end_as_the_table_is(
    tmp_path: Path,
    go: Go,
    sessions: Sessions,
    engine: str,
    count: int,
    limits: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    def begun(root: Path, chance: random.Random) -> tuple[Bootstraps, Iterator[bool]]:
        feed = Feed(root, go, Bootstrapper(), MAXWELL)
        return feed, bootstrapper.history(chance, feed.connector)

    limited(monkeypatch, **limits)
    print(engine)
    live(tmp_path, count, int(pytestconfig.option.hypothesis_seed), 0.4, begun, sessions)
