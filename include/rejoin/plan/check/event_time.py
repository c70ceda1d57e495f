"""The event time of a stream: one of its columns, or an expression over them, which is computed as a record is read and becomes a column."""

from dataclasses import dataclass
from typing import Final

from rejoin.plan.check.tables import check_column_name
from rejoin.plan.model.added_columns import PLACE
from rejoin.plan.model.column_names import by_name, folded, spelled
from rejoin.plan.model.plan import Column
from rejoin.plan.model.problems import BAD_EXPRESSION, BAD_OPTION, BAD_SCHEMA, Reporter, did_you_mean
from rejoin.plan.sql.expressions import Expression, Scope, Side, column, expression, select_item
from rejoin.plan.sql.portable import NotPortable, printed
from rejoin.plan.sql.syntax import parse

NAME: Final = "event_time"
"""The column of a time that is computed, unless the expression says ``AS``."""
TYPES: Final = ("TIMESTAMP", "TIMESTAMP_NTZ")


@dataclass(frozen=True)
class EventTime:
    """The column, and the text over ``t`` that gives it; None: the source delivers it."""

    column: Column
    sql: str | None = None


def event_time(declared: object, columns: tuple[Column, ...], report: Reporter, *, complete: bool) -> EventTime | None:
    """What ``event_time=`` says over the columns of a stream; None after a report, or where an earlier one hides it."""
    found, report = tuple(c for c in columns if c != PLACE), report.about("event_time: ")
    every, named = {c.name: c for c in found}, str(declared).strip("`")
    known = by_name(every).get(folded(named))
    if known is not None:
        if known.type in TYPES:
            return EventTime(known)
        hint = ", or an expression over it, such as timestamp_millis(...)" if known.type in ("INT", "BIGINT") else ""
        report(BAD_OPTION, f"column {known.name!r} is {known.type}; expected TIMESTAMP or TIMESTAMP_NTZ{hint}")
    elif not isinstance(declared, str) or named.isidentifier():
        if complete:
            report(BAD_OPTION, f"the schema has no column {declared!r}{did_you_mean(str(declared), every)}")
    elif complete:
        made = _computed(declared, found, report.about(f"{declared!r}: "))
        if made is None or spelled(made.column.name, (c.name for c in columns)) is None:
            return made
        report(BAD_SCHEMA, f"its value becomes a column {made.column.name!r}, and the stream has one, too; write ... AS another_name")
    return None


def _computed(declared: str, found: tuple[Column, ...], report: Reporter) -> EventTime | None:
    item = parse(declared, report)
    if item is None:
        return None
    scope, name = Scope({"": Side("the schema", {c.name: c.type for c in found})}), item.alias or NAME
    made = expression(declared, scope, report) if item.alias is None else dict(select_item(declared, scope, report)).get(name)
    if made is None or not check_column_name(name, report):
        return None
    return _checked(name, made, found, report)


def _checked(name: str, made: Expression, found: tuple[Column, ...], report: Reporter) -> EventTime | None:
    sql = made.replace(lambda ref: column("t", ref.column, None)).sql
    try:
        kind = printed(sql, {"t": {c.name: c.type or "" for c in found}}).type
    except NotPortable as reason:
        report(BAD_EXPRESSION, f"{reason}; an event time is computed where files are read, without Spark")
        return None
    if kind not in TYPES:
        report(BAD_EXPRESSION, f"it is {kind}; expected TIMESTAMP or TIMESTAMP_NTZ")
        return None
    return EventTime(Column(name, kind), sql)
