"""The ledger's promises, on real SQLite files: one open run, first registration wins, one commit, nothing after it."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.event import listen

from rejoin import Topology, snapshot
from rejoin.errors import RunBusy, RunCommitted, RunSuperseded, RunUnknown
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import Run, StepRecord, Write, topologies
from rejoin.lake.ledger.run_owner import Life
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.ledger.schema import RUNS_BY, connected
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.pin import Part, Pin

PRINTS = {"people": "f1"}


def plan() -> Plan:
    topology = Topology("town")
    topology.table("persons", key="id", schema="id BIGINT, name STRING", source=snapshot("p")).filter("name <> ''").named("people")
    return compile(topology)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", "town")


def record(step: str, **counts: int) -> StepRecord:
    return StepRecord(step, counts, 0.1, 1)


def committed(ledger: Ledger, owner: str = "a", *writes: Write) -> Run:
    run = ledger.open(owner, plan(), PRINTS)
    ledger.register(run.number, record("s"), "x", writes)
    ledger.publish(run.number)
    return run


def test_the_first_run_rebuilds_every_node_and_the_next_one_none(ledger: Ledger) -> None:
    assert committed(ledger).rebuild == ("people",)
    second = ledger.open("b", plan(), PRINTS)
    assert (second.number, second.base, second.rebuild) == (2, 1, ())


def test_a_node_whose_fingerprint_changed_is_rebuilt_even_if_a_run_with_it_was_abandoned(ledger: Ledger) -> None:
    committed(ledger)
    edited = ledger.open("b", plan(), {"people": "f2"})
    ledger.abandon(edited.number, "test")
    assert ledger.open("c", plan(), {"people": "f2"}).rebuild == ("people",)


def test_the_same_owner_gets_its_own_run_back_with_its_pins(ledger: Ledger) -> None:
    first = ledger.open("a", plan(), PRINTS)
    ledger.pin(first.number, {"persons": {"files": [], "n": 1}})
    ledger.fail(first.number, "broke")
    assert ledger.open("a", plan(), PRINTS).number == first.number
    ledger.pin(first.number, {"persons": {"files": [], "n": 2}})
    assert ledger.pins(first.number) == {"persons": {"files": [], "n": 1}}


def test_another_owner_is_refused_while_the_run_is_alive_and_told_the_way_out(ledger: Ledger) -> None:
    ledger.open("a", plan(), PRINTS)
    with pytest.raises(RunBusy, match=r"(?s)run 1 of topology 'town' is open and alive \(owner a.*rejoin abandon --run 1") as refused:
        ledger.open("b", plan(), PRINTS)
    assert refused.value.exit_code == 75


@pytest.mark.parametrize("how", ["failed", "lease ran out", "known to be dead"])
def test_another_owner_takes_over_a_run_that_is_not_alive_and_numbers_are_never_reused(
    ledger: Ledger, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "lease ran out":
        monkeypatch.setattr("rejoin.lake.ledger.ledger.LEASE_SECONDS", 0.01)
    old = ledger.open("a", plan(), PRINTS)
    if how == "failed":
        ledger.fail(old.number, "it broke")
    time.sleep(0.05)
    new = ledger.open("b", plan(), PRINTS, lives={"a": Life.GONE} if how == "known to be dead" else {})
    assert new.number == old.number + 1
    assert ledger.run(old.number).state == "abandoned"


def test_an_owner_that_is_known_to_live_is_waited_for_after_its_lease(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.lake.ledger.ledger.LEASE_SECONDS", 0.01)
    ledger.open("a", plan(), PRINTS)
    time.sleep(0.05)
    with pytest.raises(RunBusy, match="waiting for its next step"):
        ledger.open("b", plan(), PRINTS, lives={"a": Life.ALIVE})


def test_the_newest_run_of_an_owner_and_what_a_run_left_as_it_was(ledger: Ledger) -> None:
    assert ledger.newest("a") is None
    run = ledger.open("a", plan(), PRINTS)
    ledger.publish(run.number, ["people"])
    assert ledger.newest("a") == ledger.run(run.number)
    assert ledger.kept(run.number) == ["people"]
    compaction = ledger.open("c", plan(), PRINTS, kind=RunKind.COMPACT)
    assert ledger.newest() == compaction and ledger.newest("a") == ledger.run(run.number)
    ledger.publish(compaction.number)
    assert ledger.kept(compaction.number) == ["people"], "a compaction is no rebuild"
    assert ledger.open("d", plan(), PRINTS).rebuild == ("people",)


def test_twenty_opens_at_once_make_one_run(tmp_path: Path) -> None:
    url, gate = f"sqlite:///{tmp_path / 'ledger.db'}", threading.Barrier(20)

    def attempt(number: int) -> int | str:
        mine = Ledger(url, "town")
        gate.wait()
        try:
            return mine.open(f"owner {number}", plan(), PRINTS).number
        except RunBusy as error:
            return error.code

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(attempt, range(20)))
    assert sorted(map(str, results)) == ["1", *["RUN_BUSY"] * 19]
    assert len(Ledger(url, "town").runs()) == 1


def test_two_attempts_of_a_step_register_at_once_and_one_wins_with_all_its_writes(tmp_path: Path) -> None:
    url, gate = f"sqlite:///{tmp_path / 'ledger.db'}", threading.Barrier(2)
    run = Ledger(url, "town").open("a", plan(), PRINTS).number

    def attempt(mine: int) -> bool:
        ledger = Ledger(url, "town")
        gate.wait()
        return ledger.register(
            run, record("resolve.people", n=mine), f"attempt {mine}", (Write("people", mine), Write("people__changes", mine))
        )

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(attempt, (1, 2)))
    assert sorted(won) == [False, True]
    winner = won.index(True) + 1
    ledger = Ledger(url, "town")
    assert {w.snapshot_id for w in ledger.writes(run).values()} == {winner}
    assert ledger.steps(run)["resolve.people"].counts == {"n": winner}


def test_idle_steps_are_registered_together_and_none_if_another_attempt_was_first_with_one(ledger: Ledger) -> None:
    run = ledger.open("a", plan(), PRINTS).number
    assert ledger.register_idle(run, [record("ingest.a"), record("ingest.b")])
    assert ledger.register(run, record("resolve.b"), "x", (Write("people", 1),))
    assert not ledger.register_idle(run, [record("resolve.a"), record("resolve.b", n=9)])
    assert list(ledger.steps(run)) == ["ingest.a", "ingest.b", "resolve.b"]
    assert ledger.steps(run)["resolve.b"].counts == {}


def test_publish_records_one_cut_over_all_tables_and_carries_what_the_run_did_not_write(ledger: Ledger) -> None:
    committed(ledger, "a", Write("people", 10), Write("persons", 20), Write("answers", 99, transient=True))
    committed(ledger, "b", Write("people", 11))
    assert ledger.states(1) == {"people": 10, "persons": 20}
    assert ledger.states(2) == {"people": 11, "persons": 20}
    assert ledger.head() == 2


def test_publishing_twice_changes_nothing(ledger: Ledger) -> None:
    run = committed(ledger)
    assert ledger.publish(run.number) is False
    assert ledger.head() == 1


@pytest.mark.parametrize("late", ["register", "register idle", "renew", "publish", "pin"])
def test_whoever_comes_late_to_an_abandoned_run_is_told_so_and_changes_nothing(ledger: Ledger, late: str) -> None:
    run = ledger.open("a", plan(), PRINTS).number
    ledger.abandon(run, "taken over by b\n  step: s")
    calls: dict[str, Callable[[], object]] = {
        "register": lambda: ledger.register(run, record("s"), "x", (Write("people", 1),)),
        "register idle": lambda: ledger.register_idle(run, [record("s")]),
        "renew": lambda: ledger.renew(run),
        "publish": lambda: ledger.publish(run),
        "pin": lambda: ledger.pin(run, {"persons": None}),
    }
    with pytest.raises(RunSuperseded, match=r"run 1 of topology 'town' is closed \(taken over by b\); this attempt changed nothing"):
        calls[late]()
    assert ledger.head() is None
    assert ledger.writes(run) == {}


def test_a_zombie_that_registers_after_the_commit_is_refused(ledger: Ledger) -> None:
    run = committed(ledger, "a", Write("people", 1))
    with pytest.raises(RunSuperseded):
        ledger.register(run.number, record("late"), "zombie", (Write("people", 2),))
    assert ledger.states(1) == {"people": 1}


def test_a_committed_run_cannot_be_abandoned(ledger: Ledger) -> None:
    run = committed(ledger)
    with pytest.raises(RunCommitted, match="is committed and cannot be abandoned"):
        ledger.abandon(run.number, "test")
    assert ledger.run(run.number).state == "committed"


def test_an_unknown_run_is_named(ledger: Ledger) -> None:
    with pytest.raises(RunUnknown, match="topology 'town' has no run 5"):
        ledger.run(5)


@pytest.mark.invariant("I6")
def test_files_count_as_consumed_only_after_the_commit(ledger: Ledger) -> None:
    run = ledger.open("a", plan(), PRINTS).number
    pin = Pin("snapshot", (Part("p/1", 3, {"sha256": "s"}),), 1).to_dict()
    ledger.pin(run, {"persons": pin})
    assert ledger.consumed("persons") == {}
    assert ledger.last_pin("persons") is None
    ledger.publish(run)
    assert ledger.consumed("persons") == {"p/1": 3}
    assert ledger.last_pin("persons") == json.loads(json.dumps(pin))


def test_two_topologies_share_a_ledger_without_meeting(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    committed(Ledger(url, "town"))
    assert Ledger(url, "village").open("a", plan(), PRINTS).number == 1
    assert topologies(url) == ["town", "village"]


def test_kinds_and_states_are_compared_while_another_thread_imports_the_mapper_of_sqlalchemy() -> None:
    # In a process that has not imported it yet.
    code = """
import sys, threading
from sqlalchemy import select
from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.runs import RunKind, RunState
assert "sqlalchemy.orm" not in sys.modules
sys.setswitchinterval(1e-5)
mapper = threading.Thread(target=__import__, args=("sqlalchemy.orm",))
mapper.start()
compared = 0
while mapper.is_alive() or not compared:
    select(t.runs.c.run).where(t.runs.c.state == RunState.COMMITTED, t.runs.c.kind != RunKind.RUN)
    compared += 1
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "include"}
    )
    assert done.returncode == 0, done.stderr


def test_what_is_open_and_what_is_not_done_is_found_without_reading_all_runs_and_in_an_old_ledger_too(tmp_path: Path) -> None:
    first = f"sqlite:///{tmp_path}/ledger.db"
    committed(Ledger(first, "town"))
    with sqlite3.connect(tmp_path / "ledger.db") as db:  # as an older rejoin made it
        for index in RUNS_BY:
            db.execute(f"DROP INDEX {index.name}")
    connected(first).dispose()
    again = f"sqlite:///{tmp_path}/./ledger.db"  # a pool of its own: what another process would open
    ledger, asked = Ledger(again, "town"), list[tuple[str, Any]]()
    listen(connected(again), "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    assert (ledger.open_run(), ledger.not_rolled_forward()) == (None, [1])
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        plans = [str(db.execute(f"EXPLAIN QUERY PLAN {sql}", told).fetchall()) for sql, told in asked if sql.startswith("SELECT")]
    assert ["rejoin_runs_by_state" in plans[0], "rejoin_runs_by_done" in plans[1]] == [True, True], plans
