"""What Spark converts to what by itself in ANSI mode, and the type that several values have in common.

A type is its canonical name (``plan.sql.types``), or one that only a part of an expression can have: VOID (NULL), TINYINT,
SMALLINT, and INTERVAL DAY, SECOND or MONTH. None is an unknown type.
"""

import re
from collections.abc import Sequence
from typing import Final

from rejoin.plan.sql.nested import ARRAY, is_nested

INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_INTEGER_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
FRACTIONS: Final = ("FLOAT", "DOUBLE")
TIMES: Final = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")
"""Those that come later are wider: both a DATE and a TIMESTAMP_NTZ become a TIMESTAMP."""

EMPTY_ARRAY: Final = "ARRAY<VOID>"
"""The type of ``array()``: beside another array it is one of that type."""

MAX_DIGITS: Final = 38
_KEPT_SCALE: Final = 6


class Mismatch(Exception):
    """Spark would refuse these types; the message is a sentence."""


def is_decimal(name: str) -> bool:
    return name.startswith("DECIMAL")


def is_number(name: str) -> bool:
    return name in INTEGERS or name in FRACTIONS or is_decimal(name)


def is_interval(name: str) -> bool:
    return name.startswith("INTERVAL")


def is_array(name: str) -> bool:
    return name.startswith(f"{ARRAY}<")


def digits(name: str) -> tuple[int, int]:
    """Precision and scale of a DECIMAL, or of the DECIMAL that holds every value of an integer type."""
    match = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name)
    return (int(match[1]), int(match[2])) if match else (_INTEGER_DIGITS[name], 0)


def decimal(precision: int, scale: int) -> str:
    """The result of arithmetic: above 38 digits the fraction gives way, down to 6 places."""
    if precision > MAX_DIGITS:
        whole = precision - scale
        precision, scale = MAX_DIGITS, max(MAX_DIGITS - whole, min(scale, _KEPT_SCALE))
    return f"DECIMAL({precision},{scale})"


def wider_decimal(one: str, other: str) -> str:
    """The DECIMAL that holds both; above 38 digits the fraction gives way."""
    (p1, s1), (p2, s2) = digits(one), digits(other)
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    return f"DECIMAL({min(precision, MAX_DIGITS)},{max(0, scale - max(0, precision - MAX_DIGITS))})"


def wider_number(one: str, other: str) -> str:
    """The type in which two numbers are compared, added, and so on."""
    if one == other:
        return one
    if one in FRACTIONS or other in FRACTIONS:
        return "DOUBLE"
    if is_decimal(one) or is_decimal(other):
        return wider_decimal(one, other)
    return max(one, other, key=INTEGERS.index)


def common_of_two(one: str, other: str) -> str | None:
    """The type that both become where a choice between them is made or they are compared; None if there is none."""
    if other in (one, "VOID"):
        return one
    if one == "VOID":
        return other
    if is_number(one) and is_number(other):
        return wider_number(one, other)
    if EMPTY_ARRAY in (one, other):
        beside = other if one == EMPTY_ARRAY else one
        return beside if is_array(beside) else None
    if "STRING" in (one, other):
        return _beside_text(other if one == "STRING" else one)
    if one in TIMES and other in TIMES:
        return max(one, other, key=TIMES.index)
    return None


def _beside_text(other: str) -> str | None:
    """What a text and a value of another type both become: the text is cast, not the value."""
    if other in INTEGERS:
        return "BIGINT"
    if is_number(other):
        return "DOUBLE"
    return None if is_interval(other) or is_nested(other) else other


def common(types: Sequence[str]) -> str | None:
    """The type that all become: texts are looked at last, as in Spark. None if there is none."""
    ordered = [t for t in types if t != "STRING"] + [t for t in types if t == "STRING"] if len(types) > 2 else list(types)
    found: str | None = ordered[0]
    for name in ordered[1:]:
        found = common_of_two(found, name) if found is not None else None
    return found


_CAST_FROM: Final = {
    "VOID": "any",
    "STRING": "BOOLEAN number BINARY DATE TIMESTAMP TIMESTAMP_NTZ STRING",
    "BOOLEAN": "BOOLEAN number STRING",
    "number": "BOOLEAN number STRING TIMESTAMP",
    "BINARY": "BINARY STRING",
    "DATE": "DATE STRING TIMESTAMP TIMESTAMP_NTZ",
    "TIMESTAMP": "DATE STRING TIMESTAMP TIMESTAMP_NTZ number",
    "TIMESTAMP_NTZ": "DATE STRING TIMESTAMP TIMESTAMP_NTZ",
}


def castable(of: str, to: str) -> bool:
    """Whether an explicit CAST between two types exists in ANSI mode."""
    if is_nested(of) or is_nested(to):
        return (is_nested(of) and (is_nested(to) or to == "STRING")) or of == "VOID"
    allowed = _CAST_FROM["number" if is_number(of) else of].split()
    return "any" in allowed or ("number" if is_number(to) else to) in allowed
