"""A row that a second snapshot in its feed did not bring: how verify, `why`, run and plan tell it, and that compactions, older lakes and kills change nothing (S4)."""

import random
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest
from click.testing import CliRunner
from integration.conftest import Go, Sessions
from integration.connector import CAPTURED, PLACES, Connector, history, of_six_rows
from integration.shop import steps_of
from integration.snapshot_feed import FILE, Feed, live
from limited import limited

from rejoin.cli import main
from rejoin.operate.verify.verify import verify
from rejoin.steps.ingest.snapshot_ends import SnapshotEnds
from rejoin.why.trace import why
from rejoin.why.tree import record_said

pytestmark = pytest.mark.slow

Snapshots = Feed[Connector]


@pytest.fixture
def feed(tmp_path: Path, go: Go) -> Snapshots:
    return Feed(tmp_path, go, of_six_rows())


def phantom(feed: Snapshots) -> None:
    """Row 1 comes, is deleted without an event, and is not brought by a second snapshot."""
    feed.connector.snapshot(4)
    feed.run()
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.run()


@pytest.mark.parametrize("fast", [False, True], ids=["whole", "fast"])
@pytest.mark.parametrize("as_before", [False, True], ids=["deleted", "left where it is"])
def test_verify_counts_a_row_that_the_snapshot_did_not_bring(feed: Snapshots, sessions: Sessions, as_before: bool, fast: bool) -> None:
    with patch.object(SnapshotEnds, "due", PropertyMock(return_value=False)) if as_before else patch.dict({}):
        phantom(feed)
    assert (1 in feed.published) == as_before
    (found,) = verify(feed.topology, lambda: sessions(feed.topology), fast=fast)
    assert (found.extra, found.total) == ((1, 1) if as_before else (0, 0))


def test_why_a_row_is_gone_that_the_snapshot_did_not_bring(feed: Snapshots) -> None:
    phantom(feed)
    topology = feed.topology
    row = why(topology.ledger, topology.refs, topology.access, "notes", ["1"]).row
    position = f"{feed.connector.lsn:020}.0.{0:020}"
    said = f"deleted in run 2, applied, as the snapshot at position {position}, which ended in landing/002.jsonl, did not bring it"
    assert row.record is not None and record_said(row.record) == said
    feed.connector.put(1, "again")
    feed.run()
    row = why(topology.ledger, topology.refs, topology.access, "notes", ["1"]).row
    assert row.record is not None and record_said(row.record) == "came in run 3, applied, landing/003.jsonl line 1"


def test_a_run_and_a_plan_say_which_table_is_incomplete_and_what_a_snapshot_deleted(feed: Snapshots) -> None:
    def said(command: str) -> str:
        arguments = [command, str(feed.root / "feed.py"), "--lake", str(feed.root / "lake"), "--root", str(feed.root)]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        return done.output

    open_ = f"notes is incomplete: the snapshot of {CAPTURED} that began in run 1 was not read to its end"
    feed.connector.snapshot(4)
    feed.write(feed.connector.take())
    assert open_ in said("run") and open_ in said("plan") and open_ in said("run"), "as long as it is so"
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.write(feed.connector.take())
    told = said("run")
    assert "1 row of notes deleted that a new snapshot in its feed did not bring" in told and "incomplete" not in told
    assert "incomplete" not in said("plan")


def test_a_held_back_row_that_the_snapshot_did_not_bring_is_forgotten(feed: Snapshots) -> None:
    file = FILE.replace("import Topology", "import Topology, condition")
    file = file.replace('.filter("id >= 0")', '.expect(condition("body <> \'n1\'"), severity="quarantine").filter("id >= 0")')
    feed.declare(", max_delete_share=1", file)
    feed.connector.snapshot(4)
    feed.run()
    assert set(feed.published) == {0, 2, 3}
    feed.connector.delete(1, seen=False)
    feed.connector.delete(2, seen=False)
    feed.connector.snapshot()
    assert feed.run()["reconciled"] == 1
    feed.declare(", max_delete_share=1")
    feed.run()
    assert feed.published == feed.connector.rows, "it does not come back when nothing is expected any more"


def test_a_compaction_in_between_changes_nothing(feed: Snapshots) -> None:
    def compacted() -> None:
        done = CliRunner().invoke(main, ["compact", "--lake", str(feed.root / "lake")])
        assert done.exit_code == 0, done.output

    feed.connector.snapshot(4)
    feed.run()
    compacted()
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.run(3)
    compacted()
    feed.run()
    compacted()
    feed.connector.put(2, "changed")
    feed.run()
    assert feed.published == feed.connector.rows


def test_a_lake_of_an_older_rejoin_goes_on_and_the_next_snapshot_deletes_its_phantoms(feed: Snapshots) -> None:
    with patch.object(SnapshotEnds, "due", PropertyMock(return_value=False)):
        phantom(feed)
    with sqlite3.connect(feed.root / "lake" / "ledger.db") as db:
        db.execute("DROP TABLE rejoin_generations")
    assert feed.incomplete == {}
    feed.connector.put(8, "new")
    feed.write(feed.connector.take())
    assert feed.killed() == 0, "another process finds the ledger so"
    assert 1 in feed.published, "nothing tells it from a row that is there"
    feed.connector.snapshot()
    assert feed.run()["reconciled"] == 1
    assert feed.published == feed.connector.rows


def test_a_run_that_is_killed_at_any_boundary_ends_the_snapshot_once(tmp_path: Path, go: Go, pytestconfig: pytest.Config) -> None:
    feed, trace = Feed(tmp_path, go, of_six_rows()), tmp_path / "trace"
    feed.connector.snapshot()
    feed.run()
    points: list[str] = []
    for number in range(100):
        feed.connector.put(10 + number, "new", seen=False)
        feed.connector.snapshot(2)
        feed.connector.delete(number if number < 6 else 4 + number, seen=False)
        feed.write(feed.connector.take())
        assert feed.killed() == 0 and set(feed.incomplete) == {CAPTURED}
        feed.connector.snapshot()
        feed.write(feed.connector.take())
        if number == 0:
            assert feed.killed(REJOIN_CRASH_TRACE=str(trace)) == 0
            found = [p for p in steps_of(trace.read_text().split()) if p.startswith(("cut", "ingest", "publish"))]
            points = found[int(pytestconfig.option.hypothesis_seed) % 2 :: 2]
        else:
            assert feed.killed(REJOIN_CRASH=points.pop()) == -signal.SIGKILL
            assert feed.killed() == 0
        assert feed.published == feed.connector.rows and feed.incomplete == {}
        if not points:
            break
    assert number >= 3


BULK = {"fetched_bytes": 0, "small_rows": 0}
"""As of many rows, which are not read before they are decided about."""


@pytest.mark.parametrize(
    ("engine", "count", "limits"),
    [
        pytest.param("local", 8, {}, id="in the process"),
        pytest.param("local", 4, BULK, id="in the process, in bulk"),
        pytest.param("spark", 1, BULK, id="by Spark, in bulk", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        pytest.param("spark", 10, {}, id="by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        pytest.param("local", 300, {}, id="many in the process", marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]),
    ],
)
def test_random_histories_of_killed_snapshots_end_as_the_table_is(
    tmp_path: Path,
    go: Go,
    sessions: Sessions,
    engine: str,
    count: int,
    limits: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    def begun(root: Path, chance: random.Random) -> tuple[Snapshots, Iterator[bool]]:
        feed = Feed(root, go, Connector(chance.choice(PLACES)))
        return feed, history(chance, feed.connector)

    limited(monkeypatch, **limits)
    print(engine)
    live(tmp_path, count, int(pytestconfig.option.hypothesis_seed), 0.3, begun, sessions)
