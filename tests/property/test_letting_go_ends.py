"""What a compaction that lets records go must not do: die and leave something, forget what it may not forget, count otherwise, or free nothing."""

import os
import random
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from integration.forked import Forked
from integration.shop import steps_of
from letting_go import Window, topology
from limited import limited
from sparkless import no_spark
from web import Web

from rejoin import Topology as Declared
from rejoin.errors import SchemaRefused
from rejoin.lake.config import lake_config
from rejoin.operate.expire import expire
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology
from rejoin.why.answer import OutputRow, State
from rejoin.why.trace import why
from rejoin.why.tree import state_said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), *(pytest.mark.filterwarnings(f"ignore::{w}") for w in ("ResourceWarning",))]


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Web:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, base_rows=8, merged_files=3)
    seed = int(os.environ.get("REJOIN_SEED") or pytestconfig.option.hypothesis_seed)
    print(f"REJOIN_SEED={seed}")
    return Web.of(tmp_path, random.Random(seed), no_spark, ("left_pairs", "full_pairs"))


def let_go(web: Web) -> int:
    """Runs and compacts until views are let go; how many records the last compaction dropped."""
    for _ in range(20):
        web.history.arrive()
        web.run()
        if (gone := web.compact()) and web.stored("views") < len(web.history.taken["views"]):
            return gone
    raise AssertionError("nothing was let go")


def run(web: Web, declared: Declared, **options: Any) -> None:
    """A run of another topology file on the same lake."""
    other = Topology(compile(declared), web.topology.config, str(web.history.root))
    run_topology(other, no_spark, "test", options=RunOptions(fuse=Fuse.APPLY, **options))


@pytest.mark.invariant("I2", "I9")
@pytest.mark.parametrize("every", [pytest.param(12, id="every twelfth"), pytest.param(1, id="every one", marks=pytest.mark.nightly)])
def test_a_kill_at_any_boundary_of_such_a_compaction_loses_nothing(web: Web, every: int) -> None:
    trace, words = web.history.root / "trace", ["compact", "--lake", str(web.history.root / "lake")]

    def compacted(**environment: str) -> int:
        return Forked("rejoin.cli", words, {**os.environ, **environment}).wait(300).returncode

    web.fill()
    assert compacted(REJOIN_CRASH_TRACE=str(trace)) == 0
    points = list(steps_of(trace.read_text().split()))
    assert {"compact.views:written", "compact.clicks:written"} & set(points) and len(points) >= 8
    for point in points[web.history.chance.randrange(every) :: every]:
        web.fill()
        for _ in range(6):  # another compaction has other tables to do
            if (code := compacted(REJOIN_CRASH=point)) == -signal.SIGKILL:
                break
            assert code == 0, point
            web.history.arrive()
            web.run()
            web.fill()
        else:
            raise AssertionError(f"the fault at {point} did not fire")
        web.topology.roll_forward()
        assert web.differences() == [], f"after a kill at {point}"
        web.compact()
        web.history.arrive()
        web.run(refresh=Refresh.FULL)
        assert web.differences() == [], f"after a kill at {point}, a compaction and a run"


def test_an_edit_of_a_join_that_has_let_go_is_refused_and_a_new_name_is_not(web: Web) -> None:
    windows, zoned = web.windows, web.history.zoned
    let_go(web)
    before = web.rows("full_pairs")
    wider = windows | {"full_pairs": replace(windows["full_pairs"], before=5)}
    with pytest.raises(SchemaRefused, match="were let go"):
        run(web, topology(wider, zoned=zoned))
    assert web.rows("full_pairs") == before and web.differences() == []

    new = windows | {"wider_pairs": Window("FULL", 5, 5)}
    run(web, topology(new, zoned=zoned))
    for _ in range(3):
        web.history.arrive()
        run(web, topology(new, zoned=zoned))
        pairs = {(r["v"], r["record"]) for r in web.rows("wider_pairs")}
        run(web, topology(new, zoned=zoned), refresh=Refresh.FULL)
        assert {(r["v"], r["record"]) for r in web.rows("wider_pairs")} == pairs
        assert web.differences() == []
    stored = {r["v"] for r in web.rows("views")}
    assert {r["v"] for r in web.rows("wider_pairs")} - {None} <= stored


def test_a_join_that_comes_back_after_records_were_let_go_is_refused(web: Web) -> None:
    windows, zoned = web.windows, web.history.zoned
    let_go(web)
    without = {"left_pairs": windows["left_pairs"]}
    run(web, topology(without, zoned=zoned))
    run(web, topology(windows, zoned=zoned))  # nothing was let go in between
    assert web.differences() == []
    run(web, topology(without, zoned=zoned))
    for _ in range(12):
        web.history.arrive()
        run(web, topology(without, zoned=zoned))
        if web.compact():
            break
    with pytest.raises(SchemaRefused, match="full_pairs"):
        run(web, topology(windows, zoned=zoned))


def test_a_longer_retention_takes_nothing_that_would_meet_what_is_gone(web: Web) -> None:
    let_go(web)
    taken = web.head().plan.taken_from("views")
    assert taken is not None
    declared = topology(web.windows, zoned=web.history.zoned, retention={"views": 10_000, "clicks": 10_000})
    late = {"v": 999_999, "k": "a", "note": "x", "at": web.history.seconds(taken) - 1}
    web.history.write("views", [late])
    run(web, declared)
    assert 999_999 not in {r["v"] for r in web.rows("views")}
    web.history.write("views", [late | {"v": 999_998, "at": web.history.seconds(taken) + 1}])
    run(web, declared)
    assert 999_998 in {r["v"] for r in web.rows("views")}


def test_old_files_again_count_the_same_before_and_after_a_compaction(web: Web) -> None:
    plan, root = web.topology.plan, web.history.root
    other = replace(web, topology=Topology(plan, lake_config(str(root / "never compacted")), str(root)))
    gone = 0
    while not gone:
        web.history.arrive()
        web.run()
        other.run()
        gone = web.compact()
    for rows in [rows for name, rows in web.history.files if name == "views"]:
        web.history.land("views", rows)
    web.run()
    other.run()
    counts = [w.topology.ledger.steps(w.head().number)["ingest.views"].counts for w in (web, other)]
    names = ("read", "applied", "duplicate", "quarantined", "superseded")
    assert [counts[0].get(n) for n in names] == [counts[1].get(n) for n in names]
    assert counts[0]["quarantined"] > 0
    assert web.differences() == other.differences() == []


def test_pairs_of_a_record_that_was_let_go_stay_if_its_id_is_used_again(web: Web) -> None:
    def pairs() -> set[tuple[Any, Any]]:
        return {(r["v"], r["c"]) for r in web.rows("full_pairs") if None not in (r["v"], r["record"])}

    old = None
    while old is None:
        let_go(web)
        stored = {(name, r[key]) for name, key in (("views", "v"), ("clicks", "c")) for r in web.rows(name)}
        old = next((p for p in pairs() if not {("views", p[0]), ("clicks", p[1])} & stored), None)
    before, at = pairs(), web.history.clock + 1
    web.history.write("views", [{"v": old[0], "k": "a", "note": "again", "at": at}])
    web.history.write("clicks", [{"c": 999_999, "k": "a", "at": at}])
    for more in ({}, {"refresh": Refresh.FULL}):
        web.run(**more)
        assert before < pairs() and (old[0], 999_999) in pairs(), more


def test_why_says_that_a_record_was_let_go_and_not_that_it_never_was(web: Web) -> None:
    let_go(web)
    ledger, refs, access = web.topology.ledger, web.topology.refs, web.topology.access
    stored = {r["v"] for r in web.rows("views")}
    gone = next(r["v"] for r in web.history.taken["views"] if r["v"] not in stored)
    record = why(ledger, refs, access, "views", (str(gone),)).row
    assert (record.state, record.to_dict()["record"]["op"]) == (State.LET_GO, "I")
    assert "let go by a compaction" in state_said(record)
    result = next(r for r in web.rows("left_pairs") if r["v"] == gone)
    row = why(ledger, refs, access, "left_pairs", (str(gone), result["record"])).row
    assert isinstance(row, OutputRow)
    assert (row.state, row.reasons, row.left and row.left.state) == (State.THERE, (), State.LET_GO)
    assert why(ledger, refs, access, "views", ("123456789",)).row.state is State.NEVER


def test_expiry_after_such_a_compaction_frees_their_storage(web: Web) -> None:
    def size() -> int:
        return sum(f.stat().st_size for f in (web.history.root / "lake" / "warehouse").rglob("*/views/data/*.parquet"))

    let_go(web)
    before, rows = size(), web.stored("views")
    expire(web.topology, "test", timedelta(0))
    assert size() < before
    assert web.stored("views") == rows < len(web.history.taken["views"])
    web.history.arrive()
    web.run(refresh=Refresh.FULL)
    assert web.differences(feeds=False) == []  # the rows that feeds refer to are expired
