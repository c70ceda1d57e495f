"""Whether a constant text can be cast to a type, and whether a pattern is one for Java: by Spark's rules, without Spark."""

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?\d+")
_FRACTION: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE: Final = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?")
_BOOLEANS: Final = frozenset(["t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"])
_RANGE: Final = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}


def casts(text: str, to: str) -> bool:
    """False if the cast of a text certainly fails in ANSI mode."""
    text = text.strip(" \t\n\r\f\v\0")
    if to in _RANGE:
        return _INTEGER.fullmatch(text) is not None and -_RANGE[to] <= int(text) < _RANGE[to]
    if to in ("FLOAT", "DOUBLE"):
        return _FRACTION.fullmatch(text) is not None
    if to.startswith("DECIMAL"):
        return _DECIMAL.fullmatch(text) is not None and _fits(Decimal(text), to)
    if to == "BOOLEAN":
        return text.lower() in _BOOLEANS
    if to in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return _is_time(text, to)
    return True


def _fits(value: Decimal, to: str) -> bool:
    """Whether a number, rounded to the places of a DECIMAL, has no more digits before the point than that."""
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", to)
    if found is None or not value:
        return True
    precision, scale = int(found[1]), int(found[2])
    with localcontext(prec=100):
        return value.adjusted() < precision and abs(value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)) < Decimal(10) ** (
            precision - scale
        )


def _is_time(text: str, to: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return to != "DATE" and re.match(r"[+-]?\d|T\d", text) is not None  # clocks, zones: too many forms to be sure
    year, month, day = (int(part) if part else 1 for part in match.groups())
    if not 1 <= year <= 9999:
        return True  # Spark knows such years, Python does not
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    clock = re.split(r"[ T]", text, maxsplit=1)[1:]
    if to == "DATE" or not clock or not clock[0]:
        return True
    found = _CLOCK.match(clock[0])
    return clock[0][0].isdigit() and (
        found is None or all(int(n) < most for n, most in zip(found.groups(), (24, 60, 60), strict=True) if n)
    )
