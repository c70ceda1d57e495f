"""The result types of arithmetic in ANSI mode, DECIMAL as Spark does it when precision may be lost."""

from typing import Final

from rejoin.plan.sql.typing.coercion import (
    FRACTIONS,
    INTEGERS,
    MAX_DIGITS,
    Mismatch,
    common_of_two,
    decimal,
    digits,
    is_decimal,
    is_interval,
    is_number,
    wider_number,
)
from rejoin.plan.sql.typing.cursor import Term

_BIGINT: Final = 2**63
_INT: Final = 2**31


def number(term: Term) -> str | None:
    """The type of a number without suffix."""
    value = term.value.lstrip("-")
    if term.of == "INTEGER":
        signed = int(term.value)
        if -_INT <= signed < _INT:
            return "INT"
        if -_BIGINT <= signed < _BIGINT:
            return "BIGINT"
    whole, _, fraction = value.partition(".")
    scale = len(fraction)
    precision = max(len((whole + fraction).lstrip("0")), scale, 1)
    return f"DECIMAL({precision},{scale})" if precision <= MAX_DIGITS else None


def of_literal(term: Term, of: str, beside: str) -> str:
    """The type that an operand counts with: an integer literal beside a DECIMAL has as many digits as it is written with."""
    if is_decimal(beside) and term.name == "literal" and term.of in ("INTEGER", "BIGINT", "SMALLINT", "TINYINT") and of in INTEGERS:
        return f"DECIMAL({len(str(abs(int(term.value))))},0)"
    return of


def result(operator: str, one: str, other: str) -> str | None:
    """The type of ``one operator other``; None if it is not known.

    Raises:
        Mismatch: Spark has no such operation.
    """
    if "VOID" in (one, other):
        return None
    times = [name for name in (one, other) if name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ") or is_interval(name)]
    if times:
        return _of_times(operator, one, other)
    shared = common_of_two(one, other)
    if shared is None or not is_number(shared):
        raise Mismatch(f"{operator} is not possible between {one} and {other}; write a CAST")
    if "STRING" in (one, other):
        one = other = shared
    if operator == "div":
        return "BIGINT" if shared not in FRACTIONS else None
    if is_decimal(one) or is_decimal(other):
        return "DOUBLE" if shared == "DOUBLE" else _of_decimals(operator, one, other)
    if operator == "/":
        return "DOUBLE"
    return wider_number(one, other)


def _of_decimals(operator: str, one: str, other: str) -> str:
    (p1, s1), (p2, s2) = digits(one), digits(other)
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            return decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return decimal(p1 - s1 + s2 + scale, scale)
    return decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def _of_times(operator: str, one: str, other: str) -> str | None:
    """Dates and timestamps plus or minus intervals and days. Differences are intervals, which no column can be."""
    if is_interval(one) and operator == "+" and not is_interval(other):
        one, other = other, one
    if operator in ("*", "/", "%", "div", "mod", "pmod"):
        if is_interval(one) or is_interval(other):
            return None
        raise Mismatch(f"{operator} is not possible between {one} and {other}")
    if is_interval(other) and one in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return "TIMESTAMP" if one == "DATE" and other == "INTERVAL SECOND" else one
    if one == "DATE" and other in INTEGERS[:3]:
        return "DATE"
    return None


def bits(operator: str, types: list[str | None]) -> str | None:
    """The type of ``&``, ``|`` and ``^``: of integers only."""
    known = [name for name in types if name is not None]
    if len(known) < len(types) or "VOID" in known or "STRING" in known:
        return None
    if any(name not in INTEGERS for name in known):
        raise Mismatch(f"{operator} takes integers, not {' and '.join(dict.fromkeys(known))}")
    return max(known, key=INTEGERS.index)


def unary(sign: str, of: str | None) -> str | None:
    """The type of ``-x``, ``+x`` and ``~x``."""
    if of is None or of == "VOID" or is_interval(of):
        return None
    if sign == "~":
        return bits("~", [of])
    if of == "STRING":
        return "DOUBLE"
    if not is_number(of):
        raise Mismatch(f"{sign} is not possible before {of}")
    return of


def rounded(name: str, of: str, scale: int) -> str | None:
    """The type of ``abs``, ``round``, ``ceil`` and so on."""
    if of in ("VOID", "STRING") or is_interval(of):
        return None
    if not is_number(of):
        raise Mismatch(f"{name}() takes numbers, not {of}")
    if name in ("abs", "negative", "positive"):
        return of
    if name in ("round", "bround"):
        if not is_decimal(of):
            return of
        precision, places = digits(of)
        kept = min(places, scale)
        return f"DECIMAL({min(precision - places + 1 + kept, MAX_DIGITS)},{kept})" if scale >= 0 else None
    if scale:
        return None
    if is_decimal(of):
        precision, places = digits(of)
        return f"DECIMAL({min(precision - places + 1, MAX_DIGITS)},0)" if places else of
    return "BIGINT"
