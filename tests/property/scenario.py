"""One random topology with its histories, played through the engine with every check after every run."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import checks
from engine import Engine
from histories import Deliveries, at_once, deliveries, histories
from landing import land
from model import Model
from oracle import Oracle
from topologies import Generated, generate

from rejoin.lake.config import LakeConfig
from rejoin.plan.check.compile import compile

RUNS = 4


@dataclass(frozen=True)
class Case:
    """What is repeated by its seed. ``histories``: their numbers; ``paths``: where rows are read and written, "driver", "spark" or "both"."""

    seed: int
    shape: str
    histories: range
    compacted: bool
    idle: bool
    at_once: bool
    paths: str

    @property
    def name(self) -> str:
        return f"{self.shape}_{self.seed}"


class Play:
    """One topology, one lake, one way in which the histories arrive."""

    def __init__(
        self, case: Case, generated: Generated, arriving: Deliveries, config: LakeConfig, root: Path, spark: Callable[[], Any]
    ) -> None:
        self._case, self._root, self._arriving = case, root, arriving
        self._rng = random.Random(f"{case.seed} landing")
        self._specs, self._next, self._before = generated.specs, 0, {}
        plan = compile(generated.topology)
        self.model, self.oracle = Model(self._specs, plan), Oracle(plan, self._specs)
        self.engine = Engine(plan, config, root, spark)

    def step(self, *, idle: bool = False) -> list[str]:
        """One run with the next arrivals (idle: with none), and every check."""
        arriving = {} if idle else self._arriving.runs[self._next]
        land(self._rng, self._root, self._next, self._specs, arriving)
        self._next += not idle
        expected = self.model.receive(arriving)
        self.oracle.load(self.model)
        run = self.engine.run()
        wrong = checks.conserved(self.engine, run, expected) + self.now() + checks.changes(self.engine, run, self._before)
        if idle and any(self.engine.changes(node, run) for node in self.engine.plan.nodes):
            wrong.append("a run without new input has changes")
        self._before, self._last = checks.state(self.engine), run
        return [f"run {run}: {line}" for line in wrong]

    def now(self) -> list[str]:
        """The checks of the state as it is."""
        engine, oracle = self.engine, self.oracle
        held = checks.sources(engine, self.model, self._specs) + checks.outputs(engine, oracle) + checks.subscriptions(engine, oracle)
        return held + engine.wrong_bounds()

    def compact(self) -> list[str]:
        """A compaction, after which nothing looks different."""
        nodes = self.engine.plan.nodes
        before = [self.engine.changes(node, self._last) for node in nodes]
        # With base files of a few rows, several files can be the right layout.
        scattered = self._case.paths != "both" and self.engine.scattered()
        done = self.engine.compact()
        wrong = self.now() + (["nothing was compacted"] if scattered and not done else [])
        if [sorted(self.engine.changes(n, self._last), key=repr) for n in nodes] != [sorted(c, key=repr) for c in before]:
            wrong.append("the changes of the last run are others")
        return [f"compaction: {line}" for line in wrong + self.filtered()]

    def filtered(self) -> list[str]:
        """Conditions that readers answer by what is said of files."""
        return checks.filtered(self.engine, self._rng)

    def verified(self) -> list[str]:
        """Differences that rejoin's own verify finds, in both ways."""
        found = {fast: self.engine.verified(fast=fast) for fast in (False, True)}
        return [f"verify (fast={fast}): {n} differences" for fast, n in found.items() if n]


def prepare(case: Case) -> tuple[Generated, Deliveries]:
    """The topology of a case, and what arrives in its runs."""
    generated = generate(case.seed, case.shape, case.name)
    rng = random.Random(f"{case.seed} {case.shape} histories")
    events = histories(rng, generated.specs, case.histories, RUNS)
    return generated, deliveries(rng, generated.specs, events, RUNS)


def play(case: Case, config: LakeConfig, root: Path, spark: Callable[[], Any]) -> list[str]:
    """Everything of one case; what is wrong, as sentences. Stops at the first run with something wrong."""
    generated, split = prepare(case)
    one = Play(case, generated, split, config, root / "split", spark)
    steps = [one.step] * (RUNS - 1)
    steps += [one.compact] * case.compacted + [lambda: one.step(idle=True)] * case.idle + [one.step, one.filtered, one.verified]
    for step in steps:
        if wrong := step():
            return wrong
    if not case.at_once:
        return []
    again = generate(case.seed, case.shape, f"{case.name}_once")
    together = at_once(random.Random(f"{case.seed} at once"), generated.specs, split)
    other = Play(case, again, together, config, root / "once", spark)
    wrong = other.step()
    same = checks.state(other.engine) == checks.state(one.engine)
    return wrong + ([] if same else ["the same events in one run give another state"])
