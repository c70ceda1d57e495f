"""A snapshot within a feed that begins twice: rows that were deleted in between have no event, and are gone at its end (S4)."""

from pathlib import Path

import pytest
from integration.conftest import Go
from integration.connector import CAPTURED, Connector, of_six_rows
from integration.snapshot_feed import Feed

from rejoin.errors import SnapshotAgain, SnapshotShrunk

pytestmark = pytest.mark.slow

Snapshots = Feed[Connector]


@pytest.fixture
def feed(tmp_path: Path, go: Go) -> Snapshots:
    return Feed(tmp_path, go, of_six_rows())


def test_rows_that_were_deleted_between_two_tries_of_a_snapshot_are_gone_at_its_end(feed: Snapshots) -> None:
    feed.connector.snapshot(4)
    feed.run()
    assert feed.incomplete == {CAPTURED: 1}
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    counts = feed.run(3)
    assert (counts["reconciled"], feed.incomplete, set(feed.published)) == (0, {CAPTURED: 2}, {0, 1, 2, 3}), "not before its end"
    counts = feed.run()
    assert (counts["reconciled"], counts["implied"], feed.incomplete) == (1, 1, {})
    assert feed.published == feed.connector.rows
    assert feed.run()["reconciled"] == 0


def test_all_tries_may_come_in_one_run(feed: Snapshots) -> None:
    for gone in (1, 2, 3):
        feed.connector.snapshot(4)
        feed.connector.delete(gone, seen=False)
    feed.connector.snapshot()
    counts = feed.run()
    assert (counts["reconciled"], counts["stale"]) == (0, 12), "what was never visible is not deleted; rows of earlier tries say nothing"
    assert feed.published == feed.connector.rows and feed.incomplete == {}


def test_a_snapshot_after_changes_were_missed_deletes_what_they_deleted(feed: Snapshots) -> None:
    feed.connector.snapshot()
    feed.connector.put(7, "new")
    feed.run()
    feed.connector.delete(7, seen=False)
    feed.connector.delete(0, seen=False)
    feed.connector.snapshot()
    feed.connector.put(0, "again")
    assert feed.run()["reconciled"] == 1, "the other one came again"
    assert feed.published == feed.connector.rows


def test_a_row_of_an_earlier_try_that_comes_late_says_nothing(feed: Snapshots) -> None:
    feed.connector.snapshot(6)
    late = feed.connector.lines.pop(1)
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.run()
    feed.write([late])
    assert feed.run()["stale"] == 1
    assert feed.published == feed.connector.rows


def test_a_change_that_was_made_before_the_snapshot_and_commits_after_it_counts(feed: Snapshots) -> None:
    feed.connector.snapshot(3)
    feed.run()
    feed.connector.delete(1, seen=False)
    early = feed.connector.lsn + 1
    feed.connector.snapshot()
    feed.run()
    feed.connector.put(1, "again", lsn=early)
    feed.connector.put(8, "new", lsn=early + 1)
    feed.run()
    assert feed.published == feed.connector.rows


@pytest.mark.parametrize("first", [True, False], ids=["of the first transaction after it", "of a later one"])
@pytest.mark.parametrize("apart", [True, False], ids=["in the next run", "in the same run"])
def test_a_change_of_a_row_that_the_snapshot_read_counts_though_it_was_made_before(feed: Snapshots, first: bool, apart: bool) -> None:
    early = feed.connector.lsn + 1
    feed.connector.snapshot()
    if apart:
        feed.run()
    if not first:
        feed.connector.put(9, "in between")
    feed.connector.put(1, "changed", lsn=early)
    feed.connector.delete(2, lsn=early + 1)
    feed.connector.put(3, "changed", lsn=early + 2)
    again = list(feed.connector.lines)
    feed.run()
    assert feed.published == feed.connector.rows
    feed.connector.put(3, "changed once more")
    feed.connector.lines += again  # delivered twice
    feed.run()
    assert feed.published == feed.connector.rows


def test_a_snapshot_that_would_delete_too_much_is_refused(feed: Snapshots) -> None:
    feed.declare("")
    feed.connector.snapshot()
    feed.run()
    for key in (1, 2):
        feed.connector.delete(key, seen=False)
    feed.connector.snapshot()
    with pytest.raises(SnapshotShrunk, match="would delete 2 of 6 rows, which it did not bring, in run 2"):
        feed.run()
    assert len(feed.published) == 6
    feed.declare(", max_delete_share=0.4")
    feed.run()
    assert feed.published == feed.connector.rows


def test_rows_of_a_snapshot_among_the_changes_only_add(feed: Snapshots) -> None:
    feed.connector.snapshot()
    feed.connector.put(9, "new")
    feed.run()
    feed.connector.rows, kept = {0: "n0"}, feed.connector.rows
    feed.connector.snapshot(how="incremental")
    feed.run()
    assert (feed.published, feed.incomplete) == (kept, {})


def test_a_row_that_a_snapshot_among_the_changes_brought_can_be_gone_at_the_end_of_the_next_whole_one(feed: Snapshots) -> None:
    feed.connector.snapshot(how="incremental")
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.run()
    assert feed.published == feed.connector.rows


@pytest.mark.parametrize("word", ["true", "false", "a new word"])
def test_a_second_snapshot_without_beginning_and_end_stops_the_run(feed: Snapshots, word: str) -> None:
    feed.connector.snapshot(how=word)
    feed.connector.put(0, "changed")
    feed.run()
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot(how=word)
    with pytest.raises(SnapshotAgain, match="snapshots='additive'"):
        feed.run()
    assert len(feed.published) == 6
    feed.declare(', snapshots="additive"')
    feed.run()
    assert feed.published == {**feed.connector.rows, 1: "n1"}


def test_a_lone_row_of_the_first_of_several_tables_is_a_whole_snapshot_once_changes_come(tmp_path: Path, go: Go) -> None:
    feed = Feed(tmp_path, go, Connector("first"))
    feed.connector.put(0, "only", seen=False)
    feed.connector.snapshot()
    feed.run()
    assert feed.incomplete == {CAPTURED: 1}
    feed.connector.put(0, "changed")
    feed.run()
    assert feed.incomplete == {}


def test_records_that_cannot_be_read_keep_their_rows(feed: Snapshots) -> None:
    feed.declare(", max_delete_share=1, max_bad_share=1")
    feed.connector.snapshot()
    feed.run()
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.connector.lines[1] = feed.connector.lines[1].replace('"body":"n2"', '"body":{"not":"a text"}')
    counts = feed.run()
    assert (counts["quarantined"], counts["reconciled"]) == (1, 1)
    assert feed.published == feed.connector.rows
    feed.connector.delete(3, seen=False)
    feed.connector.snapshot()
    feed.connector.lines[1] = "no JSON"
    assert feed.run()["reconciled"] == 0, "any row may be the one that cannot be read"
    assert set(feed.published) == {0, 2, 3, 4, 5} and feed.incomplete == {CAPTURED: 3}


def test_snapshots_of_several_captured_tables_delete_nothing_of_each_other(feed: Snapshots) -> None:
    feed.connector.snapshot()
    other = Connector(rows={100: "other", 101: "another"}, lsn=10_000, table="notes_2")
    other.snapshot()
    feed.connector.lines += other.take()
    feed.run()
    assert feed.published == feed.connector.rows | other.rows
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    assert feed.run()["reconciled"] == 1
    assert feed.published == feed.connector.rows | other.rows
    other.delete(100, seen=False)
    other.snapshot()
    feed.connector.lines += other.take()
    assert feed.run()["reconciled"] == 0, "the other one's rows may be older"
    feed.connector.lsn = other.lsn
    feed.connector.snapshot()
    assert feed.run()["reconciled"] == 1
    assert feed.published == feed.connector.rows | other.rows


def test_a_new_connector_with_a_directory_of_its_own_is_the_only_one_that_counts(feed: Snapshots) -> None:
    feed.connector.snapshot()
    feed.run()
    feed.connector.delete(1, seen=False)
    feed.connector.name = "anew"
    feed.read("landing2")
    feed.declare("")
    feed.connector.snapshot()
    assert feed.run()["reconciled"] == 1
    assert feed.published == feed.connector.rows
