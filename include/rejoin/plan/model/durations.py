"""Lengths of time as users write them, in microseconds, and the times that there are."""

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
MIN_MICROS: Final = -62_135_596_800_000_000
MAX_MICROS: Final = 253_402_300_799_999_999
"""The years 1 to 9999, which every engine that reads the tables can hold, in microseconds since the epoch."""
MIN_DAY: Final = MIN_MICROS // _UNITS["day"]
MAX_DAY: Final = MAX_MICROS // _UNITS["day"]
"""The same in days."""
EXPECTED: Final = "a text such as '10 seconds', '1 hour 30 minutes' or '250 milliseconds', or a timedelta; ten years at most"
FOREVER: Final = 1 << 61
"""Microseconds that no time reaches, with room to add to."""
LONGEST: Final = 3_660 * _UNITS["day"]
"""Ten years: times of any stream, moved by so much, stay within what 64 bits hold."""


def micros(written: object) -> int | None:
    """The microseconds; None if it is no length of time (``EXPECTED``)."""
    found = signed(written)
    return found if found is not None and found >= 0 else None


def signed(written: object) -> int | None:
    """The same where it may be below zero, with a minus before all of it."""
    if isinstance(written, str) and written.lstrip().startswith("-"):
        found = micros(written.lstrip()[1:])
        return None if found is None else -found
    if isinstance(written, timedelta):
        found = written // timedelta(microseconds=1)
    elif isinstance(written, str) and re.fullmatch(rf"\s*({_PART.pattern}\s*)+", written.lower()):
        found = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(written.lower()))
    else:
        return None
    return found if abs(found) <= LONGEST else None


def text(length: int) -> str:
    """A length in microseconds, as users write it."""
    unit = next((name for name, size in reversed(_UNITS.items()) if length and length % size == 0), "second")
    number = length // _UNITS[unit]
    return f"{number} {unit}{'' if abs(number) == 1 else 's'}"
