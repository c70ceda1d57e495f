"""JSON as every command prints it; docs/operations.md says how values look."""

import base64
import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import click

_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def print_json(value: Any) -> None:
    """Prints one value on one line of standard output."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def print_lines(values: Iterable[Any]) -> None:
    """Prints one value a line."""
    for value in values:
        print_json(value)


def plain(value: Any) -> Any:
    """The value in what JSON has, as the records of Kafka sinks have it: a decimal as text with all its digits, bytes as base64, a date
    ``2024-05-01``, a timestamp ISO 8601 in UTC with ``Z``, one without time zone the same without ``Z``, not-a-number and infinities as texts.
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
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple():
            return [plain(v) for v in value]
    raise TypeError(f"no JSON for {type(value).__name__}")
