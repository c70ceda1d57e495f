"""Which columns may be nested, and what may not be done with them."""

import pytest

from rejoin import Topology, changes, debezium, iceberg, snapshot
from rejoin.errors import TopologyError
from rejoin.plan.change.compatibility import fits
from rejoin.plan.check.compile import compile

SCHEMA = "id BIGINT, tags ARRAY<STRING>, place STRUCT<city: STRING, at: STRUCT<day: DATE>>, m MAP<STRING, INT>"


def mistakes(key: str = "id", select: str = "id", foreign_key: str = "id", schema: str = SCHEMA) -> str:
    t = Topology("t")
    left = t.table("a", key=key, schema=schema, source=debezium("a"))
    right = t.table("b", key="id", schema="id BIGINT, name STRING", source=debezium("b"))
    left.left_join(right, foreign_key, [f"left.{select}" if select.isidentifier() else select]).named("out")
    with pytest.raises(TopologyError) as error:
        compile(t)
    return str(error.value)


def test_a_key_and_a_foreign_key_hold_single_values() -> None:
    assert "key: column 'tags' is ARRAY<STRING>, and a key is made of single values" in mistakes(key="tags")
    assert "ARRAY<STRING>" in mistakes(foreign_key="tags")


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("left.m = left.m AS x", "= cannot compare MAP<STRING, INT>: maps have no order; compare values of it"),
        ("left.tags = 'a' AS x", "= cannot compare ARRAY<STRING> with STRING; write a CAST"),
        ("upper(left.tags) AS x", "argument 1 of upper() is ARRAY<STRING>; expected a single value"),
        ("left.tags + 1 AS x", "ARRAY<STRING>"),
        ("CAST(left.tags AS INT) AS x", "ARRAY<STRING> cannot be cast to INT"),
    ],
)
def test_expressions_that_make_no_sense_are_named(select: str, said: str) -> None:
    assert said in mistakes(select=select)


def test_a_type_that_is_not_allowed_says_what_is() -> None:
    said = mistakes(schema="id BIGINT, m MAP<INT, STRING>")
    assert "type MAP<INT, STRING> is not supported; it may be 8 deep, of named fields, maps by STRING" in said


def test_what_is_made_of_fields_has_single_values() -> None:
    t = Topology("t")
    t.table("a", key="id", schema=SCHEMA, source=changes("a", order_by="id")).select(["*"]).named("out")
    with pytest.raises(TopologyError, match="column 'tags' is ARRAY<STRING>, and what is made of fields"):
        compile(t)


def test_what_is_read_from_tables_has_single_values() -> None:
    t = Topology("t")
    t.table("a", key="id", schema=SCHEMA, source=snapshot(iceberg("bronze.a"))).select(["*"]).named("out")
    with pytest.raises(TopologyError, match="column 'tags' is ARRAY<STRING>, which is not read from tables"):
        compile(t)


def test_groups_have_single_values_as_keys_and_aggregate_them() -> None:
    t = Topology("t")
    table = t.table("a", key="id", schema=SCHEMA, source=debezium("a"))
    table.group_by("tags").aggregate(n="count(*)").named("by_tags")
    table.group_by("id").aggregate(x="max(tags)", y="min_by(id, place)", n="count(m)").named("by_id")
    with pytest.raises(TopologyError) as error:
        compile(t)
    assert "a group key is a single value" in str(error.value) and "max() does not take ARRAY<STRING>" in str(error.value)
    assert "min_by() does not take BIGINT and STRUCT" in str(error.value) and "count" not in str(error.value)


FITTING = [
    "ARRAY<INT> ARRAY<BIGINT>",
    "STRUCT<a: INT>|STRUCT<a: BIGINT, b: STRING>",
    "MAP<STRING, STRUCT<a: INT>>|MAP<STRING, STRUCT<a: INT, b: INT>>",
]
OTHER = ["STRUCT<a: INT, b: INT>|STRUCT<a: INT>", "STRUCT<a: INT>|STRUCT<b: INT, a: INT>", "ARRAY<BIGINT>|ARRAY<INT>", "ARRAY<INT>|INT"]


@pytest.mark.parametrize(("pair", "good"), [*((p, True) for p in FITTING), *((p, False) for p in OTHER)])
def test_a_nested_type_becomes_a_wider_one_by_fields_behind_its_own(pair: str, good: bool) -> None:
    was, now = pair.replace("> ", ">|").split("|")
    assert fits(was, now) is good
