"""What is wrong with a value that does not fit its column. The reasons hold no values."""

from decimal import Decimal
from typing import Any, Final

from rejoin.errors import BadRecord

_JSON_KINDS: Final = {str: "a string", int: "a number", Decimal: "a number", bool: "a boolean", dict: "an object", list: "an array"}


def wrong_type(column: str, type_: str, value: Any) -> BadRecord:
    return BadRecord("VALUE_TYPE", f"column {column!r}: {_JSON_KINDS.get(type(value), 'a value')} does not fit {type_}")


def overflow(column: str, type_: str) -> BadRecord:
    return BadRecord("VALUE_RANGE", f"column {column!r}: the value is outside the range of {type_}")


def rounded(column: str, type_: str) -> BadRecord:
    return BadRecord("VALUE_ROUNDED", f"column {column!r}: the value has more digits than {type_} holds")
