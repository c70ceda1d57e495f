"""Functions of dates and timestamps. A TIMESTAMP is looked at in UTC, so as a DuckDB TIMESTAMP without zone."""

from collections.abc import Sequence
from typing import Final

from rejoin.plan.model.durations import MAX_MICROS, MIN_MICROS
from rejoin.plan.sql.portable.casts import cast
from rejoin.plan.sql.portable.printed import TIMES, WHOLE, Made, as_type, guarded, quoted, unproven

DATE_PARTS: Final = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "day": "day({})",
    "dayofmonth": "day({})",
    "dayofweek": "(dayofweek({}) + 1)",
    "weekday": "(isodow({}) - 1)",
    "dayofyear": "dayofyear({})",
    "weekofyear": "weekofyear({})",
}
CLOCK_PARTS: Final = ("hour", "minute", "second")
FIELDS: Final = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "DOY": "dayofyear",
    "WEEK": "weekofyear",
    "HOUR": "hour",
    "MINUTE": "minute",
}
"""EXTRACT's fields and the functions that give the same."""

_EPOCHS: Final = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1_000, "timestamp_micros": 1}
EPOCHS: Final = tuple(_EPOCHS)
_NO_SUCH_YEAR: Final = "a year is not one of four digits"

_UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_SMALL_UNITS: Final = {**dict.fromkeys(("DAY", "DD"), "day"), "HOUR": "hour", "MINUTE": "minute", "SECOND": "second"}


def _date(name: str, made: Made) -> Made:
    if made.type not in ("DATE", "STRING", *TIMES):
        raise unproven(f"{name} of {made.type}")
    return cast(made, "DATE")


def _count(name: str, args: Sequence[Made], count: int) -> None:
    if len(args) != count:
        raise unproven(f"{name} with {len(args)} argument(s)")


def date_part(name: str, args: Sequence[Made]) -> Made:
    """``year`` and so on."""
    _count(name, args, 1)
    date = _date(name, args[0])
    return Made(as_type(DATE_PARTS[name].format(date.text), "INT"), "INT", date.raises)


def clock_part(name: str, args: Sequence[Made]) -> Made:
    """``hour`` and so on."""
    _count(name, args, 1)
    if args[0].type not in TIMES:
        raise unproven(f"{name} of {args[0].type}")
    return Made(as_type(f"{name}({cast(args[0], 'TIMESTAMP_NTZ').text})", "INT"), "INT", args[0].raises)


def moved(name: str, args: Sequence[Made]) -> Made:
    """``date_add`` and ``date_sub``. Years that not every text of a date can have are an error in DuckDB."""
    _count(name, args, 2)
    if args[1].type != "INT":
        raise unproven(f"{name} of {args[1].type}")
    own = "subtract" if name == "date_sub" else "add"
    return _day(f"{own}({_date(name, args[0]).text}, {args[1].text})")


def days_between(name: str, args: Sequence[Made]) -> Made:
    """``datediff``: from the second date to the first."""
    _count(name, args, 2)
    last, first = (_date(name, a) for a in args)
    return Made(as_type(f"subtract({last.text}, {first.text})", "INT"), "INT", first.raises or last.raises)


def months_added(args: Sequence[Made]) -> Made:
    """``add_months``; the last day of a shorter month stands for days that it lacks. Years as for ``moved``."""
    _count("add_months", args, 2)
    if args[1].type != "INT":
        raise unproven(f"add_months of {args[1].type}")
    return _day(as_type(f"add({_date('add_months', args[0]).text}, to_months({args[1].text}))", "DATE"))


def month_end(args: Sequence[Made]) -> Made:
    """``last_day``."""
    _count("last_day", args, 1)
    date = _date("last_day", args[0])
    return Made(f"last_day({date.text})", "DATE", date.raises)


def _unit(name: str, made: Made, units: dict[str, str]) -> str:
    if made.literal is None or made.literal.of != "STRING" or made.literal.value.upper() not in units:
        raise unproven(f"{name} to a unit that is no constant, or an unusual one")
    return quoted(units[made.literal.value.upper()])


def truncated_date(args: Sequence[Made]) -> Made:
    """``trunc(date, unit)``."""
    _count("trunc", args, 2)
    date, unit = _date("trunc", args[0]), _unit("trunc", args[1], _UNITS)
    return Made(as_type(f"date_trunc({unit}, {date.text})", "DATE"), "DATE", date.raises)


def truncated(args: Sequence[Made]) -> Made:
    """``date_trunc(unit, timestamp)``."""
    _count("date_trunc", args, 2)
    if args[1].type not in ("DATE", "TIMESTAMP"):
        raise unproven(f"date_trunc of {args[1].type}")
    unit, time = _unit("date_trunc", args[0], _UNITS | _SMALL_UNITS), cast(args[1], "TIMESTAMP_NTZ")
    return Made(as_type(f"date_trunc({unit}, {time.text})", "TIMESTAMP"), "TIMESTAMP", time.raises)


def to_date(args: Sequence[Made]) -> Made:
    """``to_date`` without a format is a cast."""
    _count("to_date", args, 1)
    return _date("to_date", args[0])


def timestamp(args: Sequence[Made]) -> Made:
    """``to_timestamp`` without a format is a cast."""
    _count("to_timestamp", args, 1)
    if args[0].type not in ("DATE", "STRING", *TIMES):
        raise unproven(f"to_timestamp of {args[0].type}")
    return cast(args[0], "TIMESTAMP")


def from_epoch(name: str, args: Sequence[Made]) -> Made:
    """``timestamp_millis`` and so on. Years that not every text of a time can have are an error in DuckDB."""
    _count(name, args, 1)
    if args[0].type not in WHOLE:
        raise unproven(f"{name} of {args[0].type}")
    return _instant(f"multiply({cast(args[0], 'BIGINT').text}, {_EPOCHS[name]})", "TIMESTAMP")


def shifted(sign: str, time: Made, micros: str) -> Made:
    """A time plus or minus an interval of so many microseconds."""
    if time.type not in TIMES:
        raise unproven(f"{sign} of {time.type} and an interval")
    return _instant(f"(epoch_us({cast(time, 'TIMESTAMP_NTZ').text}) {sign} {micros})", time.type)


def _day(date: str) -> Made:
    return Made(guarded(date, f"{date} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'", _NO_SUCH_YEAR), "DATE", raises=True)


def _instant(micros: str, kind: str) -> Made:
    known = guarded(micros, f"{micros} BETWEEN {MIN_MICROS} AND {MAX_MICROS}", _NO_SUCH_YEAR)
    made = "make_timestamptz" if kind == "TIMESTAMP" else "make_timestamp"
    return Made(f"{made}({known})", kind, raises=True)
