"""Right and full joins by a foreign key over random histories, by the engine in the process: tables, changes and subscriptions.

After every run every output is what DuckDB computes from the source rows, and the run's changes lead to it; the same rows in one run give the same
tables. Keys are few, so that right rows gain and lose their last left row all the time. ``REJOIN_SEED=<seed>`` repeats a run.
"""

import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import checks
import pytest
from engine import Engine
from expressions import BIGINT, STRING
from limited import in_ranges, limited
from oracle import Oracle
from sparkless import no_spark

from rejoin import Topology, debezium
from rejoin.declare.topology import Relation
from rejoin.lake.config import lake_config
from rejoin.plan.check.compile import compile

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), *(pytest.mark.filterwarnings(f"ignore::{w}") for w in ("ResourceWarning",))]
RUNS = 8
FEW = 4
Row = dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """A table: its key and its columns by type."""

    key: tuple[str, ...]
    columns: Mapping[str, str]


SPECS = {
    "a": Spec(("id",), {"id": BIGINT, "b_id": BIGINT, "c_id": BIGINT, "v": STRING}),
    "b": Spec(("id",), {"id": BIGINT, "c_id": BIGINT, "w": STRING}),
    "c": Spec(("id",), {"id": BIGINT, "x": STRING, "a_id": BIGINT, "b_id": BIGINT}),
    "d": Spec(("k", "n"), {"k": STRING, "n": BIGINT, "fk": STRING, "fn": BIGINT, "v": STRING}),
    "e": Spec(("k", "n"), {"k": STRING, "n": BIGINT, "w": STRING}),
}
A_B = ["left.id AS a_id", "right.id AS b_id", "left.v", "right.w", "coalesce(left.c_id, right.c_id) AS c_id"]
D_E = ["left.k", "left.n", "left.v", "right.k AS ek", "right.n AS en", "right.w"]


def _plain(kind: str) -> Callable[..., None]:
    def declare(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
        getattr(a, kind)(b, foreign_key="b_id", select=A_B).named("out")

    return declare


def filtered(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
    """Views that show some rows only, and a filter over both sides."""
    both = a.filter("v <> 'x'").full_join(b.filter("w <> 'y'"), foreign_key="b_id", select=A_B)
    both.filter("coalesce(v, 'z') <> coalesce(w, 'x')").named("out")


def composite(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
    """Keys of two columns on both sides."""
    d.full_join(e, foreign_key=["fk", "fn"], select=D_E).named("out")


def chain(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
    """A star, and an output without joins, on a result whose key has nulls."""
    middle = a.full_join(b, foreign_key="b_id", select=A_B).named("middle")
    middle.left_join(c, foreign_key="c_id", select=["left.a_id", "left.b_id", "v", "w", "right.x"]).named("out")
    middle.join(c, foreign_key="c_id", select=["left.a_id", "left.b_id", "right.x"]).named("inner_out")
    middle.filter("a_id IS NULL OR v <> 'x'").select(["b_id", "a_id", "w"]).named("few")


def on_top(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
    """A full join whose left side is one."""
    middle = a.full_join(b, foreign_key="b_id", select=A_B).named("middle")
    middle.full_join(c, foreign_key="c_id", select=["left.a_id", "left.b_id", "v", "w", "right.id AS c_key", "right.x"]).named("out")


def below(a: Relation, b: Relation, c: Relation, d: Relation, e: Relation) -> None:
    """Joins whose right side has nulls in its key: such a row has no left row."""
    middle = a.full_join(b, foreign_key="b_id", select=A_B).named("middle")
    keys = ["left.id", "right.a_id AS ra", "right.b_id AS rb", "left.x", "right.w"]
    c.full_join(middle, foreign_key=["a_id", "b_id"], select=keys).named("out")
    c.left_join(middle, foreign_key=["a_id", "b_id"], select=["left.id", "left.x", "right.w"]).named("left_out")


SHAPES: dict[str, Callable[..., None]] = {
    "full": _plain("full_join"),
    "right": _plain("right_join"),
    "filtered": filtered,
    "composite": composite,
    "chain": chain,
    "on_top": on_top,
    "below": below,
}
BY_DAY = ("right",)
"""The others go the same ways, and every kind is in the histories of ``test_joins_by_time``."""


class Sources:
    """The rows of the tables, and the feeds that say so."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._rows = rng, {name: dict[tuple[Any, ...], Row]() for name in SPECS}
        self._lsn = 0

    def rows(self, name: str) -> dict[tuple[Any, ...], Row]:
        """The live rows of a table, as ``Oracle.load`` asks for them."""
        return self._rows[name]

    def change(self, root: Path, number: int) -> None:
        """Some rows come, change and go, a key more than once perhaps."""
        for name, spec in SPECS.items():
            lines = []
            for _ in range(self._rng.choice([0, 1, 3, 6])):
                row = {c: self._value(t, nulls=c not in spec.key) for c, t in spec.columns.items()}
                key = tuple(row[k] for k in spec.key)
                gone = self._rng.random() < 0.4
                if gone:
                    self._rows[name].pop(key, None)
                else:
                    self._rows[name][key] = row
                lines.append(self._event(name, key, None if gone else row))
            self._write(root / name, number, lines)

    def land(self, root: Path) -> None:
        """All rows in one file a table."""
        for name in SPECS:
            self._write(root / name, 0, [self._event(name, key, row) for key, row in self._rows[name].items()])

    def _event(self, name: str, key: tuple[Any, ...], after: Row | None) -> str:
        self._lsn += 1
        source = {"connector": "postgresql", "lsn": self._lsn, "snapshot": "false"}
        value = {"before": None, "after": after, "source": source, "op": "d" if after is None else "u"}
        return json.dumps({"key": dict(zip(SPECS[name].key, key, strict=True)), "value": value, "headers": {}}) + "\n"

    @staticmethod
    def _write(folder: Path, number: int, lines: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if lines:
            (folder / f"{number:03}.jsonl").write_text("".join(lines))

    def _value(self, kind: str, *, nulls: bool) -> Any:
        if nulls and self._rng.random() < 0.2:
            return None
        return self._rng.randrange(FEW) if kind == BIGINT else self._rng.choice("xyz")


def topology(shape: str, name: str) -> Topology:
    on = Topology(name)
    tables = [
        on.table(n, key=list(s.key), schema=", ".join(f"{c} {t}" for c, t in s.columns.items()), source=debezium(n))
        for n, s in SPECS.items()
    ]
    SHAPES[shape](*tables)
    return on


def seeds(config: pytest.Config) -> int:
    return int(os.environ.get("REJOIN_SEED") or config.option.hypothesis_seed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, count = seeds(metafunc.config), int(os.environ.get("REJOIN_OUTER", "1"))
        metafunc.parametrize("seed", [first + i for i in range(count)], ids=[f"REJOIN_SEED={first + i}" for i in range(count)])


@pytest.mark.invariant("I1", "I3", "I5", "I8")
@pytest.mark.parametrize("shape", [pytest.param(s, marks=[] if s in BY_DAY else pytest.mark.nightly) for s in SHAPES])
def test_after_every_run_the_outputs_are_what_a_second_engine_computes(
    shape: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, base_rows=3, row_group=4)
    rng = random.Random(f"{seed} {shape}")
    sources, plan = Sources(rng), compile(topology(shape, shape))
    config = lake_config(str(tmp_path / "lake"))
    engine, oracle = Engine(plan, config, tmp_path / "landing", no_spark), Oracle(plan, SPECS)  # type: ignore[arg-type]
    before: checks.State = {}
    for number in range(RUNS):
        sources.change(tmp_path / "landing", number)
        oracle.load(sources)  # type: ignore[arg-type]
        with monkeypatch.context() as meanwhile:
            if number % 2:
                in_ranges(meanwhile, 4)
            run = engine.run()
        wrong = checks.outputs(engine, oracle) + checks.changes(engine, run, before) + checks.subscriptions(engine, oracle)
        if number % 3 == 2:
            engine.compact()
            wrong += checks.outputs(engine, oracle) + checks.changes(engine, run, before) + checks.subscriptions(engine, oracle)
        assert not wrong, f"run {run} of {shape}, REJOIN_SEED={seed}:\n" + "\n".join(wrong)
        before = checks.state(engine)
    sources.land(tmp_path / "once")
    once = Engine(compile(topology(shape, f"{shape}_once")), config, tmp_path / "once", no_spark)
    once.run()
    assert not checks.outputs(once, oracle)
