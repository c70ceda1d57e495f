"""What a user expects becomes data of the plan, with every mistake reported at its line; what answers mean for a run."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from plans import Shop, star

import rejoin
from rejoin import between, computable, condition, fresh, in_set, matched, matches, not_empty, not_null, row_count, unique
from rejoin.declare.topology import Relation
from rejoin.errors import TopologyError, ValidationFailed
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check import expectations
from rejoin.plan.model import expectation_words, json_form
from rejoin.plan.model.expectations import Expectation, Level, Severity
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import steps
from rejoin.steps.validate import questions
from rejoin.steps.validate.questions import Answer, Verdict


def made(declare: Callable[[Relation, Shop], object]) -> Plan:
    shop = Shop()
    declare(star(shop), shop)
    return shop.compile()


def test_expectations_are_data_of_the_plan_and_no_part_of_the_definition() -> None:
    plain = made(lambda out, _: None)
    plan = made(
        lambda out, shop: (
            out.expect(unique("ORDER_ID"), not_null("customer")).expect(condition("total > 0"), severity="quarantine", max_share=0.5),
            shop.orders.expect(between("total", 0), severity="warn", rows="all"),
        )
    )
    assert [e.title for e in plan.node("star").expectations] == [
        'unique("order_id")',
        'not_null("customer")',
        'condition("total > 0")',
    ]
    assert [(e.level, e.severity) for e in plan.node("star").expectations][1:] == [
        (Level.ROW, Severity.FAIL),
        (Level.ROW, Severity.QUARANTINE),
    ]
    assert plan.table("orders").expectations[0].kwargs["resolved"] == "t.`total` >= CAST('0' AS DECIMAL(10,2))"
    assert json_form.from_json(json_form.to_json(plan)) == plan
    assert fingerprint(plan, plan.node("star")) == fingerprint(plain, plain.node("star"))
    assert expectations.changed(plain, plan) == ("orders", "star") and expectations.changed(plan, plan) == ()
    assert steps(plan) == steps(plain)


def test_readers_of_a_node_come_after_its_validation() -> None:
    shop = Shop()
    star(shop).filter("total > 1").named("large")
    after = {s.id: s.after for s in steps(shop.compile())}
    assert after["validate.star"] == ("resolve.star",) and after["resolve.large"] == ("validate.star",)
    assert {"validate.star", "validate.large"} <= set(after["publish"])


MISTAKES: dict[str, tuple[Callable[[Relation, Shop], object], str]] = {
    "computable, only reported": (lambda out, _: out.expect(computable(), severity="warn"), "use 'quarantine' or 'fail'"),
    "computable, of all rows": (lambda out, _: out.expect(computable(), rows="all"), "and rows='changed'"),
    "computable, of a table": (lambda _, shop: shop.orders.expect(computable()), "a table has no expressions"),
    "unknown column": (lambda out, _: out.expect(not_null("custmer")), "unknown column 'custmer' of star; did you mean 'customer'?"),
    "unknown column of a condition": (lambda out, _: out.expect(condition("totl > 0")), "unknown column 'totl'"),
    "a condition that is none": (lambda out, _: out.expect(condition("customer")), "a condition must be BOOLEAN, this is STRING"),
    "no expectation": (lambda out, _: out.expect("unique"), "str is no expectation"),
    "unknown severity": (lambda out, _: out.expect(not_null("total"), severity="error"), "severity is 'error'; expected one of 'fail'"),
    "a share that is none": (lambda out, _: out.expect(not_null("total"), max_share=3), "max_share is 3"),
    "holding tables back": (
        lambda out, _: out.expect(unique("order_id"), severity="quarantine"),
        "severity 'quarantine' needs an expectation about single rows",
    ),
    "holding back what is published": (
        lambda out, _: out.expect(not_null("total"), severity="quarantine", rows="all"),
        "what is published already cannot be held back",
    ),
    "a table that is not joined": (lambda out, _: out.expect(matched("maker", at_least=0.5)), "does not join 'maker' itself"),
    "freshness of text": (lambda out, _: out.expect(fresh("customer", hours=1)), "column 'customer' is STRING, not TIMESTAMP"),
    "something without a name": (lambda out, shop: shop.orders.filter("total > 0").expect(not_null("total")), "call it after .named(...)"),
}


@pytest.mark.parametrize(("declare", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_reported(declare: Callable[[Relation, Shop], object], message: str) -> None:
    with pytest.raises(TopologyError) as found:
        made(declare)
    assert message in str(found.value) and "test_expectations.py:" in str(found.value)


ARGUMENTS: dict[str, tuple[Callable[[Relation, Shop], object], str]] = {
    "a share above one": (lambda out, _: out.expect(row_count(max_drop=5)), "max_drop is 5; expected a share from 0 to 1"),
    "a share that is no number": (lambda out, _: out.expect(matched("customers", at_least=float("nan"))), "at_least is nan"),
    "a growth below zero": (lambda out, _: out.expect(row_count(max_growth=-1)), "max_growth is -1; expected a number from 0 up"),
    "a count without limits": (lambda out, _: out.expect(row_count(max_drop=None)), "neither max_drop nor max_growth is given"),
    "limits the wrong way round": (lambda out, _: out.expect(between("total", 10, 1)), "the lower limit 10 is above the upper limit 1"),
    "no limit": (lambda out, _: out.expect(between("total")), "neither a lower nor an upper limit is given"),
    "a text as limit of a number": (lambda out, _: out.expect(between("total", "abc")), "a limit is 'abc', which is no DECIMAL(10,2)"),
    "a number as limit of a text": (lambda out, _: out.expect(between("customer", 1)), "a limit is 1, which is no STRING"),
    "an empty set": (lambda out, _: out.expect(in_set("customer", [])), "the set of values is empty, so no value could pass"),
    "a set of another type": (lambda out, _: out.expect(in_set("order_id", [1, "x"])), "a value of the set is 'x', which is no BIGINT"),
    "nothing in a set": (lambda out, _: out.expect(in_set("customer", ["a", None])), "None stands in the set of values"),
    "a broken pattern": (
        lambda out, _: out.expect(matches("customer", "([a-z")),
        "regex '([a-z' is broken: a character class is not closed",
    ),
    "a pattern that Java does not know": (
        lambda out, _: out.expect(matches("customer", r"(?P<x>a)")),
        "is broken: '(?' is not followed by",
    ),
    "a pattern of a number": (
        lambda out, _: out.expect(matches("order_id", "1")),
        "a regular expression needs a STRING, the column is BIGINT",
    ),
    "unique over nothing": (lambda out, _: out.expect(unique()), "no column is given"),
    "unique over one column twice": (lambda out, _: out.expect(unique("total", "TOTAL")), "column 'total' is given twice"),
    "not empty, of a text": (
        lambda out, _: out.expect(not_empty("customer")),
        "column 'customer' is STRING; expected ARRAY<...> or MAP<...>",
    ),
    "unique over an unknown column": (lambda out, _: out.expect(unique("order_id", "totl")), "unknown column 'totl' of star"),
}


@pytest.mark.parametrize(("declare", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_fault_b_an_argument_that_cannot_be_is_told_when_the_file_is_read(
    declare: Callable[[Relation, Shop], object], message: str
) -> None:
    with pytest.raises(TopologyError) as raised:
        made(declare)
    [problem] = raised.value.problems
    assert problem.code in ("BAD_OPTION", "UNKNOWN_COLUMN")
    assert message in problem.message


def test_arguments_that_can_be_are_no_mistake() -> None:
    made(
        lambda out, _: out.expect(
            row_count(max_drop=1, max_growth=5),
            between("total", 0, Decimal("10.5")),
            between("total", "0.5", 7),
            between("customer", "a"),
            in_set("order_id", [1, 2]),
            matches("customer", r"^(?i:[a-z]{2,3})\d*$"),
            matched("customers", at_least=0.5),
        )
    )


def test_every_helper_names_a_kind() -> None:
    made_by = [
        not_null("a"),
        in_set("a", [1]),
        matches("a", "x"),
        between("a", 1),
        condition("a > 1"),
        unique("a", "b"),
        row_count(),
        not_empty("a"),
    ]
    assert len({e.type for e in [*made_by, matched("b", 1), fresh("a", 1), unique("a")]}) == 11


WRITTEN = [
    'not_null("a")',
    'not_empty("a")',
    'in_set("a", ["x", "y\\"z", 1, 2.5, True])',
    r'matches("a", r"^(?i:[a-z]{2,3})\d*$")',
    'matches("a", "a\\\\\\"b")',
    'matches("a", "\\n")',
    'between("a", 0, 5)',
    'between("a", -1.5)',
    'between("a", high="2024-12-31")',
    """condition("note <> 'it''s [b]' OR né > 0")""",
    "computable()",
    'unique("a")',
    'unique("a", "b")',
    "row_count(max_drop=0.1)",
    "row_count(max_drop=0.2, max_growth=3)",
    "row_count(max_drop=None, max_growth=3)",
    'matched("b", at_least=0.9)',
    'fresh("a", hours=24)',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_an_expectation_is_printed_as_it_was_written(text: str) -> None:
    given = eval(text, vars(rejoin))
    assert expectation_words.title(given.type, given.kwargs) == text
    assert expectation_words.title(given.type, {**given.kwargs, "resolved": "t.`a` >= 0"}) == text


def test_every_helper_has_its_own_word() -> None:
    helpers = {t.partition("(")[0] for t in WRITTEN}
    assert helpers == {n for n in rejoin.__all__ if getattr(vars(rejoin)[n], "__module__", "") == "rejoin.declare.expectations"}


def test_what_only_great_expectations_can_say_is_printed_as_a_call_of_its_class() -> None:
    between = "expect_column_values_to_be_between"
    assert expectation_words.title(between, {"column": "a", "max_value": 5, "mostly": 0.9}) == (
        'ExpectColumnValuesToBeBetween(column="a", max_value=5, mostly=0.9)'
    )
    assert (
        expectation_words.title("expect_table_row_count_to_be_between", {"min_value": 1}) == "ExpectTableRowCountToBeBetween(min_value=1)"
    )


def test_mistakes_name_the_expectation_as_it_was_written() -> None:
    with pytest.raises(TopologyError) as raised:
        made(lambda out, _: out.expect(unique("order_id"), severity="quarantine").expect(between("total"), in_set("total", [])))
    said = [p.message for p in raised.value.problems]
    assert [m.split(": ")[1] for m in said] == ['unique("order_id")', "between", "in_set"]
    assert "expect_" not in str(raised.value)


def verdict(severity: Severity, **answer: object) -> Verdict:
    found = {"number": 0, "met": False, "checked": 100, "unexpected": 11, **answer}
    return Verdict(Expectation("expect_x", {"column": "a"}, Level.ROW, severity, max_share=0.2), Answer(**found))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "stops"),
    [
        pytest.param(verdict(Severity.FAIL), True, id="not met"),
        pytest.param(verdict(Severity.FAIL, met=True, unexpected=0), False, id="met"),
        pytest.param(verdict(Severity.WARN), False, id="a warning"),
        pytest.param(verdict(Severity.QUARANTINE), False, id="few rows to hold back"),
        pytest.param(verdict(Severity.QUARANTINE, unexpected=21), True, id="too many rows to hold back"),
        pytest.param(verdict(Severity.QUARANTINE, checked=10, unexpected=10), False, id="ten rows, whatever their share"),
        pytest.param(verdict(Severity.QUARANTINE, unexpected=0, error="boom"), True, id="could not be told"),
    ],
)
def test_what_stops_a_run(found: Verdict, stops: bool) -> None:
    assert found.stops is stops
    if stops:
        with pytest.raises(ValidationFailed, match=r"output 'x' does not meet 1 of 1 expectations in run 7.*ExpectX\(column=\"a\"\)"):
            questions.stop_if_needed([found], "output 'x'", 7, None)
    else:
        questions.stop_if_needed([found], "output 'x'", 7, None)


def test_a_row_has_all_its_reasons() -> None:
    two = [Expectation("one", {}, Level.ROW), Expectation("two", {}, Level.ROW)]
    assert questions.reasons(two, {1: [3], 0: [3, 5]}) == {3: "one(); two()", 5: "one()"}
