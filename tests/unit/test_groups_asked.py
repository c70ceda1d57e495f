"""Groups through what people ask of outputs: edits, rows held back, joins with a group of null, where a row comes from, what stops a run."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from limited import limited
from sparkless import no_spark

from rejoin import Topology, debezium
from rejoin.cli import main
from rejoin.declare.expectations import condition
from rejoin.errors import EngineRefused, GroupTooLarge, SchemaRefused
from rejoin.lake.config import lake_config
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.steps.run.topology import Topology as Opened
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
COUNTED = {"n": "count(*)", "total": "sum(amount)"}


def shop(*, most: int | None = 2, **aggregates: str) -> Topology:
    on = Topology("shop")
    orders = on.table("orders", key="id", schema="id BIGINT, customer BIGINT, amount INT, note STRING", source=debezium("orders"))
    customers = on.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("customers"))
    groups = orders.group_by("customer").aggregate(**(aggregates or COUNTED)).named("groups")
    if most is not None:
        groups.expect(condition(f"n <= {most}"), severity="quarantine", max_share=1.0)
    customers.full_join(groups, select=["left.id", "name", "n"]).named("both")
    customers.right_join(groups, foreign_key="id", select=["left.id", "name", "right.customer", "n"]).named("rights")
    groups.group_by("n").aggregate(groups="count(*)").named("sizes")
    return on


ORDERS = """
  id | customer | amount
  1  | 1        | 10
  2  | 1        | 20
  3  | NULL     | 5
  4  | 2        | 7
"""


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(shop()) as made:
        made.run(orders=ORDERS, customers="id | name\n1 | Ann\n7 | Zed")
        yield made


def differing(driver: Driver, on: Topology) -> dict[str, int]:
    """The outputs that are not what their SQL says, as `rejoin verify` and `rejoin verify --fast` see it."""
    opened = Opened(compile(on), lake_config(str(driver.root / "lake")), str(driver.root))
    return {d.node: d.total for fast in (False, True) for d in verify(opened, no_spark, fast=fast) if d.total}


def asked(driver: Driver, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--lake", str(driver.root / "lake")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_group_of_null_is_joined_as_a_right_row_and_followed(driver: Driver) -> None:
    assert (
        driver.table("rights")
        == """
      id   | name | customer | n
      1    | Ann  | 1        | 2
      NULL | NULL | 2        | 1
      NULL | NULL | NULL     | 1
    """
    )
    changes = driver.run(orders="id | customer | amount\n5 | NULL | 1", customers="id | name\n2 | Bob")
    assert (
        changes["rights"]
        == """
      op | id   | name | customer | n
      U  | NULL | NULL | NULL     | 2
      D  | NULL |      | 2        |
      I  | 2    | Bob  | 2        | 1
    """
    )
    assert changes["both"] == "op | id | name | n\nU | 2 | Bob | 1\nU | NULL | NULL | 2"
    assert driver.run(orders="- 3\n- 5")["both"] == "op | id\nD | NULL"
    assert not differing(driver, shop())


def test_a_group_that_breaks_an_expectation_is_held_back_and_comes_back(driver: Driver) -> None:
    changes = driver.run(orders="id | customer | amount\n5 | 1 | 1\n6 | 1 | 1\n7 | 2 | 1")
    assert changes["groups"] == "op | customer | n | total\nU | 2 | 2 | 8"
    assert changes["sizes"] == "op | n | groups\nU | 1 | 1\nU | 2 | 2"
    assert [row["customer"] for row in driver.quarantine("groups")] == [1]
    assert not differing(driver, shop())
    driver.restart(shop(most=3))
    assert [row["customer"] for row in driver.quarantine("groups")] == [1]
    assert driver.run(orders="- 6")["groups"] == "op | customer | n | total\nU | 1 | 3 | 31"
    assert not differing(driver, shop(most=3))


def test_an_edit_computes_all_groups_anew_from_values_of_other_types(driver: Driver) -> None:
    edited = {"n": "count(note)", "total": "sum(amount)", "last": "max(note)"}
    driver.restart(shop(most=None, **edited))
    changes = driver.run(orders="id | customer | amount | note\n4 | 2 | 7 | x")
    assert (
        changes["groups"]
        == """
      op | customer | n | total | last
      U  | 1        | 0 | 30    | NULL
      U  | 2        | 1 | 7     | x
      U  | NULL     | 0 | 5     | NULL
    """
    )
    assert (
        driver.run(orders="id | customer | amount | note\n2 | 2 | 20 | y")["groups"]
        == """
      op | customer | n | total | last
      U  | 1        | 0 | 10    | NULL
      U  | 2        | 2 | 27    | y
    """
    )
    driver.restart(shop(most=None))
    driver.run(orders="- 1")
    assert driver.table("groups") == "customer | n | total\n2 | 2 | 27\nNULL | 1 | 5"
    assert not differing(driver, shop(most=None))


def test_why_names_the_members_that_have_changed_a_group_last(driver: Driver) -> None:
    driver.run(orders="id | customer | amount\n2 | 2 | 20")
    found: dict[str, Any] = json.loads(asked(driver, "why", "groups", "1", "--json"))
    assert (found["state"], found["members"]["count"], found["left"]) == ("there", 1, None)
    newest = found["members"]["newest"]
    assert [(m["run"], m["left"], m["row"]["key"]) for m in newest] == [(2, True, {"id": 2}), (1, False, {"id": 1})]
    text = asked(driver, "why", "groups", "1")
    assert "a group of 1 member(s), the newest changes first" in text and "left in run 2  <- changed it" in text
    assert "member groups" in asked(driver, "why", "sizes", "2")
    assert "no row of orders belongs to this group" in asked(driver, "why", "groups", "99")


def nested(select: list[str], order_by: str) -> Topology:
    on = Topology("shop")
    orders = on.table("orders", key="id", schema="id BIGINT, customer BIGINT, amount INT, note STRING", source=debezium("orders"))
    customers = on.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("customers"))
    customers.nest(orders, "customer", name="orders", select=select, order_by=order_by).named("documents")
    return on


def test_documents_get_more_fields_behind_those_they_have_and_others_under_another_name() -> None:
    with Driver(nested(["id", "amount"], "amount")) as driver:
        driver.run(orders=ORDERS, customers="id | name\n1 | Ann\n7 | Zed")
        assert (
            driver.table("documents")
            == """
          id | name | orders
          1  | Ann  | [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]
          7  | Zed  | []
        """
        )
        more = nested(["id", "amount", "note"], "amount DESC")
        driver.restart(more)
        assert (
            driver.run(orders="id | customer | amount | note\n2 | 1 | 20 | x")["documents"]
            == """
          op | id | name | orders
          U  | 1  | Ann  | [{"id": 2, "amount": 20, "note": "x"}, {"id": 1, "amount": 10, "note": null}]
        """
        )
        assert not differing(driver, more)
        assert asked(driver, "why", "documents", "1").count("member orders") == 2
        driver.restart(nested(["amount", "id"], "amount"))
        with pytest.raises(SchemaRefused, match=r"column orders of table .* cannot become array<struct<amount: int, id: bigint>>"):
            driver.run(orders="- 2")


def test_arrays_before_a_run_are_made_of_the_members_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, read_values=0)
    on = shop(most=None, n="count(*)", ids="collect(id ORDER BY amount DESC)")
    with Driver(on) as driver:
        driver.run(orders=ORDERS, customers="id | name\n1 | Ann")
        changes = driver.run(orders="id | customer | amount\n1 | 2 | 10\n2 | 1 | 30\n3 | 1 | 50\n8 | 8 | 1")
        assert (
            changes["groups"]
            == """
          op | customer | n | was | ids    | was
          U  | 1        | 2 | 2   | [3, 2] | [2, 1]
          U  | 2        | 2 | 1   | [1, 4] | [4]
          I  | 8        | 1 |     | [8]    |
          D  | NULL     |   | 1   |        | [3]
        """
        )
        ledger = Opened(compile(on), lake_config(str(driver.root / "lake")), str(driver.root)).ledger
        made = ledger.steps(ledger.head())["resolve.groups"].detail
        assert made["old_rows"] == "made"
        assert [read["rows"] for read in made["reads"] if read["table"] == "groups"] == [3]
        assert not differing(driver, on)


def test_an_array_longer_than_max_members_stops_the_run_before_it_is_made() -> None:
    def documents(most: int, **aggregates: str) -> Topology:
        on = Topology("shop")
        orders = on.table("orders", key="id", schema="id BIGINT, customer BIGINT, amount INT, note STRING", source=debezium("orders"))
        customers = on.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("customers"))
        groups = orders.group_by("customer").aggregate(**aggregates)
        customers.left_join(groups, select=["left.id", *aggregates]).named("documents", max_members=most)
        return on

    three = "id | customer | amount | note\n1 | 1 | 10 | x\n2 | 1 | 20 | y\n3 | 1 | 30 | x"
    with Driver(documents(2, every="collect(id)")) as driver:
        with pytest.raises(GroupTooLarge, match=r"column 'every' of 'documents__[0-9a-f]{8}' would have an array of 3 elements in run 1"):
            driver.run(orders=three, customers="id | name\n1 | Ann")
        driver.restart(documents(2, every="collect(id LIMIT 2)", some="collect(id) FILTER (WHERE note = 'x')"))
        driver.run()
        with pytest.raises(
            GroupTooLarge, match=r"column 'some' of .* would have an array of 3 elements in run 3; nothing was committed"
        ) as told:
            driver.run(orders="id | customer | note\n4 | 1 | x")
        assert "at most 2 (max_members)" in str(told.value) and "LIMIT" in str(told.value)
        driver.run(orders="id | customer | note\n3 | 1 | y")
        assert driver.table("documents") == "id | every | some\n1 | [1, 2] | [1, 4]"
        driver.restart(documents(3, every="collect(id LIMIT 2)", some="collect(id) FILTER (WHERE note = 'x')"))
        assert driver.run(orders="id | customer | note\n2 | 1 | x")["documents"] == "op | id | every | some\nU | 1 | [1, 2] | [1, 2, 4]"


def test_a_sum_that_does_not_fit_and_a_member_without_a_value_stop_the_run() -> None:
    with Driver(shop(most=None, n="sum(CAST(note AS BIGINT))")) as driver:
        driver.run(orders="id | customer | note\n1 | 1 | 9223372036854775807", customers="id\n1")
        for wrong in ("1", "x"):
            with pytest.raises(EngineRefused, match="a value cannot be computed here"):
                driver.run(orders=f"id | customer | note\n2 | 1 | {wrong}")
        driver.run(orders="id | customer | note\n2 | 1 | -7")
        assert driver.table("groups") == "customer | n\n1 | 9223372036854775800"
