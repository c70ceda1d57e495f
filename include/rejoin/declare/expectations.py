"""What can be expected of a table or named output: ``orders.expect(unique("order_id"), not_null("customer"))``.

These only record, as everything that a topology file calls does. Expectations of Great Expectations can be passed as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Expected:
    """An expectation as written: a type of Great Expectations, or one of ``plan.check.expectations.OWN``, with its arguments, unchecked."""

    type: str
    kwargs: dict[str, Any]


def not_null(column: str) -> Expected:
    """Each row has a value in this column."""
    return Expected("expect_column_values_to_not_be_null", {"column": column})


def not_empty(column: str) -> Expected:
    """Each row has an array of at least one element, or a map of at least one entry, in this column; null is empty."""
    return Expected("not_empty", {"column": column})


def in_set(column: str, values: Sequence[object]) -> Expected:
    """The column is null or one of these values."""
    return Expected("expect_column_values_to_be_in_set", {"column": column, "value_set": list(values)})


def matches(column: str, regex: str) -> Expected:
    """The column is null or text in which the regular expression is found (``^`` and ``$`` for all of it)."""
    return Expected("expect_column_values_to_match_regex", {"column": column, "regex": regex})


def between(column: str, low: object = None, high: object = None) -> Expected:
    """The column is null or a value from ``low`` to ``high``, both included; None is no limit."""
    limits = {"min_value": low, "max_value": high}
    return Expected("expect_column_values_to_be_between", {"column": column, **{k: v for k, v in limits.items() if v is not None}})


def condition(sql: str) -> Expected:
    """A deterministic Spark SQL condition over the columns of one row is not false; as in a CHECK constraint, null passes."""
    return Expected("condition", {"sql": sql})


def computable() -> Expected:
    """Every expression of an output (select, filter, foreign key) has a value, or null, for each of its rows. A row for which a cast or a division
    fails stops the run even without this expectation; with severity ``quarantine`` it is held back instead.
    """
    return Expected("computable", {})


def unique(*columns: str) -> Expected:
    """No two rows of the table have the same values in these columns."""
    if len(columns) == 1:
        return Expected("expect_column_values_to_be_unique", {"column": columns[0]})
    return Expected("expect_compound_columns_to_be_unique", {"column_list": list(columns)})


def row_count(max_drop: float | None = 0.1, max_growth: float | None = None) -> Expected:
    """The number of rows falls and grows by at most these shares of what the last run left. The first run passes."""
    limits = {"max_drop": max_drop, "max_growth": max_growth}
    return Expected("row_count", {k: v for k, v in limits.items() if v is not None})


def matched(table: str, at_least: float) -> Expected:
    """At least this share of an output's left rows finds a row of ``table``, one of the tables that it joins."""
    return Expected("matched", {"table": table, "at_least": at_least})


def fresh(column: str, hours: float) -> Expected:
    """The newest value of a TIMESTAMP column is at most so many hours older than the start of the run."""
    return Expected("fresh", {"column": column, "hours": hours})
