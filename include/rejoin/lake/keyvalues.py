"""Values of keys as PyIceberg's scans take them."""

import base64
import re
from typing import Any

from pyiceberg.expressions import BooleanExpression, EqualTo, IsNull


def literal(value: Any, type_: str | None) -> Any:
    """A key value as PyIceberg takes it (None: null): it knows no Z for UTC, makes no bytes of a text (which are base64, as in sources), and would cut ``1.5`` to 1.

    Raises:
        ValueError: a text that is no value of its type.
    """
    if not isinstance(value, str):
        return value
    bits = {"INT": 31, "BIGINT": 63}.get(type_ or "")
    if bits is not None and not (re.fullmatch("[+-]?[0-9]{1,40}", value) and -(2**bits) <= int(value) < 2**bits):
        raise ValueError(type_)
    if type_ == "TIMESTAMP":
        return re.sub("Z$", "+00:00", value)
    return base64.b64decode(value, validate=True) if type_ == "BINARY" else value


def equal(column: str, value: Any) -> BooleanExpression:
    """A text is converted to the column's type when the scan binds it; None is null."""
    if value is None:
        return IsNull(column)  # type: ignore[call-arg, arg-type]
    return EqualTo(column, value)  # type: ignore[call-arg, arg-type]  # pydantic hides the positional form from mypy
