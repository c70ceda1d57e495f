"""Checks the arguments of expectations: limits, sets, patterns and shares against the type of their column."""

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from rejoin.plan.model.problems import BAD_OPTION, Reporter
from rejoin.plan.sql.nested import STRUCT, is_nested, parts_of
from rejoin.plan.sql.typing import coercion, constants, patterns

_BETWEEN: Final = "expect_column_values_to_be_between"
_SETS: Final = ("expect_column_values_to_be_in_set", "expect_column_values_to_not_be_in_set")
_PATTERNS: Final = ("expect_column_values_to_match_regex", "expect_column_values_to_not_match_regex")
_OF_SINGLE: Final = (_BETWEEN, *_SETS, *_PATTERNS, "expect_column_values_to_be_unique")
_SHARES: Final = ("max_drop", "at_least", "mostly")
_NUMBERS: Final = ("max_growth", "hours")


def check(type_: str, kwargs: Mapping[str, Any], column_type: str | None, report: Reporter) -> None:
    """Reports every argument that cannot be right.

    Args:
        type_: of the expectation.
        kwargs: as written.
        column_type: of its column; None if it is unknown, or there is none.
        report: takes the mistakes.
    """
    for name in (*_SHARES, *_NUMBERS):
        _number(name, kwargs.get(name, 0), report)
    if type_ == "not_empty":
        _not_empty(str(kwargs["column"]), column_type, report)
    elif type_ in _OF_SINGLE and is_nested(column_type or ""):
        check_single(str(kwargs.get("column")), column_type, report)
    elif type_ == _BETWEEN:
        _between(kwargs, column_type, report)
    elif type_ in _SETS:
        _set(kwargs.get("value_set"), column_type, report)
    elif type_ in _PATTERNS:
        _pattern(kwargs.get("regex"), column_type, report)
    elif type_ == "row_count" and not kwargs:
        report(BAD_OPTION, "neither max_drop nor max_growth is given, so nothing would be checked")
    elif type_ == "expect_compound_columns_to_be_unique":
        _columns(kwargs.get("column_list", ()), report)


def check_single(name: str, column_type: str | None, report: Reporter) -> None:
    """Reports a column of arrays, structs or maps, where values are compared."""
    if is_nested(column_type or ""):
        report(BAD_OPTION, f"column {name!r} is {column_type}, and single values are expected; condition(...) says something of its parts")


def _not_empty(name: str, column_type: str | None, report: Reporter) -> None:
    of = parts_of(column_type or "")
    if of is None or of.kind == STRUCT:
        report(BAD_OPTION, f"column {name!r} is {column_type or 'of a type that is not certain'}; expected ARRAY<...> or MAP<...>")


def _number(name: str, value: object, report: Reporter) -> None:
    """A share is 0 to 1; a number of rows may more than double, so ``max_growth`` may be above 1."""
    most = 1.0 if name in _SHARES else math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most or math.isinf(value):
        expected = "a share from 0 to 1" if name in _SHARES else "a number from 0 up"
        report(BAD_OPTION, f"{name} is {value!r}; expected {expected}")


def _between(kwargs: Mapping[str, Any], column_type: str | None, report: Reporter) -> None:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if low is None and high is None:
        report(BAD_OPTION, "neither a lower nor an upper limit is given, so nothing would be checked")
    limits = [value for value in (low, high) if value is not None]
    if all(_value("a limit", value, column_type, report) for value in limits) and len(limits) == 2 and _is_above(low, high, column_type):
        report(BAD_OPTION, f"the lower limit {low!r} is above the upper limit {high!r}, so no value could pass")


def _is_above(low: object, high: object, column_type: str | None) -> bool:
    """Whether the first limit is above the second, where that is certain: numbers, dates and texts beside texts."""
    if column_type is not None and coercion.is_number(column_type):
        return Decimal(str(low)) > Decimal(str(high))
    if isinstance(low, dt.date) and type(low) is type(high):
        return str(low) > str(high)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return low > high
    return isinstance(low, str) and isinstance(high, str) and len(low) == len(high) and low > high


def _set(values: object, column_type: str | None, report: Reporter) -> None:
    if not isinstance(values, (list, tuple, set, frozenset)):
        return
    if not values:
        report(BAD_OPTION, "the set of values is empty, so no value could pass")
    for value in values:
        if value is None:
            report(BAD_OPTION, "None stands in the set of values; null passes anyway, and not_null(...) refuses it")
        else:
            _value("a value of the set", value, column_type, report)


def _pattern(regex: object, column_type: str | None, report: Reporter) -> None:
    if column_type not in ("STRING", None):
        report(BAD_OPTION, f"a regular expression needs a STRING, the column is {column_type}")
    if not isinstance(regex, str):
        report(BAD_OPTION, f"regex is {regex!r}; expected a text")
        return
    said = patterns.mistake(regex)  # Spark asks Java about large runs, Python is asked about small ones
    if said is None:
        try:
            re.compile(regex)
        except re.error as error:
            said = error.msg
    if said is not None:
        report(BAD_OPTION, f"regex {regex!r} is broken: {said}")


def _columns(names: object, report: Reporter) -> None:
    found = list(names) if isinstance(names, (list, tuple)) else []
    if not found:
        report(BAD_OPTION, "no column is given")
    elif repeated := sorted({str(n) for n in found if found.count(n) > 1}):
        report(BAD_OPTION, f"column {repeated[0]!r} is given twice")


def _value(what: str, value: object, column_type: str | None, report: Reporter) -> bool:
    """Whether a limit or a value of a set can be a value of the column."""
    if column_type is None or _fits(value, column_type):
        return True
    report(BAD_OPTION, f"{what} is {value!r}, which is no {column_type}, the type of the column")
    return False


def _fits(value: object, column_type: str) -> bool:
    is_plain_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and math.isfinite(value)
    if coercion.is_decimal(column_type):
        return is_plain_number or (isinstance(value, str) and constants.casts(value, column_type))
    if coercion.is_number(column_type):
        return is_plain_number
    if column_type == "BOOLEAN":
        return isinstance(value, bool)
    if column_type == "STRING":
        return isinstance(value, str)
    if column_type in coercion.TIMES:
        return isinstance(value, dt.date) or (isinstance(value, str) and constants.casts(value, column_type))
    return True
