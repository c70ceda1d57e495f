"""Random histories with expectations: after every run every output is what a second engine computes, except for the keys that are listed (I1, I7)."""

import random
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import checks
import pytest
from checks import unlike
from engine import Engine
from held import HeldModel, Published, Rule, rule
from landing import land
from model import Model
from oracle import Oracle
from scenario import Case, prepare
from test_histories import Lake, limit
from test_histories import lake as lake  # noqa: PLC0414 -- a fixture
from topologies import generate

from rejoin.lake import table_names
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import Refresh, RunOptions
from rejoin.statements.own_columns import HELD_CODE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]
FULL_AT, RELAXED_AT, COMPACTED_AFTER = 2, 3, 1


class HeldBack:
    """One topology, in which every named output holds back what breaks its rule."""

    def __init__(self, case: Case, config: Any, root: Path, spark: Any) -> None:
        generated, self._arriving = prepare(case)
        self._rng = random.Random(f"{case.seed} held")
        self._case, self._specs, self._root = case, generated.specs, root
        self._lake, self._spark = config, spark
        self.numbers = range(len(self._arriving.runs))
        plan = compile(generated.topology)
        self.rules = self._rules(plan)
        self.model, self.published = Model(self._specs, plan), Published(plan, self._specs)
        self.before: dict[str, Any] = {}
        self.seen = 0

    def _rules(self, plan: Plan) -> dict[str, Rule]:
        """For every named output a rule that some of its first rows break, and not all, if one is found."""
        first, shown = Model(self._specs, plan), Published(plan, self._specs)
        first.receive(self._arriving.runs[0])
        shown.load(first, {})
        made = {}
        for node in [n for n in plan.nodes if n.published]:
            columns = [p.name for p in node.columns]
            rules = [rule(self._rng, {p.name: p.type for p in node.columns if p.name not in node.key}) for _ in range(30)]
            verdicts = [{passes(row[columns.index(name)]) for _, row in shown.output(node)} for name, _, passes in rules]
            made[node.name] = next((r for r, found in zip(rules, verdicts, strict=True) if len(found) == 2), rules[0])
        return made

    def plan(self, rules: dict[str, Rule]) -> Plan:
        """The topology's plan with the rules."""
        declared = generate(self._case.seed, self._case.shape, self._case.name).topology
        for name, (_, expected, _) in rules.items():
            declared.relation(name).expect(expected, severity="quarantine", max_share=1.0)
        return compile(declared)

    def expect(self, number: int) -> int:
        """How many keys a run holds back, says the second engine."""
        self.model.receive(self._arriving.runs[number])
        self.published.load(self.model, self._rules_of(number))
        return sum(map(len, self.published.held.values()))

    def _rules_of(self, number: int) -> dict[str, Rule]:
        return {} if number == RELAXED_AT else self.rules

    def run(self, number: int) -> list[str]:
        """One run with the next arrivals, and every check."""
        plan = self.plan(self._rules_of(number)).with_options(RunOptions(refresh=Refresh.FULL if number == FULL_AT else None))
        engine = Engine(plan, self._lake, self._root, self._spark)
        land(self._rng, self._root, number, self._specs, self._arriving.runs[number])
        self.expect(number)
        done = engine.run()
        wrong = self._state(engine) + checks.changes(engine, done, self.before)
        self.before = checks.state(engine)
        if number == COMPACTED_AFTER:
            engine.compact()
            wrong += self._state(engine)
        return [f"run {number}: {line}" for line in wrong]

    def verified(self) -> list[str]:
        engine = Engine(self.plan(self.rules), self._lake, self._root, self._spark)
        found = {fast: engine.verified(fast=fast) for fast in (False, True)}
        return [f"verify (fast={fast}): {n} differences" for fast, n in found.items() if n]

    def _state(self, engine: Engine) -> list[str]:
        wrong = checks.sources(engine, self.model, self._specs)
        for node in engine.plan.nodes:
            wrong += unlike(f"output {node.name}", self.published.output(node), engine.output(node))
            newest: dict[Any, Any] = {}
            for row in sorted(engine._scan(table_names.quarantine(node.name)), key=lambda r: r["_run"]):
                newest[tuple(row[k] for k in node.key)] = row["_op"]
            listed = {key for key, op in newest.items() if op == "Q"}
            self.seen += len(listed)
            if listed != self.published.held[node.name]:
                wrong.append(f"held back of {node.name}: expected {self.published.held[node.name]}, listed {listed}")
        return wrong


def first_that_holds(of: "type[HeldBack | Waiting]", seed: int, shape: str, paths: str) -> Case:
    """The case of this seed, or of the next ones, where some row is held back: in one star of six none is."""
    cases = (Case(s, shape, histories=range(1, 13), compacted=False, idle=False, at_once=False, paths=paths) for s in count(seed))
    plays = ((case, of(case, None, Path(), None)) for case in cases)
    return next(case for case, play in plays if sum(play.expect(number) for number in play.numbers))


BY_DAY = ("star", "driver")
CASES = [BY_DAY, ("star", "spark"), ("long_chain", "driver"), ("deep_diamond", "both"), ("output_as_both_sides", "driver")]


@pytest.mark.parametrize(
    ("shape", "paths"),
    [pytest.param(*case, id="-".join(case), marks=[pytest.mark.nightly] * (case != BY_DAY)) for case in CASES],
)
@pytest.mark.invariant("I1", "I7")
def test_outputs_are_right_except_for_keys_that_are_listed(
    shape: str,
    paths: str,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    limit(paths, lake, monkeypatch)
    case = first_that_holds(HeldBack, int(pytestconfig.option.hypothesis_seed), shape, paths)
    play = HeldBack(case, lake[0], tmp_path, lake[1])
    for number in play.numbers:
        assert not (wrong := play.run(number)), f"{case}\n" + "\n".join(wrong)
    assert play.seen, f"{case}: no row was held back"
    assert not (wrong := play.verified()), f"{case}\n" + "\n".join(wrong)


class Waiting:
    """One topology, in which bad rows of every source table wait in quarantine."""

    def __init__(self, case: Case, config: Any, root: Path, spark: Any) -> None:
        generated, self._arriving = prepare(case)
        self._case, self._specs, self._root, self._lake, self._spark = case, generated.specs, root, config, spark
        self._rng = random.Random(f"{case.seed} waiting")
        self.numbers = range(len(self._arriving.runs))
        plan = compile(generated.topology)
        self.model, self.oracle = HeldModel(self._specs, plan), Oracle(plan, self._specs)
        self.rules = {n: rule(self._rng, {c: t for c, t in s.columns.items() if c not in s.key}) for n, s in self._specs.items()}
        self.seen = 0

    def expect(self, number: int) -> int:
        """How many rows wait after a run, says the model."""
        self.model.rules = {} if number == RELAXED_AT else self.rules
        self.model.receive(self._arriving.runs[number])
        return sum(map(len, self.model.waiting.values()))

    def run(self, number: int) -> list[str]:
        """One run with the next arrivals: the source tables hold what the model says, the outputs are their SQL."""
        declared = generate(self._case.seed, self._case.shape, self._case.name).topology
        self.expect(number)
        for name, (_, expected, _) in self.model.rules.items():
            declared.relation(name).expect(expected, severity="quarantine", max_share=1.0)
        plan = compile(declared)
        plan = replace(plan, tables=tuple(replace(t, source=replace(t.source, max_bad_share=1.0)) for t in plan.tables))
        engine = Engine(plan, self._lake, self._root, self._spark)
        land(self._rng, self._root, number, self._specs, self._arriving.runs[number])
        self.oracle.load(self.model)
        engine.run()
        wrong = checks.sources(engine, self.model, self._specs) + checks.outputs(engine, self.oracle)
        for name, waiting in self.model.waiting.items():
            newest: dict[Any, Any] = {}
            for row in sorted(engine._scan(table_names.quarantine(name)), key=lambda r: r["_run"]):
                if row["_code"] == HELD_CODE:
                    newest[tuple(row[k] for k in self._specs[name].key)] = row["_op"]
            listed = {key for key, op in newest.items() if op == "Q"}
            self.seen += len(listed)
            if listed != set(waiting):
                wrong.append(f"held back of {name}: expected {set(waiting)}, listed {listed}")
        return [f"run {number}: {line}" for line in wrong]


@pytest.mark.nightly
@pytest.mark.parametrize(("shape", "paths"), [("chain", "driver"), ("several", "both")])
def test_bad_rows_of_source_tables_wait_until_they_are_fixed_replaced_or_allowed(
    shape: str, paths: str, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    limit(paths, lake, monkeypatch)
    case = first_that_holds(Waiting, int(pytestconfig.option.hypothesis_seed), shape, paths)
    play = Waiting(case, lake[0], tmp_path, lake[1])
    for number in play.numbers:
        assert not (wrong := play.run(number)), f"{case}\n" + "\n".join(wrong)
    assert play.seen, f"{case}: no row was held back"
