"""Values of JSON and CSV -> the Python values from which Arrow builds a column of the declared type.

``converter`` and ``csv_converter`` return one function a column, built once a table. A function either returns exactly the value
that was written or raises ``BadRecord``, whose text names the column and the type but never the value:

* VALUE_TYPE       the JSON kind or text does not fit the type
* VALUE_RANGE      an overflow, a date that does not exist or lies outside the years 0001 to 9999
* VALUE_INFINITE   an infinite date, or NaN or infinity as a DECIMAL
* VALUE_ROUNDED    the type has fewer digits than the value
* VALUE_AMBIGUOUS  a DECIMAL without schema whose text is both a number and base64 (see ``_decimal_text``)

Nulls never reach a converter. DATE becomes days, TIMESTAMP and TIMESTAMP_NTZ become microseconds (Python int), -0.0 stays -0.0.
FLOAT and DOUBLE take the nearest binary value of a number that is as long as such types print (9 and 17 digits), and the texts
"NaN", "Infinity" and "-Infinity", because that is how Kafka's JsonConverter writes them.
BOOLEAN also takes 0 and 1: MySQL's TINYINT(1) arrives either way, depending on when the table was made.
BINARY is base64; of the other ``binary.handling.mode`` only base64-url-safe can be told apart, so hex must not be used.
"""

import binascii
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from rejoin.errors import BadRecord
from rejoin.plan.sql.nested import parts_of
from rejoin.sources.decode import temporal
from rejoin.sources.decode.bad_values import overflow, rounded, wrong_type
from rejoin.sources.decode.nested_values import nested

Convert = Callable[[Any], Any]
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
AMBIGUOUS = "VALUE_AMBIGUOUS"
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
NUMBER_TEXT, ANY_TEXT = "number", "text"  # types of texts, which Connect does not have: of a number; of what a text without schema may be
# The unit of an integer by the name of its Kafka Connect schema.
UNITS = {
    "io.debezium.time.Date": "days",
    "org.apache.kafka.connect.data.Date": "days",
    "io.debezium.time.Timestamp": "ms",
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_EXACT = Context(prec=200)


@dataclass(frozen=True)
class Field:
    """What a Kafka Connect schema says of one field: its type, its logical name, the scale of a decimal, and the same of its ``parts`` by name."""

    type: str | None = None
    name: str | None = None
    scale: int | None = None
    parts: tuple[tuple[str, "Field"], ...] = ()


_NO_SCHEMA = Field()


def decimal_of(type_: str) -> tuple[int, int] | None:
    """(precision, scale) of a DECIMAL type, None for any other type."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def converter(
    column: str, type_: str, *, unit: str = "us", field: Field | None = None, base64_decimals: bool = True, seen: set[str] | None = None
) -> Convert:
    """The function that turns a JSON value of ``column`` into the declared type.

    Args:
        unit: of integer timestamps that have no schema name ("ms", "us", "ns").
        field: the event's own schema of this field; None if events carry no schema.
        base64_decimals: whether a DECIMAL may be base64 bytes (Debezium) or texts are always numbers (files).
        seen: the function's memory, "number" and "base64" if texts that are only one of both were read (``_decimal_text``).
    """
    known = field or _NO_SCHEMA
    if known.type == NUMBER_TEXT:
        of_number = converter(column, type_, unit=unit, base64_decimals=False)
        return lambda value: of_number(_number(value) if type(value) is str else value)
    if made := parts_of(type_):
        told = dict(known.parts)

        def part(place: str, name: str, of: str) -> Convert:
            return converter(place, of, unit=unit, field=told.get(name), base64_decimals=base64_decimals)

        return nested(column, made, part)
    decimal = decimal_of(type_)
    if decimal:
        return _decimal(column, *decimal, known, set() if seen is None else seen, base64=base64_decimals)
    if type_ in ("INT", "BIGINT"):
        return _integer(column, type_, 31 if type_ == "INT" else 63, known)
    if type_ in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return _time(column, type_, UNITS.get(known.name or "", "days" if type_ == "DATE" else unit))
    if type_ in ("FLOAT", "DOUBLE"):
        return _floating(column, type_)
    plain = {"BOOLEAN": _boolean(column), "STRING": _string(column), "BINARY": _binary(column, known)}
    if type_ not in plain:
        raise ValueError(f"column {column!r}: rejoin cannot read the type {type_!r} from a source")
    return plain[type_]


def csv_converter(column: str, type_: str) -> Convert:
    """The function that turns the text of one CSV field into the declared type. White space is not stripped."""
    convert = converter(column, type_, base64_decimals=False)
    if type_ == "BOOLEAN":
        words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
        return lambda text: convert(words.get(text.lower(), text))
    if type_ in ("INT", "BIGINT", "FLOAT", "DOUBLE"):
        return lambda text: convert(_number(text))
    return convert


def _number(text: str) -> int | Decimal | str:
    """The number that ``text`` writes; any other text unchanged, for the converter to judge. ``-0`` keeps its sign."""
    if not NUMBER.fullmatch(text):
        return text
    digits = text.lstrip("+-")
    return int(text) if digits.isdigit() and len(digits) < 40 and (digits.strip("0") or text[0] != "-") else Decimal(text)


def _boolean(column: str) -> Convert:
    def convert(value: Any) -> bool:
        if type(value) in (bool, int) and value in (0, 1):
            return bool(value)
        raise wrong_type(column, "BOOLEAN", value)

    return convert


def _string(column: str) -> Convert:
    def convert(value: Any) -> str:
        if type(value) is str:
            return value
        raise wrong_type(column, "STRING", value)

    return convert


def _binary(column: str, field: Field) -> Convert:
    def convert(value: Any) -> bytes:
        if type(value) is not str or field.type == "string":
            raise wrong_type(column, "BINARY (base64)", value)
        data = _base64(value.replace("-", "+").replace("_", "/"))
        if data is None:
            raise BadRecord("VALUE_TYPE", f"column {column!r}: the text is not base64")
        return data

    return convert


def _base64(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii.Error, or a character outside ASCII
        return None


def _integer(column: str, type_: str, bits: int, field: Field) -> Convert:
    low, high = -(2**bits), 2**bits - 1
    scale = (field.scale or 0) if field.name == CONNECT_DECIMAL else None

    def convert(value: Any) -> int:
        if type(value) is int:
            if low <= value <= high:
                return value
            raise overflow(column, type_)
        if type(value) is str and scale is not None:  # e.g. MySQL BIGINT UNSIGNED in precise mode
            value = unscaled(column, value, scale)
        if type(value) is not Decimal:
            raise wrong_type(column, type_, value)
        if not value.is_finite() or value.adjusted() > 20:
            raise overflow(column, type_)
        if (value.adjusted() < -20 and value) or value != (whole := int(value)):
            raise rounded(column, type_)
        return convert(whole)

    return convert


def _floating(column: str, type_: str) -> Convert:
    digits = 9 if type_ == "FLOAT" else 17
    special = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

    def convert(value: Any) -> float:
        if type(value) is str and value in special:
            return special[value]
        if type(value) is not Decimal and type(value) is not int:
            raise wrong_type(column, type_, value)
        try:
            double = float(value)
            found = struct.unpack("<f", struct.pack("<f", double))[0] if type_ == "FLOAT" else double
        except OverflowError:
            raise overflow(column, type_) from None
        if found in (float("inf"), float("-inf")) or (not found and value):
            raise overflow(column, type_)
        if type_ == "FLOAT" and found == double and type(value) is Decimal:
            return double  # a FLOAT that was written with the digits of a DOUBLE
        if Decimal(found) != value and (type(value) is int or _digits(value) > digits):
            raise rounded(column, type_)
        return double

    return convert


def _digits(value: Decimal | int) -> int:
    return len(Decimal(value).normalize(_EXACT).as_tuple().digits)


def _time(column: str, type_: str, unit: str) -> Convert:
    text = {"DATE": temporal.date_text, "TIMESTAMP": temporal.instant, "TIMESTAMP_NTZ": temporal.wall_clock}[type_]

    def convert(value: Any) -> int:
        if type(value) is int:
            if type_ != "DATE":
                return temporal.from_unit(value, unit, column)
            if unit == "days":
                return temporal.day(value, column)
            return temporal.whole_day(temporal.from_unit(value, unit, column), column)
        if type(value) is str:
            return text(value, column)
        raise wrong_type(column, type_, value)

    return convert


def unscaled(column: str, text: str, scale: int) -> Decimal:
    """Base64 of a big-endian two's complement integer, times 10 to the power of -scale."""
    data = _base64(text)
    if not data:
        raise BadRecord("VALUE_TYPE", f"column {column!r}: the text is not the base64 of a decimal's bytes")
    return _EXACT.scaleb(Decimal(int.from_bytes(data, "big", signed=True)), -scale)


def _decimal(column: str, precision: int, scale: int, field: Field, seen: set[str], *, base64: bool) -> Convert:
    type_ = f"DECIMAL({precision},{scale})"
    unit = Decimal((0, (1,), -scale))
    text = _decimal_text(column, scale, field, seen, base64=base64)

    def convert(value: Any) -> Decimal:
        kind = type(value)
        if kind is str:
            number = text(value)
        elif kind in (int, Decimal):
            number = Decimal(value)
        elif kind is dict and type(value.get("scale")) is int and type(value.get("value")) is str and -1000 < value["scale"] < 1000:
            number = unscaled(column, value["value"], value["scale"])
        else:
            raise wrong_type(column, type_, value)
        if not number.is_finite():
            raise temporal.infinite(column)
        if not number:
            return Decimal(0)
        if number.adjusted() >= precision - scale:
            raise overflow(column, type_)
        short = number.quantize(unit, context=_EXACT)
        if short != number:
            raise rounded(column, type_)
        return short

    return convert


def _decimal_text(column: str, scale: int, field: Field, seen: set[str], *, base64: bool) -> Callable[[str], Decimal]:
    """How the text of a decimal is read: by the schema if there is one, else by what the text can be.

    Without schema, ``decimal.handling.mode`` decides whether "1234" is a number or three bytes. A text that can be only one of
    both (12.34, -5, "EtaA") also decides for the texts of this column that can be both; as long as none was seen these are
    refused (VALUE_AMBIGUOUS), and the decoder tries them again at the end of their batch.
    """
    if field.name == CONNECT_DECIMAL and field.type == "bytes":
        return lambda text: unscaled(column, text, scale if field.scale is None else field.scale)
    only_numbers = not base64 or field.type == "string"

    def read(text: str) -> Decimal:
        is_number = text[:1] in "+-.0123456789" and NUMBER.fullmatch(text) is not None
        is_base64 = not only_numbers and _base64(text) is not None
        if is_number and is_base64:
            if len(seen) != 1:
                reason = f"column {column!r}: the text is a number as well as base64; let events carry schemas"
                raise BadRecord(AMBIGUOUS, reason)
            is_number = "number" in seen
        elif is_number or (is_base64 and text.lower() != "infinity"):
            seen.add("number" if is_number else "base64")
        if is_number:
            return Decimal(text)
        if text.lower().lstrip("+-") in ("nan", "infinity"):
            raise temporal.infinite(column)
        if is_base64:
            return unscaled(column, text, scale)
        raise BadRecord("VALUE_TYPE", f"column {column!r}: the text is no decimal number")

    return read
