"""Rows that an expression of a join has no value for are held back, and the run goes on: joins by time and by the same key."""

from typing import Any

import pytest
from integration.conftest import Sessions

from rejoin import Topology as Declared
from rejoin import debezium
from rejoin.declare.expectations import computable
from rejoin.errors import NotComputable
from rejoin.lake.config import lake_config
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.steps.run.topology import Topology
from rejoin.testing import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
APPLY = RunOptions(fuse=Fuse.APPLY)
NAMES = ("inner", "lefts", "full", "then", "now", "same", "same_full")
BY_DAY = ("full", "then", "same_full")
"""Of those by window or by the same key the two-sided one, which has the rows of the others and more, and of those as of a time one: each step of each
takes Spark seconds."""
BAD = {"inner": {(2, None), (None, 12)}, "lefts": {(2, None), (None, 12)}, "full": {(2, None), (None, 12)}}


def topology(cast: str = "CAST", names: tuple[str, ...] = NAMES, *, hold: bool = True) -> Declared:
    """Some of the outputs. Every side of every join but the tables of versions has an expression that some rows have no value for."""
    on = Declared("sift")
    schema = "id BIGINT, ad STRING, n STRING, at TIMESTAMP"
    seen = ["id", "ad", "at", f"{cast}(n AS BIGINT) AS n"]
    views = on.stream("views", id="id", key="ad", event_time="at", schema=schema, source=debezium("views")).select(seen)
    clicks = on.stream("clicks", id="id", key="ad", event_time="at", schema=schema, source=debezium("clicks")).filter(
        f"coalesce({cast}(n AS BIGINT), 0) > -9"
    )
    a, b = (
        on.table(n, key="id", schema="id BIGINT, v STRING", source=debezium(n)).select(["id", f"{cast}(v AS BIGINT) AS v"]) for n in "ab"
    )
    ads = on.table("ads", key="ad", schema="ad STRING, name STRING", source=debezium("ads"))
    pair = ["left.id AS view", "right.id AS click", "left.n"]
    of = {
        "inner": lambda: views.join(clicks, within="10 seconds", select=pair),
        "lefts": lambda: views.left_join(clicks, within="10 seconds", select=pair),
        "full": lambda: views.full_join(clicks, within="10 seconds", select=pair),
        "then": lambda: views.left_join(ads, as_of="event_time", select=["left.id", "n", "name"]),
        "now": lambda: views.left_join(ads, as_of="run", select=["left.id", "n", "name"]),
        "same": lambda: a.join(b, select=["left.id", "left.v", "right.v AS w"]),
        "same_full": lambda: a.full_join(b, select=["left.id", "left.v", "right.v AS w"]),
    }
    made = [of[name]().named(name) for name in names]
    for output in made if hold else []:
        output.expect(computable(), severity="quarantine", max_share=1.0)
    return on


def stream(*records: tuple[int, str, str, int]) -> str:
    return "id | ad | n | at\n" + "\n".join(f"{i} | {ad} | {n} | 2026-01-01T00:{s // 60:02}:{s % 60:02}Z" for i, ad, n, s in records)


RUNS: list[dict[str, str]] = [
    {
        "ads": "ad | name\na | Ann\nb | Bob",
        "views": stream((1, "a", "1", 0), (2, "a", "bad", 2)),
        "clicks": stream((11, "a", "3", 1)),
        "a": "id | v\n1 | 1\n2 | bad\n3 | 3",
        "b": "id | v\n1 | bad\n2 | 2\n3 | 3\n4 | 4",
    },
    {"clicks": stream((12, "a", "bad", 3), (13, "a", "4", 4)), "views": stream((3, "a", "5", 5))},
    {"views": stream((4, "b", "5", 300)), "clicks": stream((14, "b", "5", 301)), "b": "2 | 22", "ads": "a | Anne"},
    {"views": stream((5, "b", "5", 2), (6, "a", "6", 6)), "clicks": stream((15, "a", "5", 7), (16, "c", "6", 7))},
]


def without_bad(runs: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same as if the rows did not exist. Of tables by one key, a bad row on either side is none on both: 1 and 2."""
    kept = []
    for run in runs:
        tables = {name: [line for line in text.split("\n") if "bad" not in line] for name, text in run.items()}
        tables |= {n: [line for line in tables[n] if line[:3] not in ("1 |", "2 |")] for n in ("a", "b") if n in tables}
        kept.append({name: "\n".join(lines) for name, lines in tables.items() if lines})
    return kept


def together(runs: list[dict[str, str]]) -> dict[str, str]:
    """All of it in one run."""
    lines = {name: [line for run in runs for line in run.get(name, "").split("\n") if line] for name in runs[0]}
    return {name: "\n".join(line for n, line in enumerate(some) if n == 0 or line != some[0]) for name, some in lines.items()}


def rows(driver: Driver, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(v for c, v in row.items() if c != "_hash") for row in driver.table(name)), key=repr)


def aside(driver: Driver, name: str) -> set[tuple[Any, ...]]:
    key = ("view", "click") if name in BAD else ("id",)
    return {tuple(row[k] for k in key) for row in driver.quarantine(name)}


@pytest.mark.parametrize(
    ("engine", "names"),
    [
        pytest.param("auto", BY_DAY, id="auto"),
        pytest.param("auto", NAMES, id="auto, every output", marks=pytest.mark.nightly),
        pytest.param("spark", NAMES, id="spark, every output", marks=pytest.mark.nightly),
    ],
)
def test_the_others_are_as_if_rows_without_value_were_not_there(engine: str, names: tuple[str, ...], sessions: Sessions) -> None:
    held = {**BAD, "then": {(2,)}, "now": {(2,)}, "same": {(1,), (2,)}, "same_full": {(1,), (2,)}}
    expected = {name: held[name] for name in names}
    with Driver(topology(names=names), engine=engine) as driver, Driver(topology(names=names), engine="local") as oracle:
        for tables, clean in zip(RUNS, without_bad(RUNS), strict=True):
            driver.run(APPLY, **tables)
            oracle.run(APPLY, **clean)
            for name in names:
                assert rows(driver, name) == rows(oracle, name), name
        assert {name: aside(driver, name) for name in names} == expected
        driver.run(RunOptions(refresh=Refresh.FULL, fuse=Fuse.APPLY))
        assert {name: aside(driver, name) for name in names} == expected
        assert {name: rows(driver, name) for name in names} == {name: rows(oracle, name) for name in names}
        known = Topology(compile(topology(names=names)), lake_config(str(driver.root / "lake")), str(driver.root))
        # Of joins by anything but a foreign key of the left the fast comparison is the other one again.
        for fast in (False, True) if names == NAMES else (False,):
            assert {d.node: d.total for d in verify(known, lambda: sessions(known), fast=fast) if d.total} == {}
        # An expression that has a value for every row brings all of them back.
        driver.restart(topology("try_cast", names))
        driver.run(APPLY)
        with Driver(topology("try_cast", names), engine=engine) as whole:
            whole.run(**together(RUNS))
            for name in names:
                if name not in ("then", "now"):  # which depend on when a row of the table was there
                    assert rows(driver, name) == rows(whole, name), name
                assert aside(driver, name) == set()


def test_without_that_expectation_the_run_stops_and_says_which() -> None:
    with Driver(topology(hold=False), engine="auto") as driver, pytest.raises(NotComputable, match="cannot be computed for") as error:
        driver.run(**RUNS[0])
    assert (
        "column 'n' of 'views'" in str(error.value) or "column 'v' of 'a'" in str(error.value) or "a filter of 'clicks'" in str(error.value)
    )
    assert "bad" not in str(error.value)
