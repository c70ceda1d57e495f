"""A column keeps its spelling: an edit that changes only the case of a name is refused before anything is changed (issue 35, A2)."""

from pathlib import Path

import pytest

from rejoin import Topology, debezium
from rejoin.errors import SchemaRefused
from rejoin.lake.config import lake_config
from rejoin.operate.ahead import compared
from rejoin.plan.check.compile import compile
from rejoin.testing import Driver

pytestmark = pytest.mark.slow


def shop(column: str = "name", shown: str = "right.name AS Name", *more: str) -> Topology:
    t = Topology("shop")
    schema = "id BIGINT, customer BIGINT"
    orders = t.table("orders", key="id", schema=", ".join([schema, *more]), source=debezium("landing/orders"))
    customers = t.table("customers", key="id", schema=f"id BIGINT, {column} STRING", source=debezium("landing/customers"))
    orders.left_join(customers, foreign_key="customer", select=["left.id", shown]).named("enriched")
    return t


EDITS = {
    "of an output": ([], shop("name", "right.name AS name"), "'name' of 'enriched' is stored as 'Name'"),
    "of a source": ([], shop("NAME", "right.NAME AS Name"), "'NAME' of 'customers' is stored as 'name'"),
    "of a column of an output that was away": (
        [shop("name", "upper(right.name) AS other")],
        shop("name", "right.name AS name"),
        "'name' of 'enriched' is stored as 'Name'",
    ),
    "of a column of a source that was away": (
        [shop("name", "right.name AS Name", "note STRING"), shop()],
        shop("name", "right.name AS Name", "Note STRING"),
        "'Note' of 'orders' is stored as 'note'",
    ),
}


@pytest.mark.parametrize(("before", "edited", "why"), EDITS.values(), ids=list(EDITS))
def test_an_edit_of_the_case_of_a_name_is_refused_and_the_old_file_goes_on(before: list[Topology], edited: Topology, why: str) -> None:
    with Driver(shop()) as driver:
        driver.run(orders="1 | 7\n 2 | 8", customers="7 | Ann")
        last = shop()
        for last in before:
            driver.restart(last)
            driver.run(orders="id\n 3")
        stored = driver.lake.read("enriched").to_arrow().sort_by("id").to_pylist()
        driver.restart(edited)
        outlook = compared(compile(edited), lake_config(str(driver.root / "lake")))
        assert [why in e.what for e in outlook.refused] == [True], "the plan says so, too"
        with pytest.raises(SchemaRefused, match=why):
            driver.run(orders="id | customer\n 1 | 8")
        assert driver.lake.read("enriched").to_arrow().sort_by("id").to_pylist() == stored
        assert driver.lake.sql("SELECT count(*) AS n FROM enriched").to_arrow()["n"].to_pylist() == [len(stored)]
        driver.restart(last)
        assert driver.run(customers="7 | Anne")["customers"] == "op | id | name | was\n U | 7 | Anne | Ann"


def test_a_name_may_be_written_in_any_case_wherever_it_means_a_column(tmp_path: Path) -> None:
    from rejoin import not_null, records, unique

    t = Topology("t")
    schema = "Id BIGINT, K STRING, U STRING, At TIMESTAMP"
    options = {"id": "ID", "key": ["k"], "event_time": "AT", "schema": schema}
    left, right = (t.stream(name, source=records(f"landing/{name}"), **options) for name in ("lefts", "rights"))
    joined = left.left_join(right, on=["k", "u"], clock=["U"], within="1 minute", select=["left.ID", "right.id AS Other"])
    joined.named("pairs").expect(not_null("iD"), unique("ID", "OTHER"))
    plan = compile(t)
    window = plan.node("pairs").match
    assert (window.left_clock, window.right_clock) == (("U",), ("U",))  # type: ignore[union-attr]
    with Driver(t) as driver:
        when = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z", "2026-01-01T01:00:00Z"]
        changes = driver.run(lefts=f"1 | a | x | {when[0]}\n 2 | a | y | {when[2]}", rights=f"7 | a | x | {when[1]}")
        assert changes["pairs"] == "op | ID | Other\n I | 1 | 7"
