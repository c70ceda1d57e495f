"""Which columns may be nested, and what may not be done with them."""

import pytest

from rejoin import Topology, between, changes, condition, debezium, feed, iceberg, in_set, matches, not_empty, snapshot, unique
from rejoin.declare.expectations import Expected
from rejoin.errors import TopologyError
from rejoin.plan.change.compatibility import fits
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.sql.portable import types_of, why_not
from rejoin.plan.sql.unchecked import unchecked

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
        ("left.place.town AS x", "STRUCT<city: STRING, at: STRUCT<day: DATE>> has no field 'town'"),
        ("left.place.city.x AS x", "STRING has no field 'x'"),
        ("left.plaza.city AS x", "unknown column 'plaza' of a; did you mean 'place'?"),
        ("plaza.plaza AS x", "plaza.plaza: the only qualifiers are left. and right.; did you mean 'place'?"),
        ("plaza.city AS x", "plaza.city: the only qualifiers are left. and right.; did you mean 'place'?"),
        ("left.id[0] AS x", "BIGINT has no elements; [...] takes one of an ARRAY, or the value of a key of a MAP"),
        ("size(left.place) AS x", "size() takes ARRAY<...> or MAP<...>, not STRUCT<city: STRING, at: STRUCT<day: DATE>>"),
        ("size(left.tags, 1) AS x", "size() takes 1 argument(s), not 2"),
        (
            "exists(left.tags, x -> x = 'a') AS x",
            "a lambda (->) is not allowed; lines.price is the array of what all elements have as price",
        ),
        ("left.tags[0 AS x", "not valid SQL"),
    ],
)
def test_expressions_that_make_no_sense_are_named(select: str, said: str) -> None:
    assert said in mistakes(select=select)


def test_a_type_that_is_not_allowed_says_what_is() -> None:
    said = mistakes(schema="id BIGINT, m MAP<INT, STRING>")
    assert "type MAP<INT, STRING> is not supported; it may be 8 deep, of named fields, maps by STRING" in said


def test_what_is_made_of_fields_has_nested_columns_and_rows_of_a_feed_have_none() -> None:
    t = Topology("t")
    t.table("a", key="id", schema=SCHEMA, source=changes("a", order_by="id", columns={"tags": "concat('[', tag, ']')"})).named("out")
    t.table("b", key="id", schema=SCHEMA, source=snapshot(iceberg("bronze.b"), columns={"id": "number"})).named("other")
    compile(t)
    t.table("c", key="id", schema=SCHEMA, source=feed("c", "maxwell")).named("third")
    t.table("d", key="id", schema=SCHEMA, source=changes("d", order_by="id", columns={"tags": "length(tag)"})).named("fourth")
    with pytest.raises(TopologyError) as error:
        compile(t)
    assert "column 'tags' is ARRAY<STRING>, and a feed(...) has single values" in str(error.value)
    assert "columns['tags']: it is INT, and the column ARRAY<STRING>; write a CAST, or let it be a text" in str(error.value)


def test_groups_have_single_values_as_keys_and_aggregate_them() -> None:
    t = Topology("t")
    table = t.table("a", key="id", schema=SCHEMA, source=debezium("a"))
    table.group_by("tags").aggregate(n="count(*)").named("by_tags")
    table.group_by("id").aggregate(x="max(tags)", y="min_by(id, place)", n="count(m)").named("by_id")
    with pytest.raises(TopologyError) as error:
        compile(t)
    assert "a group key is a single value" in str(error.value) and "max() does not take ARRAY<STRING>" in str(error.value)
    assert "min_by() does not take BIGINT and STRUCT" in str(error.value) and "count" not in str(error.value)


def test_what_is_expected_of_nested_columns_is_said_of_their_parts() -> None:
    t = Topology("t")
    table = t.table("a", key="id", schema=SCHEMA, source=debezium("a"))
    table.expect(not_empty("tags"), not_empty("M"), condition("place.city <> '' AND size(tags) > 0"), severity="quarantine")
    assert [e.kwargs.get("resolved") for e in compile_with(t).table("a").expectations] == [
        "coalesce(size(t.`tags`), 0) > 0",
        "coalesce(size(t.`m`), 0) > 0",
        "t.`place`.city <> '' AND size(t.`tags`) > 0",
    ]


@pytest.mark.parametrize(
    "expected", [in_set("tags", ["a"]), between("place", 1), matches("m", "x"), unique("tags"), unique("id", "m"), not_empty("place")]
)
def test_values_that_are_compared_are_single_ones(expected: Expected) -> None:
    t = Topology("t")
    t.table("a", key="id", schema=SCHEMA, source=debezium("a")).expect(expected)
    with pytest.raises(TopologyError, match=r"single values are expected|expected ARRAY<"):
        compile_with(t)


def compile_with(topology: Topology) -> Plan:
    """The plan of a topology with an output."""
    topology.relation("a").named("out")
    return compile(topology)


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


def plan(select: list[str], foreign_key: str = "id") -> Plan:
    t = Topology("t")
    left = t.table("a", key="id", schema=SCHEMA, source=debezium("a"))
    right = t.table("b", key="id", schema="id BIGINT, name STRING, place STRUCT<city: STRING>", source=debezium("b"))
    left.left_join(right, foreign_key, ["left.id", *select]).named("out")
    return compile(t)


def test_a_field_is_read_of_its_column_and_has_its_name_unless_another_is_given() -> None:
    made = plan(["left.Place.City", "right.place.city AS other", "tags[0] AS first", "left.place.at.day", "size(m) AS entries"])
    node = made.node("out")
    assert [(c.name, c.sql, c.type) for c in node.columns] == [
        ("id", "l.`id`", "BIGINT"),
        ("City", "l.`place`.City", "STRING"),
        ("other", "r1.`place`.city", "STRING"),
        ("first", "l.`tags`[0]", None),
        ("day", "l.`place`.at.day", "DATE"),
        ("entries", "size(l.`m`)", None),
    ]
    assert types_of(made, "out") == {
        "id": "BIGINT",
        "City": "STRING",
        "other": "STRING",
        "first": "STRING",
        "day": "DATE",
        "entries": "INT",
    }
    assert (why_not(made, node), unchecked(made)) == (None, ())


def test_what_is_read_of_a_column_uses_that_column_and_no_other() -> None:
    made = plan(["left.place.city"], foreign_key="size(tags)")
    assert (made.table("a").used, made.table("b").used) == (("tags", "place"), ())


def test_a_field_is_a_foreign_key_and_the_key_of_groups() -> None:
    t = Topology("t")
    left = t.table("a", key="id", schema="id BIGINT, place STRUCT<city: STRING, at: STRUCT<id: INT>>", source=debezium("a"))
    right = t.table("b", key="id", schema="id BIGINT, name STRING", source=debezium("b"))
    left.left_join(right, "place.at.id", ["left.id", "right.name"]).named("out")
    left.group_by("place.city").aggregate(n="count(*)", first="min(place.at.id)").named("cities")
    made = compile(t)
    assert made.node("out").edges[0].foreign_key == ("CAST(l.`place`.at.id AS BIGINT)",)
    assert (made.node("cities").key, types_of(made, "cities")) == (("city",), {"city": "STRING", "n": "BIGINT", "first": "INT"})


def test_a_field_of_a_column_that_an_expression_makes_is_read_of_that_expression() -> None:
    t = Topology("t")
    left = t.table("a", key="id", schema=SCHEMA, source=debezium("a"))
    left.select(["id", "coalesce(place, place) AS p"]).filter("p.city <> ''").select(["id", "p.at.day"]).named("out")
    node = compile(t).node("out")
    assert (node.left.where, node.left.columns[1].sql) == (
        "(coalesce(t.`place`, t.`place`)).city <> ''",
        "(coalesce(t.`place`, t.`place`)).at.day",
    )
    assert why_not(compile(t), node) is None


def test_a_qualifier_comes_before_a_column_of_its_name() -> None:
    t = Topology("t")
    left = t.table("a", key="id", schema="id BIGINT, `right` STRUCT<name: STRING>, name STRUCT<name: STRING>", source=debezium("a"))
    right = t.table("b", key="id", schema="id BIGINT, name STRING", source=debezium("b"))
    left.left_join(right, "id", ["left.id", "right.name AS a", "left.right.name AS b", "left.name.name AS c"]).named("out")
    left.filter("right.name = 'x'").select(["id", "name.name"]).named("alone")
    made = compile(t)
    assert [c.sql for c in made.node("out").columns[1:]] == ["r1.`name`", "l.`right`.name", "l.`name`.name"]
    assert made.node("alone").left.where == "t.`right`.name = 'x'"


def test_beside_dates_that_a_nested_value_holds_no_text_means_the_present_time() -> None:
    said = "beside dates Spark reads 'now', 'today', 'tomorrow' and 'yesterday' as the present time"
    assert said in mistakes(select="left.place.at.day = 'today' AS x")
    assert said in mistakes(select="array_contains(left.days, 'today') AS x", schema="id BIGINT, days ARRAY<DATE>")
