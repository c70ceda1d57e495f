"""Casts, by the rules of Spark's ANSI mode: explicit ones, and those that Spark makes by itself."""

import re
from collections.abc import Callable
from typing import Final

from rejoin.plan.sql.portable.printed import NULL, WHOLE, Made, as_type, guarded, unproven
from rejoin.plan.sql.typing import constants
from rejoin.plan.sql.typing.coercion import EMPTY_ARRAY, MAX_DIGITS, digits, is_array, is_decimal

_SIGN: Final = "[+-]?"
_DAY: Final = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_ZONE: Final = "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])?"
_FORMS: Final = {
    "INT": f"{_SIGN}[0-9]+",
    "BIGINT": f"{_SIGN}[0-9]+",
    "DATE": f"{_DAY}([ T](?s:.*))?",
    "TIMESTAMP": f"{_DAY}([ T]{_CLOCK}{_ZONE})?",
    "TIMESTAMP_NTZ": f"{_DAY}([ T]{_CLOCK})?",
}
"""What a text must look like to be cast. Spark takes more (spaces around, a zone, a year alone); those raise an error in DuckDB."""

_TRUE: Final = "'t', 'true', 'y', 'yes', '1'"
_FALSE: Final = "'f', 'false', 'n', 'no', '0'"
_NO_SUCH_FORM: Final = "a text has a form that only Spark casts"
_NO_SUCH_YEAR: Final = "a year is not one of four digits"

Cast = Callable[[Made, str], tuple[str, bool]]
"""What is cast and its new type -> the text, and whether some values raise an error."""


def cast(made: Made, to: str) -> Made:
    """``CAST(made AS to)``.

    Raises:
        NotPortable: this cast is not proven equal.
    """
    if made.type == to:
        return made
    if made.type == NULL:
        return Made(as_type("NULL", to), to)
    if made.type == EMPTY_ARRAY and is_array(to):
        return Made(as_type(made.text, to), to)
    known = _CASTS.get((_family(made.type), _family(to)))
    if known is None:
        raise unproven(f"a cast from {made.type} to {to}")
    text, raises = known(made, to)
    if raises and made.literal is not None:
        raise unproven(f"a cast of the constant {made.literal.value!r} to {to}")  # Spark may raise the error before it looks at rows
    return Made(text, to, raises or made.raises)


def _family(kind: str) -> str:
    return "DECIMAL" if is_decimal(kind) else kind


def _plain(made: Made, to: str) -> tuple[str, bool]:
    return as_type(made.text, to), False


def _narrow(made: Made, to: str) -> tuple[str, bool]:
    return as_type(made.text, to), True


def _to_decimal(made: Made, to: str) -> tuple[str, bool]:
    """Rounded half up; an error if digits before the point do not fit."""
    (p1, s1), (p2, s2) = digits(made.type), digits(to)
    if made.literal is not None and made.type in WHOLE:
        p1 = len(str(abs(int(made.literal.value))))
    return as_type(made.text, to), p1 - s1 > p2 - s2 or (p1 - s1 == p2 - s2 and s1 > s2)


def _cut(made: Made, to: str) -> tuple[str, bool]:
    """DuckDB rounds, Spark cuts off."""
    return as_type(f"trunc({made.text})", to), True


def _not_zero(made: Made, _: str) -> tuple[str, bool]:
    return f"({made.text} <> 0)", False


def _midnight(made: Made, _: str) -> tuple[str, bool]:
    return as_type(as_type(made.text, "TIMESTAMP_NTZ"), "TIMESTAMP"), False


def _day(made: Made, _: str) -> tuple[str, bool]:
    return as_type(as_type(made.text, "TIMESTAMP_NTZ"), "DATE"), False


def _decimal_text(made: Made, to: str) -> tuple[str, bool]:
    """DuckDB leaves the zero before the point out where no digit can be there."""
    precision, scale = digits(made.type)
    if precision > scale:
        return as_type(made.text, to), False
    if precision == MAX_DIGITS:
        raise unproven(f"a cast from {made.type} to STRING")
    return as_type(as_type(made.text, f"DECIMAL({precision + 1},{scale})"), to), False


def _time_text(made: Made, to: str) -> tuple[str, bool]:
    """Spark writes a sign before years of more than four digits."""
    plain = as_type(made.text, "TIMESTAMP_NTZ") if made.type == "TIMESTAMP" else made.text
    return guarded(as_type(plain, to), f"year({plain}) BETWEEN 1 AND 9999", _NO_SUCH_YEAR), False


def _from_text(made: Made, to: str) -> tuple[str, bool]:
    form = _FORMS.get(to) or f"{_SIGN}[0-9]+(\\.[0-9]+)?"
    constant = made.literal.value if made.literal is not None else ""
    if made.literal is not None and re.fullmatch(form, constant) and constants.casts(constant, to):
        known, raises = made.text, False
    else:
        known, raises = guarded(made.text, f"regexp_full_match({made.text}, '{form}')", _NO_SUCH_FORM), True
    return as_type(f"regexp_extract({known}, '{_DAY}')" if to == "DATE" else known, to), raises


def _truth_from_text(made: Made, _: str) -> tuple[str, bool]:
    lower = f"lower({made.text})"
    known = guarded(lower, f"{lower} IN ({_TRUE}, {_FALSE})", _NO_SUCH_FORM)
    return f"({known} IN ({_TRUE}))", True


def _casts() -> dict[tuple[str, str], Cast]:
    found: dict[tuple[str, str], Cast] = {}
    for name, pairs in (
        (_plain, "INT-BIGINT BOOLEAN-INT BOOLEAN-BIGINT INT-DOUBLE BIGINT-DOUBLE FLOAT-DOUBLE"),
        (_plain, "DATE-TIMESTAMP_NTZ TIMESTAMP_NTZ-DATE TIMESTAMP-TIMESTAMP_NTZ TIMESTAMP_NTZ-TIMESTAMP"),
        (_plain, "BOOLEAN-STRING INT-STRING BIGINT-STRING"),
        (_narrow, "BIGINT-INT"),
        (_to_decimal, "INT-DECIMAL BIGINT-DECIMAL DECIMAL-DECIMAL"),
        (_cut, "DECIMAL-INT DECIMAL-BIGINT"),
        (_not_zero, "INT-BOOLEAN BIGINT-BOOLEAN DECIMAL-BOOLEAN"),
        (_midnight, "DATE-TIMESTAMP"),
        (_day, "TIMESTAMP-DATE"),
        (_decimal_text, "DECIMAL-STRING"),
        (_time_text, "DATE-STRING TIMESTAMP-STRING TIMESTAMP_NTZ-STRING"),
        (_from_text, "STRING-INT STRING-BIGINT STRING-DECIMAL STRING-DATE STRING-TIMESTAMP STRING-TIMESTAMP_NTZ"),
        (_truth_from_text, "STRING-BOOLEAN"),
    ):
        found |= {(of, to): name for of, _, to in (pair.partition("-") for pair in pairs.split())}
    return found


_CASTS: Final = _casts()
