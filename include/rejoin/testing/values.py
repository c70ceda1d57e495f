"""Values and their texts, type by type. Two texts of one value (``12.5`` and ``12.50`` in a DECIMAL(10,2)) have one plain text."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from rejoin.lake.query.json_values import plain as as_json
from rejoin.testing.text import Cell

_DIGITS = Context(prec=76)
_BOOLEANS = {"true": True, "false": False}


def parsed(text: str, kind: pa.DataType) -> Any:
    """The value that a text is of a type. Times without an offset are UTC, bytes are base64, nested values JSON.

    Raises:
        ValueError: it is none.
    """
    if pa.types.is_nested(kind):
        return json.loads(text)
    try:
        value = _reader(kind)(text)
        pa.scalar(value, kind)
    except (ArithmeticError, KeyError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"no {kind}") from error
    return value


def plain(value: Any, kind: pa.DataType) -> str:
    """The one text of a value; of a nested one its JSON."""
    if pa.types.is_nested(kind):
        return json.dumps(as_json(value), ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if pa.types.is_float32(kind):
        return str(np.float32(value))
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") if value.tzinfo else value.isoformat(" ")
    return str(value)


def normal(cell: Cell, kind: pa.DataType) -> Cell:
    """The plain text of what a cell stands for; the cell itself if it is no value of the type."""
    try:
        return cell if cell is None else plain(parsed(cell, kind), kind)
    except ValueError:
        return cell


def json_text(cell: Cell, kind: pa.DataType) -> str:
    """The cell as JSON, as exact as it is written: what is no value of the type is a text, for the source to refuse."""
    try:
        value = None if cell is None else parsed(cell, kind)
    except ValueError:
        return json.dumps(cell)
    if isinstance(value, bool) or value is None or pa.types.is_nested(kind):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | Decimal) or (isinstance(value, float) and np.isfinite(value)):
        return f"{value:f}" if isinstance(value, Decimal) else repr(value)
    return json.dumps(cell)


def _reader(kind: pa.DataType) -> Callable[[str], Any]:
    if pa.types.is_boolean(kind):
        return lambda text: _BOOLEANS[text]
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_decimal(kind):
        return lambda text: _decimal(text, kind.scale)
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_timestamp(kind):
        return lambda text: _time(text, zoned=kind.tz is not None)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda text: base64.b64decode(text, validate=True)
    return str


def _decimal(text: str, scale: int) -> Decimal:
    """With all digits of the type, as Arrow has it."""
    value = Decimal(text)
    whole = value.quantize(Decimal(1).scaleb(-scale), context=_DIGITS)
    if value != whole:
        raise InvalidOperation
    return whole


def _time(text: str, *, zoned: bool) -> datetime:
    value = datetime.fromisoformat(text)
    if not zoned:
        return value.replace(tzinfo=None)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
