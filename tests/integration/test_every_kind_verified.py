"""Outputs whose key has null parts, and joins of every kind: as Spark reads and writes them, and as both engines compare them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from integration.by_hand import edit
from integration.conftest import Sessions
from limited import limited

from rejoin import Topology as Declared
from rejoin import debezium
from rejoin.declare.expectations import computable
from rejoin.declare.topology import Relation
from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.operate.verify.comparison import Difference
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.steps.run.topology import Topology
from rejoin.testing import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PEOPLE = ["left.id AS person", "right.id AS house", "name"]


def town(street: str = "street") -> tuple[Declared, Relation]:
    on = Declared("town")
    persons = on.table("persons", key="id", schema="id BIGINT, house BIGINT, name STRING", source=debezium("persons"))
    houses = on.table("houses", key="id", schema="id BIGINT, street STRING", source=debezium("houses"))
    streets = on.table("streets", key="name", schema="name STRING, length BIGINT", source=debezium("streets"))
    people = persons.full_join(houses, foreign_key="house", select=[*PEOPLE, f"{street} AS street"]).named("people")
    people.left_join(streets, foreign_key="street", select=["person", "house", "left.name", "length"]).named("walks")
    return on, people


ENGINES = tuple(EngineChoice)


def differences(driver: Driver, on: Declared, sessions: Sessions, *, engine: EngineChoice, fast: bool) -> dict[str, Difference]:
    topology = Topology(compile(on), replace(lake_config(str(driver.root / "lake")), engine=engine), str(driver.root))
    return {d.node: d for d in verify(topology, lambda: sessions(topology), fast=fast)}


HISTORY: list[dict[str, str]] = [
    {
        "persons": "id | house | name\n1 | 1 | Ann\n2 | NULL | Bob\n3 | 9 | Cid",
        "houses": "id | street\n1 | Elm\n2 | Oak\n3 | Oak",
        "streets": "name | length\nOak | 7",
    },
    {"persons": "2 | 2 | Bob\n1 | NULL | Ann", "houses": "3 | Elm\n9 | Ash", "streets": "Elm | 8\nOak | 9"},
    {"persons": "- 2\n4 | 3 | Dan", "houses": "- 9\n- 1", "streets": "- Oak"},
]


def rows(driver: Driver, name: str) -> set[tuple[Any, ...]]:
    return {tuple(v for c, v in row.items() if c != "_hash") for row in driver.table(name)}


@pytest.mark.nightly
def test_by_spark_alone_as_in_this_process(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups are scans, changes are deleted by Spark, tables are sorted by it."""
    on, _ = town()
    with Driver(on) as here, Driver(on, engine="spark") as there:
        for number, tables in enumerate(HISTORY):
            here.run(**tables)
            with monkeypatch.context() as small:
                limited(small, small_rows=0, sparse=0, fetched_bytes=0)
                there.run(**tables)
                if number == 1:
                    limited(small, pruned_rows=0)
            assert {n: rows(here, n) for n in ("people", "walks")} == {n: rows(there, n) for n in ("people", "walks")}
        for engine, fast in product(ENGINES, (False, True)):
            found = differences(there, on, sessions, engine=engine, fast=fast)
            assert {n: d.total for n, d in found.items()} == {"people": 0, "walks": 0}


@pytest.mark.nightly
def test_rows_that_cannot_be_computed_are_held_back_whichever_side_lacks(sessions: Sessions) -> None:
    on, people = town("CAST(CAST(street AS BIGINT) AS STRING)")
    people.expect(computable(), severity="quarantine", max_share=1.0)

    def kept() -> set[tuple[Any, ...]]:
        return {(row["person"], row["house"]) for row in driver.quarantine("people")}

    with Driver(on, engine="auto") as driver:
        driver.run(persons="id | house | name\n1 | 1 | Ann\n2 | NULL | Bob", houses="id | street\n1 | 11\n2 | Oak", streets="name\n11")
        assert kept() == {(None, 2)}
        assert rows(driver, "people") == {(1, 1, "Ann", "11"), (2, None, "Bob", None)}
        driver.run(houses="1 | Elm\n2 | 22")
        assert kept() == {(1, 1)}
        assert rows(driver, "people") == {(1, 1, "Ann", "11"), (2, None, "Bob", None), (None, 2, None, "22")}
        for engine, fast in product((EngineChoice.AUTO, EngineChoice.SPARK), (False, True)):
            found = differences(driver, on, sessions, engine=engine, fast=fast)
            assert {n: d.total for n, d in found.items()} == {"people": 0, "walks": 0}


def kinds() -> Declared:
    on = Declared("kinds")
    schema = "id BIGINT, k BIGINT, at TIMESTAMP"
    views = on.stream("views", id="id", key="k", event_time="at", schema=schema, source=debezium("views"), lateness="5 seconds")
    clicks = on.stream("clicks", id="id", key="k", event_time="at", schema=schema, source=debezium("clicks"))
    a = on.table("a", key="id", schema="id BIGINT, b BIGINT, v STRING", source=debezium("a"))
    b = on.table("b", key="id", schema="id BIGINT, w STRING", source=debezium("b"))
    ids = ["left.id AS view", "right.id AS click", "left.k"]
    views.join(clicks, within="10 seconds", select=ids).named("window_inner")
    views.left_join(clicks, within="10 seconds", select=ids).named("window_left")
    views.full_join(clicks, before="3 seconds", after="10 seconds", select=ids).named("window_full")
    views.full_join(clicks, within="10 seconds", unmatched="at_once", select=ids).named("window_at_once")
    for kind in ("join", "left_join", "right_join", "full_join"):
        getattr(a, kind)(b, select=["left.id", "v", "w"]).named(f"same_{kind}")
    for kind in ("right_join", "full_join"):
        getattr(a, kind)(b, foreign_key="b", select=["left.id AS a", "right.id AS b", "v", "w"]).named(f"foreign_{kind}")
    views.left_join(b, foreign_key="k", as_of="event_time", select=["left.id", "w"]).named("as_of_time")
    seen = views.left_join(b, foreign_key="k", as_of="arrival", select=["left.id", "left.k", "w"]).named("as_of_arrival")
    seen.left_join(a, foreign_key="k", select=["left.id", "left.w", "v"]).named("on_arrival")
    return on


@pytest.fixture(scope="module")
def every_kind() -> Iterator[tuple[Driver, Declared]]:
    on = kinds()
    with Driver(on) as driver:
        at = "2024-01-01T00:00:{:02}Z".format
        driver.run(
            views="id | k | at\n" + "\n".join(f"{i} | {i % 3} | {at(4 * i)}" for i in range(8)) + f"\n90 | NULL | {at(3)}",
            clicks="id | k | at\n" + "\n".join(f"{i} | {i % 4} | {at(5 * i + 2)}" for i in range(8)) + f"\n91 | NULL | {at(2)}",
            a="id | b | v\n1 | 1 | x\n2 | 9 | y\n3 | NULL | z",
            b="id | w\n0 | o\n1 | p\n2 | q",
        )
        driver.run(views=f"9 | 1 | {at(50)}", a="2 | 2 | y\n- 1", b="1 | changed\n- 2\n3 | r")
        yield driver, on


@pytest.mark.parametrize(
    ("engine", "fast"),
    [
        (EngineChoice.LOCAL, False),
        (EngineChoice.LOCAL, True),
        pytest.param(EngineChoice.SPARK, False, marks=pytest.mark.nightly),
        pytest.param(EngineChoice.SPARK, True, marks=pytest.mark.nightly),
    ],
)
def test_what_is_computed_from_the_defining_sql_is_what_runs_made_of_every_kind_of_join(
    every_kind: tuple[Driver, Declared], sessions: Sessions, engine: EngineChoice, fast: bool
) -> None:
    driver, on = every_kind
    found = differences(driver, on, sessions, engine=engine, fast=fast)
    assert {d.engine for d in found.values()} == {str(engine)}
    assert {n: d.total for n, d in found.items() if d.total} == {}
    assert all(d.rows for d in found.values())
    assert [n for n, d in found.items() if not d.compared] == ["as_of_arrival"]
    assert not found["on_arrival"].by_arrival, "what is made of such rows is compared"


@pytest.mark.parametrize("engine", [EngineChoice.LOCAL, pytest.param(EngineChoice.SPARK, marks=pytest.mark.nightly)])
def test_a_row_with_null_parts_is_told_from_the_others(sessions: Sessions, engine: EngineChoice) -> None:
    """One is damaged, one is gone, and one has another key."""

    def wrong(stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
        (bob,) = (row for row in stored if row["person"] == 2)
        (third,) = (row for row in stored if row["house"] == 3)
        rest = [row for row in stored if row is not bob and row is not third and row["house"] != 2]
        return [*rest, {**bob, "name": "Bert"}, {**third, "house": 4}]

    on, _ = town()
    with Driver(on) as driver:
        driver.run(**HISTORY[0])
        topology = Topology(compile(on), lake_config(str(driver.root / "lake")), str(driver.root))
        edit(topology, "people", wrong)
        found = differences(driver, on, sessions, engine=engine, fast=False)["people"]
    assert (found.rows, found.missing, found.extra, found.different) == (4, 2, 1, 1)


@pytest.mark.nightly
def test_both_engines_find_the_same_damage_in_every_kind_of_join(sessions: Sessions) -> None:
    on = kinds()
    with Driver(on) as driver:
        at = "2024-01-01T00:00:{:02}Z".format
        driver.run(
            views="id | k | at\n" + "\n".join(f"{i} | {i % 3} | {at(4 * i)}" for i in range(8)),
            clicks="id | k | at\n" + "\n".join(f"{i} | {i % 4} | {at(5 * i + 2)}" for i in range(8)),
            a="id | b | v\n1 | 1 | x\n2 | 9 | y\n3 | NULL | z",
            b="id | w\n0 | o\n1 | p\n2 | q",
        )
        topology = Topology(compile(on), lake_config(str(driver.root / "lake")), str(driver.root))
        for node in topology.plan.nodes:
            edit(
                topology,
                node.name,
                lambda rows: [{**row, "w" if "w" in row else "k": None} if i == 1 else row for i, row in enumerate(rows) if i],
            )
        here, there = (differences(driver, on, sessions, engine=e, fast=False) for e in (EngineChoice.LOCAL, EngineChoice.SPARK))
        assert {n: replace(d, engine="", engine_why="") for n, d in here.items()} == {
            n: replace(d, engine="", engine_why="") for n, d in there.items()
        }
        assert all(d.total for d in here.values() if d.compared)
