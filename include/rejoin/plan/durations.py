"""Lengths of time as users write them, in microseconds."""

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART: Final = re.compile(rf"(\d+)\s*({'|'.join(_UNITS)})s?")
EXPECTED: Final = "a text such as '10 seconds', '1 hour 30 minutes' or '250 milliseconds', or a timedelta, not below zero"
LONGEST: Final = 3_660 * _UNITS["day"]
"""Ten years: times of any stream, moved by so much, stay within what 64 bits hold."""


def micros(written: object) -> int | None:
    """The microseconds; None if it is no length of time (``EXPECTED``)."""
    if isinstance(written, timedelta):
        found = written // timedelta(microseconds=1)
    elif isinstance(written, str) and re.fullmatch(rf"\s*({_PART.pattern}\s*)+", written.lower()):
        found = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(written.lower()))
    else:
        return None
    return found if 0 <= found <= LONGEST else None
