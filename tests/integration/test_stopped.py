"""Processes that stand still until their lease has run out, and go on when others have taken over, expired what they read, and gone on: nothing that
counts changes, and they say why they end (F5)."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from feeds import rolled_back
from integration.forked import Forked
from integration.shop import Shop, folded, output, steps_of
from sparkless import no_spark

from rejoin.lake.ledger.ledger import LEASE_SECONDS
from rejoin.operate.expire import expire
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def words(shop: Shop, command: str) -> list[str]:
    more = {"run": [str(shop.file), "--root", str(shop.root)], "compact": [], "expire": ["--keep-days", "0"]}
    return [command, *more[command], "--lake", str(shop.lake)]


def rejoin(shop: Shop, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return Forked("rejoin.cli", words(shop, command), {**os.environ, **environment}).wait(300)


def run(shop: Shop) -> None:
    """A run of this process."""
    shop.next_batch()
    topology = shop.topology()
    run_topology(topology, no_spark, f"test {len(topology.ledger.runs())}")


def stopped(shop: Shop, command: str, point: str) -> Forked | None:
    """A process that stands still at a point; None if it did not come there."""
    one = Forked("integration.stopping", words(shop, command), {**os.environ, "REJOIN_STOP": point})
    while not one.stands_still():
        if one.ended:
            return None
        time.sleep(0.02)
    while not _free(shop):  # another thread of it was writing to the catalog or the ledger: SQLite has no leases
        one.signal(signal.SIGCONT)
        time.sleep(0.01)
        one.signal(signal.SIGSTOP)
    return one


def _free(shop: Shop) -> bool:
    try:
        for name in ("catalog.db", "ledger.db"):
            with closing(sqlite3.connect(shop.lake / name, timeout=0.5)) as db:
                db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    return True


def time_passes(shop: Shop) -> None:
    """Every lease has run out."""
    with closing(sqlite3.connect(shop.lake / "ledger.db")) as db, db:
        db.execute("UPDATE rejoin_runs SET lease_until = 0 WHERE state = 'open'")


def check(shop: Shop) -> None:
    """Output and feed are what plain Python says; every state that the ledger of the newest run names, and every snapshot, can be read."""
    topology = shop.topology()
    topology.roll_forward()
    assert output(topology) == folded(topology, changes=rolled_back) == shop.expected()
    for table in filter(None, map(topology.refs.table, topology.refs.tables())):
        for snapshot in table.metadata.snapshots:
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    for name, state in topology.ledger.states(topology.ledger.head()).items():
        topology.refs.require(name, state)


def some(points: list[str], every: int, seed: int) -> list[str]:
    return points[seed % every :: every]


@pytest.mark.invariant("I2", "I7", "I9")
@pytest.mark.parametrize(
    ("command", "every"),
    [
        pytest.param("run", 32, id="every 32nd boundary of a run"),
        pytest.param("run", 1, id="every boundary of a run", marks=pytest.mark.nightly),
        pytest.param("compact", 18, id="every 18th boundary of a compaction"),
        pytest.param("compact", 1, id="every boundary of a compaction", marks=pytest.mark.nightly),
        pytest.param("expire", 18, id="every 18th boundary of an expiry"),
        pytest.param("expire", 1, id="every boundary of an expiry", marks=pytest.mark.nightly),
    ],
)
def test_who_stood_still_until_others_had_taken_over_changes_nothing(
    command: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    shop, trace = Shop(tmp_path), tmp_path / "trace"
    run(shop)
    run(shop)
    shop.next_batch()
    done = rejoin(shop, command, REJOIN_CRASH_TRACE=str(trace))
    assert done.returncode == 0, done.stderr
    points, codes = list(steps_of(trace.read_text().split())), dict[str, int]()
    for point in some(points, every, int(pytestconfig.option.hypothesis_seed)):
        run(shop)  # for a compaction to have something to do
        run(shop)
        shop.next_batch()
        one = stopped(shop, command, point)
        assert one is not None, f"the fault at {point} did not fire"
        time_passes(shop)
        run(shop)
        run(shop)
        expire(shop.topology(), "test", timedelta(0))
        check(shop)
        before = shop.topology().ledger.committed()
        one.signal(signal.SIGCONT)
        done = one.wait(300)
        assert done.returncode == 0 or "RUN_SUPERSEDED" in done.stderr, f"{point}: {done.stderr}"
        codes[point] = done.returncode
        assert shop.topology().ledger.committed() == before, f"{point}: it has committed something"
        run(shop)
        check(shop)
    print(codes)
    open_points = [p for p in codes if not p.startswith(("roll_forward", "publish:committed"))]
    assert {codes[p] for p in open_points} <= {4}, "a run that others have closed ends with its error"


@pytest.mark.nightly
@pytest.mark.invariant("I7")
def test_a_lease_really_runs_out_under_a_process_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    shop = Shop(tmp_path)
    run(shop)
    shop.next_batch()
    one = stopped(shop, "run", "resolve.enriched:written")
    assert one is not None
    assert "RUN_BUSY" in rejoin(shop, "run").stderr
    time.sleep(LEASE_SECONDS + 1)
    run(shop)
    one.signal(signal.SIGCONT)
    done = one.wait(300)
    assert done.returncode == 4 and "RUN_SUPERSEDED" in done.stderr, done.stderr
    check(shop)
