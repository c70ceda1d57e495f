"""Values of rows as JSON has them, in commands as in topics; docs/operations.md says how they look."""

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _refused(value: Any) -> Any:
    raise TypeError(f"no JSON for {type(value).__name__}")


def plain(value: Any, other: Callable[[Any], Any] = _refused) -> Any:
    """The value in what JSON has: a decimal as text with all its digits, bytes as base64, a date ``2024-05-01``, a timestamp ISO 8601 in UTC
    with ``Z``, one without time zone the same without ``Z``, not-a-number and infinities as texts.

    Args:
        value: a value, also a nested one.
        other: what to make of a value of any other type.

    Raises:
        TypeError: it is of such a type, and nobody said what to make of it.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NO_NUMBERS[str(value)]
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
        case dt.date():
            return value.isoformat()
        case Mapping():
            return {str(k): plain(v, other) for k, v in value.items()}
        case list() | tuple():
            return [plain(v, other) for v in value]
    return other(value)


def json_text(value: Any, most: int | None = None) -> str:
    """The value as one text of JSON, for people: at most so many letters of it, and a value of any other type as Python prints it."""
    text = json.dumps(plain(value, str), ensure_ascii=False)
    return text if most is None or len(text) <= most else f"{text[:most]}..."
