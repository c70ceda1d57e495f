"""Change feeds across runs: what positions decide, whatever arrives when (S1, S2, S11, S14, S15, F11)."""

import json
from pathlib import Path

import pytest
from integration.conftest import Go
from integration.shop import Row, rows

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium

feed = Topology("feed")
feed.table("notes", key="id", schema="id BIGINT, body STRING, big STRING", source=debezium("landing")).filter("id > 0").named("published")
"""
UNCHANGED = "__debezium_unavailable_value"


class Feed:
    """A topology of one table, fed one file a run."""

    def __init__(self, root: Path, go: Go) -> None:
        self.root, self._go, self.files = root, go, 0
        (root / "landing").mkdir()
        (root / "feed.py").write_text(FILE)

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "feed.py")), lake_config(str(self.root / "lake")), str(self.root))

    def run(self, *lines: str) -> dict[str, int]:
        """One run with these lines as its file; returns the counts of the ingest."""
        self.files += 1
        (self.root / "landing" / f"{self.files:03}.jsonl").write_text("\n".join(lines) + "\n")
        done = self._go(self.topology)
        return self.topology.ledger.steps(done.number)["ingest.notes"].counts

    def published(self) -> dict[object, tuple[object, object]]:
        return {r["id"]: (r["body"], r["big"]) for r in rows(self.topology, "published")}


def line(op: str, lsn: int, key: int | None, after: Row | None = None, headers: Row | None = None) -> str:
    source = {"connector": "postgresql", "lsn": lsn, "snapshot": "false"}
    value = {"before": None, "after": after, "source": source, "op": op}
    return json.dumps({"key": None if key is None else {"id": key}, "value": value, "headers": headers or {}})


def put(lsn: int, key: int, body: str, big: str = "B", headers: Row | None = None) -> str:
    return line("u", lsn, key, {"id": key, "body": body, "big": big}, headers)


def gone(lsn: int, key: int) -> str:
    return line("d", lsn, key)


def tombstone(key: int) -> str:
    return json.dumps({"key": {"id": key}, "value": None, "headers": {}})


@pytest.fixture
def feed(tmp_path: Path, go: Go) -> Feed:
    return Feed(tmp_path, go)


def test_a_late_event_never_revives_or_regresses_a_row(feed: Feed) -> None:
    feed.run(put(10, 1, "new"), put(10, 2, "two"), gone(12, 2), tombstone(2))
    counts = feed.run(put(5, 1, "old"), put(11, 2, "late"), put(10, 1, "new"))
    assert (counts["stale"], counts["duplicate"], counts["applied"]) == (2, 1, 0)
    assert feed.published() == {1: ("new", "B")}


def test_a_version_that_changes_nothing_still_moves_the_position(feed: Feed) -> None:
    feed.run(put(10, 1, "same"))
    assert feed.run(put(30, 1, "same"))["noop"] == 1
    assert feed.run(put(20, 1, "in between"))["stale"] == 1
    assert feed.published() == {1: ("same", "B")}


def test_a_tombstone_alone_deletes_and_a_second_one_does_nothing(feed: Feed) -> None:
    feed.run(put(10, 1, "a"), put(11, 2, "b"))
    assert feed.run(tombstone(1))["deleted"] == 1
    assert feed.run(tombstone(1))["changes"] == 0
    assert feed.published() == {2: ("b", "B")}
    feed.run(put(20, 1, "again"))
    assert feed.published() == {1: ("again", "B"), 2: ("b", "B")}


def test_an_unchanged_value_is_kept_from_the_stored_row_and_from_earlier_events(feed: Feed) -> None:
    feed.run(put(10, 1, "a", "long text"))
    feed.run(put(11, 1, "b", UNCHANGED), put(12, 1, "c", UNCHANGED))
    assert feed.published() == {1: ("c", "long text")}
    feed.run(put(13, 1, "d", "other text"), put(14, 1, "e", UNCHANGED))
    assert feed.published() == {1: ("e", "other text")}


def test_an_unchanged_value_that_nobody_knows_is_quarantined_and_the_row_stays(feed: Feed) -> None:
    counts = feed.run(put(10, 1, "a", UNCHANGED), put(11, 2, "b"))
    assert (counts["quarantined"], counts["applied"]) == (1, 1)
    assert [(r["_code"], r["_line"]) for r in rows(feed.topology, "notes__quarantine")] == [("TOAST_UNRESOLVED", 1)]
    assert feed.published() == {2: ("b", "B")}
    feed.run(put(12, 1, "a", "whole"))
    assert feed.published() == {1: ("a", "whole"), 2: ("b", "B")}


@pytest.mark.by_spark
@pytest.mark.parametrize("cut", ["in one run", "between its delete and its new row"])
def test_a_row_that_changes_its_key_keeps_its_unchanged_value(feed: Feed, cut: str) -> None:
    feed.run(put(10, 3, "a", "long text"))
    old, new = gone(20, 3), put(20, 30, "b", UNCHANGED, {"__debezium.oldkey": json.dumps({"id": 3})})
    if cut == "in one run":
        feed.run(old, tombstone(3), new)
    else:
        feed.run(old, tombstone(3))
        feed.run(new)
    assert feed.published() == {30: ("b", "long text")}


def test_a_truncate_deletes_what_was_before_it_and_nothing_after(feed: Feed) -> None:
    feed.run(put(10, 1, "a"), put(11, 2, "b"))
    counts = feed.run(put(12, 3, "c"), line("t", 20, None), put(21, 2, "new"))
    assert counts["truncates"] == 1
    assert feed.published() == {2: ("new", "B")}
    assert feed.run(put(15, 1, "late"))["stale"] == 1
    assert feed.published() == {2: ("new", "B")}


@pytest.mark.by_spark
def test_a_row_that_changes_twenty_thousand_times_in_a_cut_is_one_net_change(feed: Feed) -> None:
    counts = feed.run(*(put(position, 1, f"version {position}") for position in range(1, 20_001)))
    assert (counts["read"], counts["applied"], counts["superseded"], counts["changes"]) == (20_000, 1, 19_999, 1)
    assert feed.published() == {1: ("version 20000", "B")}
