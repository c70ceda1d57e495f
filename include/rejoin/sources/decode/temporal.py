"""Dates and instants of change events and files -> days and microseconds since 1970-01-01, exactly or not at all.

Supported are the years 0001 to 9999, which every engine that reads the tables can hold. Beyond lie two cases: the texts and
numbers by which PostgreSQL and Debezium say "infinity" (VALUE_INFINITE), and all other dates (VALUE_RANGE).
Texts are ISO 8601; a text without offset is UTC.
"""

import re
from datetime import UTC, datetime, timedelta

from rejoin.errors import BadRecord
from rejoin.plan.model.durations import MAX_DAY, MAX_MICROS, MIN_DAY, MIN_MICROS

DAY = 86_400_000_000
INT64 = (-(2**63), 2**63 - 1)
# Debezium 3.6 on PostgreSQL: +-infinity is 9223372036825200000 / -9223372036832400000 us and -2147472692 days.
_INFINITE_MICROS = 9_223_372_036_800_000_000
_INFINITE_DAYS = 2_147_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ISO = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,18}))?)?)? ?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)


def day(days: int, column: str) -> int:
    """Days since 1970-01-01 if they lie in the supported years."""
    if MIN_DAY <= days <= MAX_DAY:
        return days
    if abs(days) >= _INFINITE_DAYS:
        raise infinite(column)
    raise _out_of_range(column)


def micros(value: int, column: str) -> int:
    """Microseconds since 1970-01-01T00:00:00Z if they lie in the supported years."""
    if MIN_MICROS <= value <= MAX_MICROS:
        return value
    if abs(value) >= _INFINITE_MICROS:
        raise infinite(column)
    raise _out_of_range(column)


def from_unit(value: int, unit: str, column: str) -> int:
    """An epoch number in ``unit`` (days, ms, us, ns) -> microseconds."""
    if unit == "us":
        return micros(value, column)
    if unit == "ms":
        return micros(value * 1000, column)
    if unit == "days":
        return day(value, column) * DAY
    if value in INT64:  # nanoseconds have no room for infinity; the connector clips
        raise infinite(column)
    whole, rest = divmod(value, 1000)
    if rest:
        raise BadRecord("VALUE_ROUNDED", f"column {column!r}: the timestamp has nanoseconds, a TIMESTAMP holds microseconds")
    return micros(whole, column)


def parse(text: str, column: str) -> tuple[int, int | None]:
    """ISO text -> (microseconds of the written wall clock, offset in minutes or None). Years and calendar are checked."""
    if len(text) == 27 and text[26] == "Z" and text[19] == "." and text[10] == "T" and text[4] == "-" == text[7]:
        try:
            return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND, 0
        except ValueError:
            pass  # the long way finds out why
    if text.lstrip("+-").lower() in ("infinity", "inf"):
        raise infinite(column)
    match = _ISO.fullmatch(text)
    if match is None:
        raise BadRecord("VALUE_TYPE", f"column {column!r}: expected an ISO 8601 date or timestamp")
    year, month, dom, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not (1 <= month <= 12 and 1 <= dom <= _month_length(year, month) and hour < 24 and minute < 60 and second < 60):
        raise BadRecord("VALUE_RANGE", f"column {column!r}: no such date or time in the calendar")
    fraction = match[7] or ""
    if fraction[6:].strip("0"):
        raise BadRecord("VALUE_ROUNDED", f"column {column!r}: the timestamp is finer than microseconds")
    clock = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return _days_since_epoch(year, month, dom) * DAY + clock, _offset(match[8], column)


def instant(text: str, column: str) -> int:
    """ISO text -> microseconds since the epoch; an offset is converted to UTC."""
    clock, offset = parse(text, column)
    return micros(clock - (offset or 0) * 60_000_000, column)


def wall_clock(text: str, column: str) -> int:
    """ISO text -> microseconds of a timestamp without zone. ``Z`` is allowed: Debezium's isostring mode always writes it."""
    clock, offset = parse(text, column)
    if offset:
        raise BadRecord("VALUE_TYPE", f"column {column!r}: a TIMESTAMP_NTZ cannot take a text with an offset other than Z")
    return micros(clock, column)


def date_text(text: str, column: str) -> int:
    """ISO text -> days. A time of day other than midnight is refused; an offset says nothing about a date and is ignored."""
    return whole_day(parse(text, column)[0], column)


def whole_day(value: int, column: str) -> int:
    """Microseconds -> days, if it is midnight."""
    days, rest = divmod(value, DAY)
    days = day(days, column)
    if rest:
        raise BadRecord("VALUE_ROUNDED", f"column {column!r}: a DATE cannot take a time of day")
    return days


def infinite(column: str) -> BadRecord:
    return BadRecord("VALUE_INFINITE", f"column {column!r}: the value is infinite or NaN, which its type cannot hold")


def _out_of_range(column: str) -> BadRecord:
    return BadRecord("VALUE_RANGE", f"column {column!r}: the date lies outside the years 0001 to 9999")


def _offset(text: str | None, column: str) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
    if hours > 18 or minutes > 59:
        raise BadRecord("VALUE_RANGE", f"column {column!r}: no such offset from UTC")
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_epoch(year: int, month: int, dom: int) -> int:
    """Proleptic Gregorian calendar for any year, so that the dates Debezium writes for infinity are recognised as text too."""
    year -= month <= 2
    era_year = year % 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + dom - 1
    return (year // 400) * 146097 + era_year * 365 + era_year // 4 - era_year // 100 + day_of_year - 719468
