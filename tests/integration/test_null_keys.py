"""Outputs whose key has null parts, through what people ask of them and what holds rows back. By the engine in the process."""

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from rejoin import Topology, debezium
from rejoin.cli import main
from rejoin.declare.expectations import not_null
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.query.typed_keys import key_text, typed
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
PERSONS = "id STRING, house BIGINT, name STRING"
HOUSES = "id BIGINT, street STRING"
SELECT = ["left.id AS person", "right.id AS house", "name", "street"]


def town() -> Topology:
    on = Topology("town")
    persons = on.table("persons", key="id", schema=PERSONS, source=debezium("persons"))
    houses = on.table("houses", key="id", schema=HOUSES, source=debezium("houses"))
    people = persons.full_join(houses, foreign_key="house", select=SELECT).named("people")
    streets = on.table("streets", key="name", schema="name STRING, length BIGINT", source=debezium("streets"))
    people.left_join(streets, foreign_key="street", select=["person", "house", "left.name", "length"]).named("walks")
    return on


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(town()) as made:
        made.run(
            persons="""
              id   | house | name
              a    | 1     | Ann
              b    | NULL  | Bob
              "\\\\N" | 9    | Nil
            """,
            houses="""
              id | street
              1  | Elm
              2  | Oak
            """,
            streets="""
              name | length
              Oak  | 100
            """,
        )
        yield made


def asked(driver: Driver, *words: str) -> Any:
    return CliRunner().invoke(main, [*words, "--lake", str(driver.root / "lake")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (("a", "1"), '{"person": "a", "house": 1, "name": "Ann", "street": "Elm"}'),
        (("b", r"\N"), '{"person": "b", "house": null, "name": "Bob", "street": null}'),
        ((r"\N", "2"), '{"person": null, "house": 2, "name": null, "street": "Oak"}'),
        ((r"\\N", r"\N"), '{"person": "\\\\N", "house": null, "name": "Nil", "street": null}'),
    ],
)
def test_a_null_part_of_a_key_is_typed_as_in_copy(driver: Driver, key: tuple[str, ...], row: str) -> None:
    assert asked(driver, "get", "people", *key).output.strip() == row
    assert asked(driver, "get", "people", key[0], "77").exit_code == 4


def test_in_python_a_null_part_is_none(driver: Driver) -> None:
    config = lake_config(str(driver.root / "lake"))
    query = PointQuery(Ledger(config.ledger, "town"), Refs(config, "town"))
    found = query.get("people", (None, "2"))
    assert found is not None and found["street"] == "Oak"
    assert query.get("people", (r"\N", None)) == {"person": r"\N", "house": None, "name": "Nil", "street": None}
    assert [c["op"] for c in query.history("people", (None, "2"), 5)] == ["I"]


@pytest.mark.parametrize("value", [None, "", "N", r"\N", r"\\N", r"\\\N", r"a\N", 7])
def test_what_is_printed_of_a_key_reads_back(value: object) -> None:
    assert typed([key_text(value)]) == (None if value is None else str(value),)


def test_why_tells_of_rows_without_a_side(driver: Driver) -> None:
    lone = asked(driver, "why", "people", r"\N", "2").output
    assert r"people '\N' 2: there" in lone and "no left row" in lone and "full join houses 2 by house" in lone
    alone = asked(driver, "why", "people", "b", r"\N").output
    assert "left persons b: there" in alone and "full join houses: no right row" in alone
    both = asked(driver, "why", "people", "a", "1").output
    assert "left persons a: there" in both and "full join houses 1 by house: there" in both
    none = asked(driver, "why", "people", "c", "8").output
    assert "people c 8: no row had this key" in none
    above = asked(driver, "why", "walks", r"\N", "2").output
    assert r"left people '\N' 2: there" in above and "left join streets Oak by street: there" in above


def test_rows_above_follow_changes_of_either_side(driver: Driver) -> None:
    changes = driver.run(streets="Oak | 120\nElm | 50")
    assert (
        changes["walks"]
        == """
      op | person | house | length | was
      U  | a      | 1     | 50     | NULL
      U  | NULL   | 2     | 120    | 100
    """
    )
    driver.run(persons="b | 2 | Bob")
    assert (
        driver.table("walks")
        == r"""
      person | house | name | length
      a      | 1     | Ann  | 50
      b      | 2     | Bob  | 120
      "\\N"  | NULL  | Nil  | NULL
    """
    )


# --- rows that are held back -----------------------------------------------------------------------------------------


def kept(driver: Driver, name: str) -> set[tuple[Any, ...]]:
    return {tuple(row[k] for k in ("person", "house")) for row in driver.quarantine(name)}


def test_rows_with_null_parts_are_held_back_and_released() -> None:
    on = town()
    people = next(r for r in on.relations if getattr(r.declaration, "name", None) == "people")
    people.expect(not_null("street"), severity="quarantine", max_share=1.0)
    with Driver(on) as driver:
        driver.run(
            persons="id | house | name\na | 1 | Ann\nb | NULL | Bob", houses="id | street\n1 | Elm\n2 | NULL\n3 | Oak", streets="name\nOak"
        )
        assert {(r["person"], r["house"]) for r in driver.table("people")} == {("a", 1), (None, 3)}
        assert kept(driver, "people") == {("b", None), (None, 2)}
        driver.run(houses="2 | Ash")
        assert {(r["person"], r["house"]) for r in driver.table("people")} == {("a", 1), (None, 3), (None, 2)}
        assert kept(driver, "people") == {("b", None)}
        driver.run(houses="3 | NULL")
        assert ("Oak",) in {(r["street"],) for r in driver.table("people")}, "the last good version stays"
        assert kept(driver, "people") == {("b", None), (None, 3)}
        driver.run(persons="b | 3 | Bob")
        assert kept(driver, "people") == {("b", 3)}
        assert {(r["person"], r["house"]) for r in driver.table("people")} == {("a", 1), (None, 2)}
