"""Types of expressions without Spark: what is documented is what is known, definitions stay the same, what is left to Spark is named."""

import re
from pathlib import Path

from rejoin import Topology, condition, snapshot
from rejoin.plan import explain
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.sql.typing.check import check
from rejoin.plan.sql.unchecked import unchecked

PAGE = Path(__file__).parents[2] / "docs" / "topology.md"
COLUMNS = {
    "a": "ARRAY<STRING>",
    "m": "MAP<STRING, INT>",
    "i": "INT",
    "c": "DECIMAL(10,2)",
    "s": "STRING",
    "da": "DATE",
    "ts": "TIMESTAMP",
    "unknown": None,
}


def said(text: str) -> tuple[str | None, bool, tuple[str, ...]]:
    typed = check(text, lambda _, name: COLUMNS.get(name))
    return typed.type, typed.certain, typed.mistakes


def test_fault_b_every_mistake_of_an_expression_is_told_at_once() -> None:
    _, _, mistakes = said("CASE WHEN s THEN i = 'x' END AND upper(s, s) AND s RLIKE '('")
    assert mistakes == (
        "a condition of CASE must be BOOLEAN, this is STRING",
        "the text 'x' cannot be cast to BIGINT, which it is compared or used as",
        "upper() takes 1 argument(s), not 2",
        "the pattern '(' is broken: a parenthesis is not closed",
    )


def test_an_unknown_column_makes_results_unknown_and_no_mistake() -> None:
    assert said("unknown + 1") == (None, False, ())
    assert said("coalesce(unknown, i)") == (None, False, ())
    assert said("unknown = 'abc'") == ("BOOLEAN", False, ())


def test_what_is_not_in_the_table_is_left_to_spark() -> None:
    assert said("factorial(i)") == (None, False, ())
    assert said("factorial(i) > 1 AND i = 1") == ("BOOLEAN", False, ())


def test_an_empty_array_is_one_of_the_type_of_the_array_beside_it() -> None:
    columns = {"a": "ARRAY<STRUCT<x: INT>>", "s": "STRING", "m": "MAP<STRING, INT>"}

    def found(text: str) -> tuple[str | None, tuple[str, ...]]:
        typed = check(text, lambda _, name: columns.get(name))
        return typed.type, typed.mistakes

    assert found("coalesce(a, array())") == found("if(true, array(), a)") == ("ARRAY<STRUCT<x: INT>>", ())
    assert found("coalesce(s, array())")[1] == ("the arguments of coalesce() have no type in common: STRING, ARRAY<VOID>; write a CAST",)
    assert found("coalesce(m, array())")[0] is None
    assert found("array(s)") == (None, ())


def sums(size: str = "abs(total)") -> Plan:
    shop = Topology("shop")
    schema = "order_id BIGINT, customer_id BIGINT, total DECIMAL(10,2), day DATE"
    orders = shop.table("orders", key="order_id", schema=schema, source=snapshot("o/"))
    customers = shop.table("customers", key="customer_id", schema="customer_id BIGINT, name STRING", source=snapshot("c/"))
    made = orders.select(["*", "total * 1.2 AS gross", "day + 1 AS due", f"{size} AS size"])
    out = made.left_join(customers, "customer_id", ["left.*", "concat(right.name, left.total) AS label"]).named("sums")
    out.expect(condition("size > 0"))
    return compile(shop)


def test_a_type_that_is_known_now_does_not_change_a_definition() -> None:
    """The hash is that of the version in which these types were unknown."""
    plan = sums()
    assert fingerprint(plan, plan.node("sums"), hash_version=1) == "85a3d61f06a3a3a083c6a25e343aa02a5afb594ae1fc1d6185344c7eea09c530"


def test_fault_b_explain_lists_what_spark_checks_and_only_that() -> None:
    assert unchecked(sums()) == ()
    assert "checked by Spark" not in explain.text(sums())
    plan = sums("factorial(total)")
    assert [(one.title, one.sql) for one in unchecked(plan)] == [
        ("column 'size' of 'orders' as output 'sums' reads it", "factorial(t.`total`)"),
        ("an expectation of output 'sums', condition(\"size > 0\")", "t.`size` > 0"),
    ]
    assert "checked by Spark when it runs, before anything is read\n  column 'size' of 'orders'" in explain.text(plan)


def test_the_page_names_exactly_the_functions_that_are_typed() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    listed = text.partition("and these functions:")[2].partition("Spark analyzes whatever")[0]
    assert {name for name in re.findall(r"`(\w+)`", listed) if not known(name)} == set()
    assert len(re.findall(r"`(\w+)`", listed)) > 100


def known(name: str) -> bool:
    """Whether a call with some plain arguments is typed."""
    plain = ("i", "s", "da", "ts", "c", "i = 1", "a", "m")
    one = [f"{name}({a})" for a in plain]
    two = [f"{name}({a}, {b})" for a in plain for b in plain]
    three = [f"{name}({a}, {b}, {c})" for a in plain for b in plain for c in ("i", "s")]
    return any(said(text)[1] and not said(text)[2] for text in (*one, *two, *three))


def test_fault_b_a_column_that_is_only_null_is_told_even_where_no_word_says_so() -> None:
    assert said("coalesce(NULL, NULL)") == ("VOID", True, ())
