"""Values that stand in lines of one shape, as SQL of DuckDB: what ``values.converter`` makes of them, where that is beyond doubt.

``converter`` is the definition, as it is for ``column_values``; what is not told here, or does not meet the condition, is read by it.
"""

from dataclasses import dataclass

from rejoin.plan.model.durations import MAX_DAY, MAX_MICROS, MIN_DAY, MIN_MICROS
from rejoin.plan.sql.portable import duckdb_type
from rejoin.sources.decode.column_values import FLOAT_TEXT
from rejoin.sources.decode.line_shape import DECIMAL, FLAG, FLOATING, NULL, NUMBER, OCTETS, TEXT, WHOLE
from rejoin.sources.decode.values import decimal_of

_DAY = "[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = rf"{_DAY}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,6}})?(Z|\+00(:00)?)?"

_OCTETS = "([A-Za-z0-9+/]{4}){0,4}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_WIDEST = 38
"""Digits of DuckDB's widest decimals."""


@dataclass(frozen=True)
class Typed:
    """SQL texts of a value in its declared type, null where none is written, and of the condition under which it is the right one. The first
    is an error for no line, whatever that holds.
    """

    value: str
    holds: str = "true"


def typed(kind: str, written: str, type_: str, *, unit: str = "us", numbers: bool = False) -> Typed | None:
    """A value of a column; None if values of this kind are not told here.

    Args:
        kind: of the place in the shape.
        written: SQL text of what stands there, null for null.
        type_: the declared type.
        unit: of whole numbers that are instants.
        numbers: texts of decimals are numbers, never base64.
    """
    target = duckdb_type(type_)
    if kind == NULL:
        return Typed(f"CAST(NULL AS {target})")
    decimal = decimal_of(type_)
    if kind == DECIMAL:
        kind, written = NUMBER, f"CAST({written} AS VARCHAR)"
    if decimal:
        return _decimal(kind, written, target, *decimal, numbers=numbers)
    if (kind, type_) in ((TEXT, "STRING"), (WHOLE, "BIGINT"), (FLAG, "BOOLEAN"), (OCTETS, "BINARY")):
        return Typed(written)
    if kind == FLOATING and type_ in FLOAT_TEXT:
        value = f"TRY_CAST({written} AS {target})"
        return Typed(value, f"coalesce({value} = {written}, false)")
    if (kind, type_) == (WHOLE, "BOOLEAN"):
        return Typed(f"{written} = 1", f"{written} BETWEEN 0 AND 1")
    if kind == WHOLE and type_ == "INT":
        return Typed(f"TRY_CAST({written} AS INTEGER)", f"{written} BETWEEN {-(2**31)} AND {2**31 - 1}")
    if kind == NUMBER and type_ in ("INT", "BIGINT"):
        value = f"TRY_CAST({written} AS {target})"
        return Typed(value, f"{_matches(written, '-?[0-9]{1,18}')} AND {value} IS NOT NULL")
    if type_ in FLOAT_TEXT and kind in (WHOLE, NUMBER):
        return _floating(f"CAST({written} AS VARCHAR)", type_)
    if type_ in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return _time(kind, written, type_, target, unit)
    return None


def unscaled(written: str, type_: str) -> Typed | None:
    """A decimal whose bytes are written as base64 of up to 15 of them, at the scale of its type; None of types that are too wide for that."""
    target, (precision, scale) = duckdb_type(type_), decimal_of(type_) or (0, 0)
    if precision + scale > _WIDEST:
        return None
    # Every part is an error for no text by itself: what occurs twice is computed once, and not inside of the TRY that stands around it.
    octets = f"TRY(from_base64({written}))"
    number = f"TRY_CAST(concat('0x', hex({octets})) AS HUGEINT)"
    negative = f"CASE WHEN hex({octets}) >= '8' THEN CAST(1 AS HUGEINT) << (8 * least(octet_length({octets}), 15)) ELSE 0 END"
    value = f"TRY_CAST({number} - {negative} AS DECIMAL({precision},0))"
    if scale:
        value = f"TRY_CAST({value} * CAST('0.{'1'.zfill(scale)}' AS DECIMAL({scale},{scale})) AS {target})"
    return Typed(value, f"{_matches(written, _OCTETS)} AND {value} IS NOT NULL")


_FLAG, _TRUE = "[Tt]([Rr][Uu][Ee])?|[Ff]([Aa][Ll][Ss][Ee])?|[01]", "[Tt].*|1"


def of_text(written: str, type_: str) -> Typed | None:
    """What ``values.csv_converter`` makes of a text, where that is beyond doubt. ``written``: SQL of the text, null for null."""
    if type_ == "BOOLEAN":
        # No list of texts: of a long one DuckDB makes a join, and the rows come in another order than the lines.
        return Typed(f"regexp_full_match({written}, '{_TRUE}')", _matches(written, _FLAG))
    return typed(NUMBER if type_ in ("INT", "BIGINT", "FLOAT", "DOUBLE") else TEXT, written, type_, numbers=True)


def _decimal(kind: str, written: str, target: str, precision: int, scale: int, *, numbers: bool) -> Typed | None:
    if kind not in (TEXT, WHOLE, NUMBER) or (kind == TEXT and not (numbers or scale)):
        return None
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    part = rf"\.[0-9]{{1,{scale}}}" if scale else ""
    # A point is what base64 does not have: such a text is a number whatever else the column holds.
    pattern = f"-?{whole}{part}" if kind == TEXT and not numbers else f"-?{whole}({part})?"
    text = f"CAST({written} AS VARCHAR)"
    return Typed(f"TRY_CAST({text} AS {target})", _matches(text, pattern))


def _floating(text: str, type_: str) -> Typed:
    double = f"TRY_CAST({text} AS DOUBLE)"
    if type_ == "DOUBLE":
        return Typed(double, _matches(text, FLOAT_TEXT[type_]))
    value = f"TRY_CAST({double} AS FLOAT)"
    as_double = f"{_matches(text, FLOAT_TEXT['DOUBLE'])} AND {value} = {double}"  # in the digits of a double, as some writers do
    return Typed(value, f"({_matches(text, FLOAT_TEXT[type_])} OR ({as_double}))")


def _time(kind: str, written: str, type_: str, target: str, unit: str) -> Typed | None:
    if kind == TEXT:
        value = f"TRY_CAST({written} AS {target})"
        return Typed(value, f"{_matches(written, _DAY if type_ == 'DATE' else _CLOCK)} AND {value} IS NOT NULL")
    if kind != WHOLE:
        return None
    if type_ == "DATE":
        inside = f"{written} BETWEEN {MIN_DAY} AND {MAX_DAY}"
        return Typed(f"DATE '1970-01-01' + CASE WHEN {inside} THEN TRY_CAST({written} AS INTEGER) END", inside)
    made = "make_timestamp" if type_ == "TIMESTAMP_NTZ" else "make_timestamptz"
    if unit == "ns":
        return Typed(f"{made}({written} // 1000)", f"{written} % 1000 = 0")
    factor = {"us": 1, "ms": 1000}.get(unit)
    if factor is None:
        return None
    low, high = -(-MIN_MICROS // factor), MAX_MICROS // factor
    inside = f"{written} BETWEEN {low} AND {high}"
    return Typed(f"{made}(CASE WHEN {inside} THEN {written} * {factor} END)", inside)


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}')"
