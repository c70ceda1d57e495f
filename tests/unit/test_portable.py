"""Expressions as DuckDB SQL, without Spark: what is printed, what is refused, and what DuckDB makes of some."""

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from unit.plans import Shop, everything

from rejoin import condition
from rejoin.plan.sql.portable import SETTINGS, NotPortable, duckdb_type, node_columns, printed, types_of, view_columns, why_not

TYPES = {
    "bo": "BOOLEAN",
    "i": "INT",
    "b": "BIGINT",
    "c": "DECIMAL(10,2)",
    "w": "DECIMAL(38,18)",
    "x": "DOUBLE",
    "s": "STRING",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "nt": "TIMESTAMP_NTZ",
    'odd "name" ': "INT",
}
COLUMNS = {"l": TYPES}
ROW = """
    SELECT true AS bo, 7::INTEGER AS i, 9223372036854775807 AS b, 12.35::DECIMAL(10,2) AS c, 0.5::DECIMAL(38,18) AS w, 'NaN'::DOUBLE AS x,
        ' ab' AS s, DATE '2020-01-31' AS d, TIMESTAMPTZ '1969-12-31 23:59:59.5+00' AS ts, TIMESTAMP '2020-02-29 10:11:12' AS nt, 1::INTEGER AS "odd ""name"" "
"""


def text(sql: str) -> str:
    return printed(sql, COLUMNS).text


def kind(sql: str) -> str:
    return printed(sql, COLUMNS).type


def value(sql: str) -> Any:
    with duckdb.connect() as duck:
        for setting in SETTINGS:
            duck.execute(setting)
        return duck.execute(f"SELECT {text(sql)} FROM ({ROW}) AS l").fetchall()[0][0]


def reason(sql: str) -> str:
    with pytest.raises(NotPortable) as caught:
        printed(sql, COLUMNS)
    return str(caught.value)


@pytest.mark.parametrize(
    "sql", ["date_add(DATE '9999-12-31', l.i)", "date_sub(l.d, 800000)", "add_months(DATE '9999-06-01', l.i)", "add_months(l.d, -24300)"]
)
def test_a_date_of_a_year_without_four_digits_is_an_error(sql: str) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="a year is not one of four digits"):
        value(sql)


def test_dates_are_moved_up_to_the_ends_of_what_can_be_written() -> None:
    assert value("date_add(DATE '9999-12-24', l.i)") == date(9999, 12, 31)
    assert value("add_months(DATE '0001-08-31', -l.i)") == date(1, 1, 31)
    assert value("date_add(CAST(NULL AS DATE), l.i)") is None


def test_an_empty_array_is_printed_in_the_type_of_the_array_beside_it() -> None:
    columns = {"l": {"a": "ARRAY<STRUCT<x: INT>>"}}
    made = printed("coalesce(l.a, array())", columns)
    assert (made.text, made.type) == ('coalesce(l."a", CAST([] AS STRUCT("x" INTEGER)[]))', "ARRAY<STRUCT<x: INT>>")
    for alone in ("array()", "CAST(array() AS STRING)", "array(1)"):
        assert "is not proven equal in DuckDB" in reason(alone)


def test_columns_and_constants_are_printed_with_their_types() -> None:
    assert text("l.`i`") == 'l."i"'
    assert text('l.`odd "name" `') == 'l."odd ""name"" "'
    assert text("5") == "CAST(5 AS INTEGER)"
    assert text("-9223372036854775808") == "CAST('-9223372036854775808' AS BIGINT)"
    assert text("1.50") == "CAST('1.50' AS DECIMAL(3,2))"
    assert text("'it''s'") == "'it''s'"
    assert text(r"'a\tb'") == "'a\tb'"
    assert text("TIMESTAMP'2020-01-01 10:11:12.5'") == "CAST('2020-01-01 10:11:12.5+00' AS TIMESTAMPTZ)"
    assert [kind(sql) for sql in ("5", "3000000000", "1.50", ".5", "1e0", "'a'", "TRUE", "DATE'2020-01-01'")] == [
        *("INT", "BIGINT", "DECIMAL(3,2)", "DECIMAL(1,1)", "DOUBLE", "STRING", "BOOLEAN", "DATE"),
    ]


def test_results_have_the_types_of_spark() -> None:
    assert {
        sql: kind(sql) for sql in ("l.i + l.b", "l.c * l.c", "l.c + 1", "l.c / 3", "l.i / 2", "l.i div 2", "round(l.c, 1)", "floor(l.c)")
    } == {
        "l.i + l.b": "BIGINT",
        "l.c * l.c": "DECIMAL(21,4)",
        "l.c + 1": "DECIMAL(11,2)",
        "l.c / 3": "DECIMAL(14,6)",
        "l.i / 2": "DOUBLE",
        "l.i div 2": "BIGINT",
        "round(l.c, 1)": "DECIMAL(10,1)",
        "floor(l.c)": "DECIMAL(9,0)",
    }


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("l.c * 2 + l.i", Decimal("31.70")),
        ("l.c / 7", Decimal("1.764286")),
        ("-l.c / 7", Decimal("-1.764286")),
        ("round(l.c, 1)", Decimal("12.4")),
        ("CAST(-l.c AS INT)", -12),
        ("l.i BETWEEN 1 AND 7 AND l.s NOT LIKE 'a%'", True),
        ("l.i NOT IN (1, 2, NULL)", None),
        ("l.bo IS NOT TRUE", False),
        ("l.s IS NOT NULL", True),
        ("l.i IS DISTINCT FROM NULL", True),
        ("CASE l.i WHEN 7 THEN 'seven' ELSE 'other' END", "seven"),
        ("upper(trim(l.s)) || '-' || l.c", "AB-12.35"),
        ("substring(l.s, 0, 2) || substring(l.s, -1)", " ab"),
        ("datediff(l.d, '2020-01-01')", 30),
        ("dayofweek(l.d)", 6),
        ("year(l.ts)", 1969),
        ("CAST(l.nt AS STRING)", "2020-02-29 10:11:12"),
        ("l.x = CAST('1' AS INT)", False),
        ("nullif(l.i, 7)", None),
        ("greatest(l.i, NULL, 3.5)", Decimal("7.0")),
    ],
)
def test_duckdb_gives_what_spark_gives(sql: str, expected: object) -> None:
    assert value(sql) == expected


RAISING = """
    l.b + 1|l.b + 1 = 5|l.i / 0|l.i % (l.i - 7)|l.c / 0|CAST(l.b AS INT)|CAST(l.b AS INT) = 5|CAST(l.s AS INT)|l.s = 5|l.b + 1 IN (1, 2)
    |CAST(l.b AS DECIMAL(5,2))|-(-l.b - 1)|l.b + 1 > 0 AND l.bo|NOT l.bo OR l.i / 0 > 1|lower('\\u0130')
"""


@pytest.mark.parametrize("sql", [sql.strip() for sql in RAISING.split("|")])
def test_what_is_an_error_in_spark_is_one_in_duckdb(sql: str) -> None:
    with pytest.raises(duckdb.Error):
        value(sql)


def test_an_error_is_only_looked_for_where_spark_looks() -> None:
    assert value("l.i <> 7 AND 1 / (l.i - 7) > 0") is False
    assert value("l.i = 7 OR 1 / (l.i - 7) > 0") is True
    assert value("CASE WHEN l.i = 7 THEN 0 ELSE 1 / (l.i - 7) END") == 0
    assert value("coalesce(l.i, l.b + 1)") == 7


def test_a_long_condition_stays_short_in_duckdb() -> None:
    parts = [f"l.i + {number} > 0" for number in range(200)]
    assert value(" AND ".join(parts)) is True
    assert len(text(" OR ".join(parts))) < 30_000
    assert reason(" / ".join(["l.c"] + ["2"] * 9)) == "it is too long in DuckDB's SQL"


def test_what_is_not_proven_is_refused_with_its_name() -> None:
    assert reason("regexp_replace(l.s, 'a', 'b')") == "regexp_replace is not proven equal in DuckDB"
    assert reason("CAST(l.x AS STRING)") == "a cast from DOUBLE to STRING is not proven equal in DuckDB"
    assert reason("l.x + 1") == "+ of DOUBLE and INT is not proven equal in DuckDB"
    assert reason("l.w = 1.5e0") == "a DECIMAL(38,18) beside DOUBLE is not proven equal in DuckDB"
    assert reason("l.w * l.w") == "DECIMAL(38,18) * DECIMAL(38,18) is rounded, which is not proven equal in DuckDB"
    assert reason("try_cast(l.s AS INT)") == "try_cast is not proven equal in DuckDB"
    assert reason("l.s LIKE l.s") == "LIKE with a pattern that is no constant is not proven equal in DuckDB"
    assert reason("trim(LEADING 'a' FROM l.s)") == "TRIM with words in it is not proven equal in DuckDB"
    assert reason("l.unknown") == "the type of l.unknown is not known"
    assert reason("i") == "the type of i is not known"
    assert reason("l.i -- 1") == "it has a comment, or a text like one"
    assert reason("l.i = ") == "it has a construct that rejoin does not read"
    assert reason("l.i AND l.bo").startswith("it has a mistake: ")
    assert reason("NULL") == "NULL without a type is not proven equal in DuckDB"


def test_what_spark_may_look_at_before_its_turn_is_refused() -> None:
    assert reason("l.b + 1 BETWEEN 1 AND 2") == "BETWEEN of what may raise an error is not proven equal in DuckDB"
    assert reason("nullif(l.b + 1, 0)") == "nullif of what may raise an error is not proven equal in DuckDB"
    assert reason("l.i IN (1, l.b + 1)") == "IN a list with a value that may raise an error is not proven equal in DuckDB"
    assert reason("CAST(' 5' AS INT)") == "a cast of the constant ' 5' to INT is not proven equal in DuckDB"
    assert reason("l.b + 1 IS NULL") == "a test for null of what may raise an error is not proven equal in DuckDB"
    assert reason("l.b + 1 <=> NULL") == "comparing NULL with what may raise an error is not proven equal in DuckDB"
    assert reason("l.b + 1 > 0 AND FALSE") == "AND of a constant and what may raise an error is not proven equal in DuckDB"


def test_types_have_the_names_of_duckdb() -> None:
    assert [duckdb_type(name) for name in ("STRING", "BINARY", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(10,2)", "INT")] == [
        *("VARCHAR", "BLOB", "TIMESTAMPTZ", "TIMESTAMP", "DECIMAL(10,2)", "INTEGER"),
    ]
    with pytest.raises(NotPortable):
        duckdb_type("VOID")


# --- plans ---------------------------------------------------------------------------------------------------------------


def test_types_are_known_through_views_and_nodes() -> None:
    plan = everything()
    star = plan.node("star")
    assert types_of(plan, "orders")["total"] == "DECIMAL(10,2)"
    assert view_columns(plan, star.left) == {"t": types_of(plan, "orders")}
    assert set(node_columns(plan, star)) == {"l", "r1", "r2"}
    assert types_of(plan, "star")["customer"] == "STRING"
    assert types_of(plan, "active_customers") == {"id": "BIGINT", "name": "STRING"}


def test_all_nodes_of_a_usual_plan_are_portable() -> None:
    plan = everything()
    assert {node.name: why_not(plan, node) for node in plan.nodes} == dict.fromkeys(node.name for node in plan.nodes)


def told(select: str, where: str = "true", foreign_key: str = "customer_id") -> str | None:
    """Why an output with this text is not portable."""
    shop = Shop()
    joined = shop.orders.filter(where).left_join(shop.customers, foreign_key, ["order_id", f"{select} AS made", "region"])
    joined.filter("region <> 'x'").named("out")
    plan = shop.compile()
    return why_not(plan, plan.node("out"))


def test_a_node_that_is_not_portable_says_which_text_and_why() -> None:
    assert told("upper(note)") is None
    assert told("total + 1") is None
    assert told("reverse(note)") == "column made: reverse is not proven equal in DuckDB"
    assert told("note", where="reverse(note) = 'x'") == "the filter of orders: reverse is not proven equal in DuckDB"
    found = told("note", foreign_key="try_cast(note AS BIGINT)")
    assert found is not None and found.startswith("the foreign key of ") and found.endswith("try_cast is not proven equal in DuckDB")


def test_what_reads_a_column_of_an_unportable_node_may_be_portable_itself() -> None:
    shop = Shop()
    first = shop.orders.select(["order_id", "product_id", "md5(note) AS hash"]).named("first")
    first.left_join(shop.products, "product_id", ["order_id", "hash", "title"]).named("second")
    plan = shop.compile()
    assert why_not(plan, plan.node("first")) == "column hash of orders: md5 is not proven equal in DuckDB"
    assert why_not(plan, plan.node("second")) is None


def test_an_expectation_that_is_not_portable_is_a_reason() -> None:
    shop = Shop()
    output = shop.orders.select(["order_id", "note"]).named("out")
    output.expect(condition("reverse(note) <> 'x'"))
    plan = shop.compile()
    assert str(why_not(plan, plan.node("out"))).endswith("reverse is not proven equal in DuckDB")
