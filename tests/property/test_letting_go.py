"""Compactions that let records of streams go, at random places of random histories: nobody sees it in any output.

After every run every output is what DuckDB makes of all records that were ever taken, and the feed folded from its start is the output. Between runs
come compactions, recomputations, replays, repairs and runs of some outputs only. ``REJOIN_SEED=<seed>`` repeats a history.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from feeds import changes_of
from letting_go import WINDOWS, History, Window, expected, shown, topology, unnoted
from limited import limited

from rejoin.compact import compact
from rejoin.conduct import Topology
from rejoin.lake.config import lake_config
from rejoin.plan.compile import compile
from rejoin.plan.policy import Fuse, Refresh, RunOptions
from rejoin.schedule import run_topology
from rejoin.verify import verify

RUNS = 9
pytestmark = [pytest.mark.timeout(600), *(pytest.mark.filterwarnings(f"ignore::{w}") for w in ("ResourceWarning",))]


def no_spark() -> Any:
    raise AssertionError("a few rows need no Spark")


@dataclass
class Web:
    """The lake of a history, and who runs it."""

    history: History
    windows: dict[str, Window]
    topology: Topology
    spark: Callable[[], Any]
    behind: frozenset[str] = frozenset()

    @staticmethod
    def of(root: Path, chance: random.Random, spark: Callable[[], Any]) -> "Web":
        history = History(chance, root, chance.random() < 0.7)
        history.begin()
        windows = {name: WINDOWS[name] for name in ("left_pairs", *sorted(chance.sample([n for n in WINDOWS if n != "left_pairs"], 3)))}
        plan = compile(topology(windows, zoned=history.zoned))
        return Web(history, windows, Topology(plan, lake_config(str(root / "lake")), str(root)), spark)

    def run(self, **options: Any) -> None:
        run_topology(self.topology, self.spark, "test", options=RunOptions(fuse=options.pop("fuse", Fuse.APPLY), **options))

    def compact(self) -> int:
        """How many records a compaction let go."""
        done = compact(self.topology, self.spark, "test")
        return 0 if done is None else sum(s.counts.get("let_go", 0) for s in self.topology.ledger.steps(done.number).values())

    def rows(self, name: str) -> list[dict[str, Any]]:
        ledger = self.topology.ledger
        states = ledger.states(ledger.head())
        if name not in states:
            return []
        found = self.topology.refs.require(name, states[name]).scan(snapshot_id=states[name]).to_arrow()
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def stored(self, name: str) -> int:
        return len(self.rows(name))

    def differences(self) -> list[str]:
        """A line for every output that is not what it should be, or not what its feed says."""
        found = []
        for name, rows in expected(self.history, self.windows):
            if name in self.behind:
                continue
            have = shown(self.rows(name))
            if have != rows:
                found.append(f"{name}: missing {[r for r in rows if r not in have][:5]}, too many {[r for r in have if r not in rows][:5]}")
            if self.folded(name) != have:
                found.append(f"{name}: its feed is not the table")
        if "held_pairs" in self.windows and "held_pairs" not in self.behind:
            newest = {(r["v"], r["record"]): r for r in sorted(self.rows("held_pairs__quarantine"), key=lambda r: r["_run"])}
            held = sorted((r["v"] or 0, r["record"] is None) for r in newest.values() if r["_op"] == "Q")
            if held != sorted((v or 0, c is None) for v, c in unnoted(self.history)):
                found.append("held_pairs: other rows are held back")
        return found

    def folded(self, name: str) -> list[tuple[Any, ...]]:
        state, key = dict[tuple[Any, ...], dict[str, Any]](), self.topology.plan.node(name).key
        for change in sorted(changes_of(self.topology, name), key=lambda c: c["_run"]):
            at = tuple(change[k] for k in key)
            if change["_after"] is None:
                del state[at]
            else:
                state[at] = change["_after"]
        return shown(list(state.values()))

    def step(self) -> str:
        """Something between two runs, or a run of some other kind; what it was."""
        chance = self.history.chance
        what = chance.choice(("run", "run", "full", "recompute", "replay", "repair", "only"))
        some = tuple(chance.sample(["named", "above", *self.windows], chance.randint(1, 3)))
        if what == "repair" and not self.behind:
            self.run(repair=tuple(n for n in some if n != "named") or ("above",))
            return what
        self.history.arrive()
        self.behind = frozenset()
        match what:
            case "full":
                self.run(refresh=Refresh.FULL)
            case "recompute":
                self.run(fuse=Fuse.RECOMPUTE)
            case "replay":
                self.run(replay=tuple({"held_pairs"} & set(self.windows)) + ("views",))
            case "only":
                self.run(only=some)
                self.behind = frozenset(self.topology.ledger.held(self.topology.ledger.head() or 0))
            case _:
                self.run()
        return what


def random_history(web: Web, seed: int) -> int:
    """Goes through a history, and says how many records were let go in it."""
    chance, did, gone = web.history.chance, list[str](), 0
    web.history.arrive()
    web.run()
    for _ in range(RUNS):
        if chance.random() < 0.6:
            gone += (now := web.compact())
            did.append(f"compact ({now})")
        did.append(web.step())
        found = web.differences()
        assert not found, f"REJOIN_SEED={seed}: {', '.join(did)}:\n" + "\n".join(found)
    return gone


SEEDS = [pytest.param(n, id=f"history {n}", marks=[pytest.mark.slow] if n < 20 else [pytest.mark.nightly]) for n in range(120)]


@pytest.mark.parametrize("number", SEEDS)
def test_no_output_shows_that_records_were_let_go(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, base_rows=random.Random(number).choice((3, 8, 50)), merged_files=random.Random(number).choice((3, 8)))
    seed = int(os.environ.get("REJOIN_SEED") or int(pytestconfig.option.hypothesis_seed) + number)
    print(f"REJOIN_SEED={seed}")
    web = Web.of(tmp_path, random.Random(seed), no_spark)
    gone = random_history(web, seed)
    print(f"{gone} records let go, {web.history.late} too late")
