"""Random topologies and random histories: after every run every output is what DuckDB computes from everything that arrived.

``REJOIN_SEED=<seed>`` repeats a run (the header and each test's name show the seed); ``REJOIN_HISTORIES=5000`` makes a long one.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import checks
import pytest
from checks import unlike, unreal
from engine import Change
from limited import limited
from model import Model
from patterns import ALL, patterns
from scenario import Case, Play, play, prepare
from shapes import SHAPES
from worker_processes import by, workers

from rejoin.lake.config import LakeConfig, lake_config
from rejoin.lake.write import writer
from rejoin.plan.check.compile import compile
from rejoin.plan.sql import portable

HISTORIES_A_TOPOLOGY = 40
BY_DAY = ("star", "chain")
"""Shapes that `make test` plays, one on the driver and one down both paths: the golden traces have most of the others, and the rest go the same ways."""
OTHERS = 100_000
"""Added to the seeds of histories that nobody else plays on the same lake."""
ODD_FOLDER = "h=9/a_v1=odd/ä b%20#?[x]'q'"
"""Above the lake and above what lands: letters that a URI escapes, a pattern, folders that look like partitions by columns of the tables."""
ROW_GROUP = 4
"""Rows in a row group: so few that a file has many, one of them with a value that is too long for Parquet's statistics."""
# Spark's Python client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.timeout(1200),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]
Lake = tuple[LakeConfig, Callable[[], Any]]


def cases(seed: int, histories: int) -> list[Case]:
    """Every shape in turn until there are so many histories; each topology once at least."""
    count = max(len(SHAPES), -(-histories // HISTORIES_A_TOPOLOGY))
    shapes = list(SHAPES)
    return [
        Case(
            seed=seed + i,
            shape=shapes[i % len(shapes)],
            histories=range(1, HISTORIES_A_TOPOLOGY + 1),
            compacted=i % 2 == 0,
            idle=i % 4 == 0,
            at_once=i % 4 == 1,
            paths=("driver", "both", "spark")[(i + i // 6) % 3],
        )
        for i in range(count)
    ]


def cases_of(config: pytest.Config) -> list[Case]:
    """The seed is REJOIN_SEED, else the one that the header of every test run shows."""
    seed = int(os.environ.get("REJOIN_SEED") or config.option.hypothesis_seed)
    return cases(seed, int(os.environ.get("REJOIN_HISTORIES", "400")))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        made = cases_of(metafunc.config)
        names = [f"{case.shape}-REJOIN_SEED={made[0].seed}-{i}" for i, case in enumerate(made)]
        by_spark = [[pytest.mark.by_spark] * (case.paths != "driver") for case in made]
        marks = [[*m, *[pytest.mark.nightly] * (case.shape not in BY_DAY)] for m, case in zip(by_spark, made, strict=True)]
        metafunc.parametrize("case", [pytest.param(c, id=n, marks=m) for c, n, m in zip(made, names, marks, strict=True)])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One lake and one Spark session for all topologies."""
    from rejoin.lake.spark.session import session

    config = lake_config(str(tmp_path_factory.mktemp("lake") / ODD_FOLDER / "lake"))
    spark = session(config)
    return config, lambda: spark


LIMITS = {"driver": (32 << 20, 200_000, 50_000), "spark": (0, 0, 50_000), "both": (32 << 20, 4, 3)}
"""Bytes that the driver decodes, rows that it may hold (none: everything is done by Spark), and rows of the smallest base file of a compaction (a task of `verify` sorts as many)."""


def limit(paths: str, lake: Lake, monkeypatch: pytest.MonkeyPatch, side_by_side: int = 1) -> None:
    """Sends everything down some paths. ``side_by_side``: so many ranges of keys are worked on at once."""
    size, rows, base = LIMITS[paths]
    monkeypatch.setenv("REJOIN_ENGINE", "spark" if paths == "spark" else "auto")
    # What is large has many tasks a stage; Spark would make one of them, as all is small here. Four are as good as 48.
    lake[1]().conf.set("spark.sql.adaptive.coalescePartitions.enabled", str(paths != "spark").lower())
    lake[1]().conf.set("spark.sql.shuffle.partitions", "4")
    limited(monkeypatch, fetched_bytes=size, small_rows=rows, sparse=0, base_rows=base, compared_rows=base, row_group=ROW_GROUP)
    limited(monkeypatch, range_rows=8, fewest_range_rows=2)  # what the process puts off is done in ranges
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 2 * side_by_side)
    for name in ("limit", "check-min-record-count", "check-max-record-count"):
        monkeypatch.setitem(writer.PROPERTIES, f"write.parquet.row-group-{name}", str(ROW_GROUP))
    monkeypatch.setitem(writer.PROPERTIES, "write.parquet.row-group-size-bytes", "1")


@pytest.mark.slow
@pytest.mark.invariant("I1", "I3", "I4", "I5", "I8")
def test_after_every_run_the_outputs_are_what_a_second_engine_computes(
    case: Case, lake: Lake, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(case.paths, lake, monkeypatch, 1 + case.seed % 3)
    limited(monkeypatch, read_values=0 if case.seed % 2 else 10_000)  # what an output was is made once more, or read
    wrong = play(case, lake[0], tmp_path / ODD_FOLDER, lake[1])
    assert not wrong, f"{case}\n" + "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.invariant("I1", "I3", "I4", "I5", "I8")
@pytest.mark.parametrize("which", [slice(2), slice(2, 400)], ids=["two", "many"])
def test_ranges_that_other_processes_do_come_to_what_a_second_engine_computes(
    which: slice, lake: Lake, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    limit("driver", lake, monkeypatch)
    limited(monkeypatch, range_rows=40, fewest_range_rows=10)
    with workers() as some:
        by(some, lake[0], monkeypatch)
        others = (replace(case, seed=case.seed + OTHERS, paths="driver") for case in cases_of(pytestconfig))
        for other in islice(filter(all_portable, others), which.start, which.stop):  # on one lake, each under its own name
            wrong = play(other, lake[0], tmp_path / other.name, lake[1])
            assert not wrong, f"{other}\n" + "\n".join(wrong)
        assert max(some.asked) > 2


def all_portable(case: Case) -> bool:
    """Whether no step of it is Spark's."""
    plan = compile(prepare(case)[0].topology)
    return not any(portable.why_not(plan, node) for node in plan.nodes)


def test_the_histories_hold_every_situation_that_is_hard_for_a_foreign_key_join(pytestconfig: pytest.Config) -> None:
    found: Counter[str] = Counter()
    for case in cases_of(pytestconfig):
        generated, arriving = prepare(case)
        found += patterns(generated.specs, Model(generated.specs, compile(generated.topology)), arriving)
    rare = {pattern: found[pattern] for pattern in ALL if not found[pattern]}
    assert not rare, f"{rare} of {found}"


# --- the checks can fail ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.invariant("I9")
def test_every_check_reports_an_expectation_that_was_tampered_with(lake: Lake, tmp_path: Any) -> None:
    case = Case(seed=1, shape="star", histories=range(1, 9), compacted=False, idle=False, at_once=False, paths="driver")
    generated, arriving = prepare(case)
    one = Play(case, generated, arriving, lake[0], tmp_path, lake[1])
    assert one.step() == []
    [node], engine = one.engine.plan.nodes, one.engine
    assert one.now() == [] and checks.changes(engine, 1, {}) == []
    key = next(k for k, _ in engine.output(node) if any(s[0][-len(k) :] == k for s in engine.subscriptions(node, node.edges[0])))
    one.model.rows("a").pop(key)
    one.oracle.load(one.model)
    reported = "\n".join(one.now())
    for part in ("table a", "output out", "subscriptions of out.b"):
        assert f"{part}: key " in reported
    assert checks.changes(engine, 1, {"out": {key: key}}) and checks.conserved(engine, 1, {"a": {"read": 1}})


TABLE = {(1, "a"): (1, "a", 10), (1, "b"): (1, "b", None)}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([*TABLE.items(), ((2, "a"), (2, "a", 1))], id="a row too many"),
        pytest.param(list(TABLE.items())[1:], id="a row too few"),
        pytest.param([((1, "a"), (1, "a", 11)), *list(TABLE.items())[1:]], id="another value"),
        pytest.param([((1, "a"), (1, "a", None)), *list(TABLE.items())[1:]], id="null for a value"),
        pytest.param([*TABLE.items(), ((1, "a"), (1, "a", 10))], id="a key twice"),
    ],
)
def test_a_difference_between_two_tables_is_reported(found: list[Any]) -> None:
    assert unlike("table", TABLE.items(), TABLE.items()) == []
    assert len(unlike("table", TABLE.items(), found)) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Change("U", (1, "a"), (1, "a", 10), (1, "a", 10)), id="changes nothing"),
        pytest.param(Change("U", (1, "a"), (1, "a", 9), (1, "a", 11)), id="starts from another row"),
        pytest.param(Change("I", (1, "a"), None, (1, "a", 11)), id="inserts what is there"),
        pytest.param(Change("D", (3, "x"), (3, "x", 1), None), id="deletes what is not there"),
        pytest.param(Change("I", (1, "a"), (1, "a", 10), (1, "a", 11)), id="wrong operation"),
    ],
)
def test_a_change_that_is_not_real_is_reported(change: Change) -> None:
    assert unreal("out", TABLE, [Change("U", (1, "a"), (1, "a", 10), (1, "a", 11))]) == []
    assert len(unreal("out", TABLE, [change])) == 1
