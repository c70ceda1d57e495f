"""Random edits between runs: after each run every output is what a second engine computes, and its feed folded from nothing is the output.

``REJOIN_SEED=<seed>`` repeats a run; ``REJOIN_EDITS=50`` makes long histories.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checks
import pytest
from edits import Data, Declared, edit, specs
from engine import Engine, Row
from oracle import Oracle

from rejoin.lake.config import lake_config
from rejoin.lake.ledger.ledger import Ledger
from rejoin.operate.ahead import compared
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Node

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]


def seed_of(config: pytest.Config) -> int:
    return int(os.environ.get("REJOIN_SEED") or config.option.hypothesis_seed)


def folded(engine: Engine, node: Node) -> list[tuple[Row, Row]]:
    """The changes of all runs, one after the other, in the columns that the output has now."""
    state: dict[Row, Row] = {}
    columns = [p.name for p in node.columns]
    for change in sorted(engine.feed(node), key=lambda c: c["_run"]):
        key = tuple(change[k] for k in node.key)
        state.pop(key, None)
        if change["_op"] != "D":
            state[key] = tuple(change["_after"].get(c) for c in columns)
    return list(state.items())


def wrong_after(engine: Engine, oracle: Oracle) -> list[str]:
    """What is wrong after a run, as sentences."""
    found = checks.outputs(engine, oracle) + checks.subscriptions(engine, oracle)
    for node in engine.plan.nodes:
        found += checks.unlike(f"feed of {node.name}", engine.output(node), folded(engine, node))
    return found


@pytest.fixture(scope="module")
def spark_of(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Callable[[], Any]]:
    from rejoin.lake.spark.session import session

    config = lake_config(str(tmp_path_factory.mktemp("lake")))
    spark = session(config)
    return config, lambda: spark


@pytest.mark.parametrize(
    "number",
    [
        0,
        pytest.param(1, marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 12)),
    ],
)
def test_after_every_edit_the_outputs_are_right_and_their_feeds_fold_to_them(
    number: int, spark_of: tuple[Any, Callable[[], Any]], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seed = seed_of(pytestconfig)
    rng = random.Random(f"{seed} {number} edits")
    declared, data, said = Declared(), Data(rng, tmp_path), ["as declared"]
    for run in range(int(os.environ.get("REJOIN_EDITS", "7"))):
        if run:
            said.append(" and ".join(edit(rng, declared) for _ in range(rng.randint(1, 2))))
        data.land()
        plan = compile(declared.topology(f"edits_{number}"))
        engine = Engine(plan, spark_of[0], tmp_path, spark_of[1])
        foretold = compared(plan, spark_of[0])
        done = engine.run()
        rebuilt = {e.name for e in foretold.entries if e.computed}
        assert not foretold.refused and rebuilt == set(Ledger(spark_of[0].ledger, plan.topology).run(done).rebuild), foretold
        data.read(declared.tables)
        oracle = Oracle(plan, specs(declared.tables))
        oracle.load(data)  # type: ignore[arg-type]
        wrong = wrong_after(engine, oracle)
        assert not wrong, f"REJOIN_SEED={seed}: {said}: {declared}\n" + "\n".join(wrong)


def test_the_edits_hold_every_situation_that_is_hard() -> None:
    rng, declared = random.Random("situations"), Declared()
    found: Counter[str] = Counter()
    away: set[str] = set()
    before = compile(declared.topology("edits"))
    for _ in range(120):
        found[edit(rng, declared)] += 1
        after = compile(declared.topology("edits"))
        unnamed = [[n.name for n in plan.nodes if not n.published] for plan in (before, after)]
        tables = [{t.name for t in plan.tables} for plan in (before, after)]
        found["a table back"] += bool((tables[1] - tables[0]) & away)
        away |= tables[0] - tables[1]
        found["an unnamed join before one that stays"] += any(n in unnamed[0] for n in unnamed[1][1:]) and unnamed[1][0] not in unnamed[0]
        before = after
    assert len(found) == 11
    assert all(found.values()), found
