"""Constants with the type that Spark gives them."""

import datetime as dt
import math
import re
from typing import Final

from rejoin.plan.sql import types
from rejoin.plan.sql.portable.printed import NULL, Made, NotPortable, as_type, quoted, unproven
from rejoin.plan.sql.typing import arithmetic
from rejoin.plan.sql.typing.coercion import digits, is_decimal
from rejoin.plan.sql.typing.cursor import Term

_PLAIN: Final = re.compile(r"-?(\d*)(?:\.(\d*))?")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
_BIGINT: Final = 2**63


def literal(term: Term) -> Made:
    """A constant.

    Raises:
        NotPortable: a constant of another kind, or written in an unusual way.
    """
    text, kind = _of(term)
    return Made(text, kind, literal=term)


def _of(term: Term) -> tuple[str, str]:
    match term.of:
        case "VOID":
            return "NULL", NULL
        case "BOOLEAN":
            return term.value, "BOOLEAN"
        case "STRING":
            return _text(term.value), "STRING"
        case "INTEGER" | "DECIMAL":
            return _number(term)
        case "BIGINT" if term.value.lstrip("-").isdigit() and -_BIGINT <= int(term.value) < _BIGINT:
            return as_type(quoted(term.value), "BIGINT"), "BIGINT"
        case "DOUBLE" if math.isfinite(float(term.value)):
            return as_type(quoted(term.value), "DOUBLE"), "DOUBLE"
        case "DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ":
            return _time(term.value, types.canonical(term.of) or term.of)
    raise unproven(f"a constant of type {term.of}")


def _text(value: str) -> str:
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        raise NotPortable("a constant holds a character that DuckDB cannot read")
    return quoted(value)


def _number(term: Term) -> tuple[str, str]:
    """Written out as a text, because DuckDB reads long numbers as DOUBLE."""
    kind, match = arithmetic.number(term), _PLAIN.fullmatch(term.value)
    if kind is None or match is None:
        raise unproven(f"the constant {term.value}")
    if not is_decimal(kind):
        return as_type(term.value if kind == "INT" else quoted(term.value), kind), kind
    sign, (_, scale) = "-" if term.value.startswith("-") else "", digits(kind)
    plain = f"{sign}{match[1] or '0'}.{match[2]}" if scale else f"{sign}{match[1] or '0'}"
    return as_type(quoted(plain), kind), kind


def _time(value: str, kind: str) -> tuple[str, str]:
    if _MOMENT.fullmatch(value) is None or (kind == "DATE" and len(value) > len("2020-01-01")):
        raise NotPortable(f"the constant {kind}'{value}' is not written as YYYY-MM-DD{'' if kind == 'DATE' else ' HH:MM:SS'}")
    try:
        dt.datetime.fromisoformat(value)
    except ValueError as error:
        raise NotPortable(f"{value!r} is no {kind}") from error
    return as_type(quoted(value + ("+00" if kind == "TIMESTAMP" and len(value) > len("2020-01-01") else "")), kind), kind
