"""The lake of a random history of streams with a retention (``letting_go``), and who runs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from feeds import changes_of
from letting_go import WINDOWS, History, Window, expected, shown, topology, unnoted

from rejoin.lake.compact.stream_retention import letting_go
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run
from rejoin.operate.compact import compact
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology


@dataclass
class Web:
    """The lake of a history, and who runs it."""

    history: History
    windows: dict[str, Window]
    topology: Topology
    spark: Callable[[], Any]
    behind: frozenset[str] = frozenset()

    @staticmethod
    def of(root: Path, chance: Random, spark: Callable[[], Any], chosen: Sequence[str] = ()) -> "Web":
        """``chosen``: the windows, ``left_pairs`` among them; none: some at random."""
        history = History(chance, root, chance.random() < 0.7)
        history.begin()
        others = sorted(n for n in WINDOWS if n != "left_pairs")
        windows = {name: WINDOWS[name] for name in chosen or ("left_pairs", *chance.sample(others, 3))}
        plan = compile(topology(windows, zoned=history.zoned))
        return Web(history, windows, Topology(plan, lake_config(str(root / "lake")), str(root)), spark)

    def run(self, **options: Any) -> None:
        run_topology(self.topology, self.spark, "test", options=RunOptions(fuse=options.pop("fuse", Fuse.APPLY), **options))

    def compact(self) -> int:
        """How many records a compaction let go."""
        done = compact(self.topology, self.spark, "test")
        return 0 if done is None else sum(s.counts.get("let_go", 0) for s in self.topology.ledger.steps(done.number).values())

    def head(self) -> Run:
        return self.topology.ledger.run(self.topology.ledger.head() or 0)

    def could_let_go(self) -> bool:
        """Whether a compaction would let records go now."""
        head, ledger = self.topology.ledger.head(), self.topology.ledger
        if head is None:
            return False
        plan = self.head().plan
        return letting_go(plan, ledger.states(head), self.topology.refs, ledger.kept(head), 1 << 60) != plan

    def fill(self) -> None:
        """Runs until a compaction would let records go."""
        while not self.could_let_go():
            self.history.arrive()
            self.run()

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

    def differences(self, *, feeds: bool = True) -> list[str]:
        """A line for every output that is not what it should be, or not what its feed says."""
        found = []
        for name, rows in expected(self.history, self.windows):
            if name in self.behind:
                continue
            have = shown(self.rows(name))
            if have != rows:
                found.append(f"{name}: missing {[r for r in rows if r not in have][:5]}, too many {[r for r in have if r not in rows][:5]}")
            if feeds and self.folded(name) != have:
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
                self.run(replay=(*sorted({"held_pairs"} & set(self.windows)), "views"))
            case "only":
                self.run(only=some)
                self.behind = frozenset(self.topology.ledger.kept(self.topology.ledger.head() or 0))
            case _:
                self.run()
        return what
