"""Random topologies and random histories: after every run every output is what DuckDB computes from everything that arrived.

``REJOIN_SEED=<seed>`` repeats a run (the header and each test's name show the seed); ``REJOIN_HISTORIES=5000`` makes a long one.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from checks import unlike, unreal
from engine import Change
from scenario import Case, play
from shapes import SHAPES

from rejoin.lake.config import LakeConfig, lake_config

HISTORIES_A_TOPOLOGY = 22
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
        )
        for i in range(count)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The seed is REJOIN_SEED, else the one that the header of every test run shows."""
    if "case" in metafunc.fixturenames:
        seed = int(os.environ.get("REJOIN_SEED") or metafunc.config.option.hypothesis_seed)
        made = cases(seed, int(os.environ.get("REJOIN_HISTORIES", "240")))
        metafunc.parametrize("case", made, ids=[f"{case.shape}-REJOIN_SEED={seed}-{case.seed - seed}" for case in made])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """One lake and one Spark session for all topologies. Another lake's session is stopped first: its catalog would stay."""
    from pyspark.sql import SparkSession

    from rejoin.lake.session import session

    if active := SparkSession.getActiveSession():
        active.stop()
    config = lake_config(str(tmp_path_factory.mktemp("lake")))
    spark = session(config)
    yield config, lambda: spark
    spark.stop()


@pytest.mark.slow
def test_after_every_run_the_outputs_are_what_a_second_engine_computes(case: Case, lake: Lake, tmp_path: Any) -> None:
    wrong = play(case, lake[0], tmp_path, lake[1])
    assert not wrong, f"{case}\n" + "\n".join(wrong)


# --- the checks can fail ---------------------------------------------------------------------------------------------

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
