"""Groups whose totals are stored: they follow their members, whatever else runs do, and read no others."""

from collections.abc import Iterator
from typing import Any

import pytest
from limited import limited
from sparkless import no_spark

from rejoin import Topology, debezium
from rejoin.declare.expectations import condition
from rejoin.lake.config import lake_config
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.steps.run.topology import Topology as Opened
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
TOTALS = {"n": "count(*)", "some": "count(x)", "total": "sum(x)", "mean": "avg(x)", "paid": "sum(p) FILTER (WHERE x > 1)"}
FIRST = """
  id | g    | x    | p
  1  | a    | 10   | 1.50
  2  | a    | NULL | 2
  3  | a    | 1    | 9
  4  | b    | 7    | 3
  5  | NULL | 5    | 0.25
  6  | NULL | 6    | 0.25
"""


def topology(*, most: int | None = None, **aggregates: str) -> Topology:
    on = Topology("shop")
    members = on.table("members", key="id", schema="id BIGINT, g STRING, x BIGINT, p DECIMAL(6,2)", source=debezium("members"))
    groups = members.group_by("g").aggregate(**(aggregates or TOTALS)).named("groups")
    if most is not None:
        groups.expect(condition(f"n <= {most}"), severity="quarantine", max_share=1.0)
    return on


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    limited(monkeypatch, large_group=1)
    with Driver(topology()) as made:
        made.run(members=FIRST)
        yield made


def opened(driver: Driver, on: Topology) -> Opened:
    return Opened(compile(on), lake_config(str(driver.root / "lake")), str(driver.root))


def told(driver: Driver, on: Topology | None = None) -> dict[str, Any]:
    """What the newest run says of how it computed the groups."""
    ledger = opened(driver, on or topology()).ledger
    return dict(ledger.steps(ledger.head())["resolve.groups"].detail)


def right(driver: Driver, on: Topology | None = None) -> bool:
    """Whether the groups are what their SQL says."""
    return not [d for d in verify(opened(driver, on or topology()), no_spark, fast=False) if d.total]


CASES: dict[str, tuple[list[str], str]] = {
    "one comes": (["I 7 a 3 1"], "4 | 3 | 14 | 4.666666666666667 | 2.50"),
    "one goes, and with it the last that a filter lets through": (["D 1"], "2 | 1 | 1 | 1.0 | NULL"),
    "the last value goes": (["D 1", "D 3"], "1 | 0 | NULL | NULL | NULL"),
    "a value comes back": (["D 1", "D 3", "I 3 a 0 1"], "2 | 1 | 0 | 0.0 | NULL"),
    "the last member goes": (["D 1", "D 2", "D 3"], ""),
    "a group comes back": (["D 1", "D 2, D 3", "I 3 a 4 1"], "1 | 1 | 4 | 4.0 | 1.00"),
    "one has other values": (["I 1 a 11 7"], "3 | 2 | 12 | 6.0 | 7.00"),
    "one has the same values": (["I 1 a 11 7", "I 1 a 10 1.5"], "3 | 2 | 11 | 5.5 | 1.50"),
    "one moves to a small group": (["I 1 b 10 1"], "2 | 1 | 1 | 1.0 | NULL"),
    "one moves from a small group": (["I 4 a 2 1"], "4 | 3 | 13 | 4.333333333333333 | 2.50"),
    "one moves to the group of null": (["I 1 NULL 10 1.50"], "2 | 1 | 1 | 1.0 | NULL"),
    "one goes and comes back": (["D 1", "I 1 a 10 1.50"], "3 | 2 | 11 | 5.5 | 1.50"),
    "two come and one goes": (["I 7 a 1 1, I 8 a NULL 1, D 1"], "4 | 2 | 2 | 1.0 | NULL"),
}
"""What happens to a group in three runs, and what it is then: see ``FIRST``."""


def test_totals_follow_members(driver: Driver) -> None:
    def numbered(text: str, case: int) -> str:
        """A row of a case: its members have numbers, and its groups a name, of their own."""
        number, *rest = text.replace("|", " ").split()
        g = f" | {rest[0]}{case if rest[0] != 'NULL' else ''}" if rest else ""
        return f"{case * 100 + int(number)}{g}" + "".join(f" | {value}" for value in rest[1:])

    cases = list(enumerate(CASES.values(), start=1))
    first = [numbered(line, case) for case, _ in cases for line in FIRST.strip().splitlines()[1:4]]
    driver.run(members="\n".join(["id | g | x | p", *first, *(f"{case * 100 + 4} | b{case} | 7 | 3" for case, _ in cases)]))
    for at in range(3):
        events = [
            (case, event.split(maxsplit=1)) for case, (steps, _) in cases for event in (steps[at].split(", ") if at < len(steps) else [])
        ]
        given = [numbered(row, case) if op == "I" else f"- {numbered(row, case)}" for case, (op, row) in events]
        driver.run(members="\n".join(["id | g | x | p", *given]))
        assert told(driver)["members"] == "followed"
        assert right(driver)
    table = driver.table("groups")
    found = {row["g"]: row for row in table}
    for (case, (_, expected)), name in zip(cases, CASES, strict=True):
        row = found.get(f"a{case}")
        assert ("" if row is None else " | ".join(str(row[c]) if row[c] is not None else "NULL" for c in TOTALS)) == expected, name


def test_other_members_of_a_large_group_are_not_read(driver: Driver) -> None:
    driver.run(members="id | g | x | p\n" + "\n".join(f"{i} | a | {i} | 1" for i in range(100, 200)))
    driver.run(members="id | g | x | p\n150 | a | NULL | 1\n7 | c | 1 | 1")
    rows = [read["rows"] for read in told(driver)["reads"] if "members" in read["table"]]
    assert sorted(rows) == [1, 1, 2, 2], "of 103: the member before, the member of another group; two versions of totals, what was sent"
    assert right(driver)


def test_an_aggregate_without_an_inverse_has_all_members_read(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, large_group=1)
    on = topology(**TOTALS, largest="max(x)")
    with Driver(on) as driver:
        driver.run(members=FIRST)
        driver.run(members="- 1")
        found = told(driver, on)
        assert (found["members"], found["members_why"]) == ("read", "only all members tell largest (max)")


def test_a_run_that_computes_all_groups_forgets_those_that_are_small_now(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, large_group=2)
    driver.run(RunOptions(refresh=Refresh.FULL), members="- 5")
    driver.run(members="- 6")
    assert told(driver)["members"] == "read"
    driver.run(members="- 3")
    assert told(driver)["members"] == "followed"
    driver.run(RunOptions(refresh=Refresh.FULL), members="- 2")
    driver.run(members="- 1")
    assert told(driver)["members"] == "read"
    assert driver.table("groups") == "g | n | some | total | mean | paid\nb | 1 | 1 | 7 | 7.0 | 3.00"


def test_an_edit_computes_totals_anew(driver: Driver) -> None:
    edited = {"n": "count(*)", "total": "sum(x + 1)"}
    driver.restart(topology(**edited))
    driver.run(members="- 3")
    driver.run(members="- 2")
    assert driver.table("groups") == "g | n | total\na | 1 | 11\nb | 1 | 8\nNULL | 2 | 13"
    assert told(driver, topology(**edited))["members"] == "followed"
    driver.restart(topology())
    driver.run(members="id | g | x | p\n3 | a | 1 | 1")
    driver.run(members="- 1")
    assert (
        driver.table("groups")
        == "g | n | some | total | mean | paid\na | 1 | 1 | 1 | 1.0 | NULL\nb | 1 | 1 | 7 | 7.0 | 3.00\nNULL | 2 | 2 | 11 | 5.5 | 0.50"
    )
    assert right(driver)


def test_a_group_that_is_held_back_goes_on_being_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, large_group=1)
    with Driver(topology(most=3)) as driver:
        driver.run(members=FIRST)
        for number in (7, 8):
            driver.run(members=f"id | g | x | p\n{number} | a | 2 | 1")
        assert [row["g"] for row in driver.quarantine("groups")] == ["a"]
        driver.restart(topology(most=4))
        driver.run()
        assert [row["g"] for row in driver.quarantine("groups")] == ["a"]
        assert (
            driver.run(members="- 1")["groups"] == "op | g | n | some | total | mean | paid\nU | a | 4 | 3 | 5 | 1.6666666666666667 | 2.00"
        )
        assert told(driver, topology(most=4))["members"] == "followed"
        assert right(driver, topology(most=4))


def test_totals_of_an_output_that_a_run_has_left_as_it_was_are_right_afterwards(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, fuse_rows=1)
    driver.run(RunOptions(fuse=Fuse.SKIP), members="- 1\n- 4\n- 5")
    assert next(row for row in driver.table("groups") if row["g"] == "a")["n"] == 3
    driver.run(RunOptions(fuse=Fuse.APPLY), members="- 6")
    driver.run(RunOptions(fuse=Fuse.APPLY), members="- 3")
    assert driver.table("groups") == "g | n | some | total | mean | paid\na | 1 | 0 | NULL | NULL | NULL"
    assert told(driver)["members"] == "followed"
