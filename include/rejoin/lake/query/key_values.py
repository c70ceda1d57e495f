"""Values of keys as PyIceberg's scans take them."""

import base64
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from pyiceberg.expressions import BooleanExpression, EqualTo, IsNull


def literal(value: Any, type_: str | None) -> Any:
    """A key value as PyIceberg takes it (None: null): it knows no Z for UTC, makes no bytes of a text (which are base64, as in sources), would cut ``1.5`` to 1,
    and does not take ``0.5`` for ``0.50``.

    Raises:
        ValueError: a text that is no value of its type.
    """
    if not isinstance(value, str):
        return value
    bits = {"INT": 31, "BIGINT": 63}.get(type_ or "")
    if bits is not None and not (re.fullmatch("[+-]?[0-9]{1,40}", value) and -(2**bits) <= int(value) < 2**bits):
        raise ValueError(type_)
    if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_ or ""):
        return _decimal(value, int(decimal[1]), int(decimal[2]))
    if type_ == "TIMESTAMP":
        return re.sub("Z$", "+00:00", value)
    return base64.b64decode(value, validate=True) if type_ == "BINARY" else value


def _decimal(value: str, precision: int, scale: int) -> Decimal:
    """With as many places as the column has. ValueError if that is another number, or none."""
    try:
        found = Decimal(value)
        made = found.quantize(Decimal(1).scaleb(-scale), context=Context(prec=precision))
    except InvalidOperation as error:
        raise ValueError(value) from error
    if made != found:
        raise ValueError(value)
    return made


def equal(column: str, value: Any) -> BooleanExpression:
    """A text is converted to the column's type when the scan binds it; None is null."""
    if value is None:
        return IsNull(column)  # type: ignore[call-arg, arg-type]
    return EqualTo(column, value)  # type: ignore[call-arg, arg-type]  # pydantic hides the positional form from mypy
