"""What a table declaration says: names, key, typed columns, and of a stream its times. Checked here, once; of its source in ``sources``.

The event time of a stream is one of its columns, or an expression over them, which is computed as a record is read and becomes a column.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from rejoin.declare.declarations import NameDeclaration, StreamDeclaration
from rejoin.plan.check.relations import Timed
from rejoin.plan.model import durations
from rejoin.plan.model.added_columns import PLACE
from rejoin.plan.model.column_names import by_name, folded, repeated, spelled
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.policy import DECLARABLE, Policy, Refresh
from rejoin.plan.model.problems import BAD_EXPRESSION, BAD_OPTION, BAD_SCHEMA, DUPLICATE_NAME, UNSAFE_NAME, Reporter, did_you_mean
from rejoin.plan.sql import nested, types
from rejoin.plan.sql.expressions import Expression, Scope, Side, expression, select_item
from rejoin.plan.sql.expressions import column as column_of
from rejoin.plan.sql.portable import NotPortable, printed
from rejoin.plan.sql.syntax import parse

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COMPUTED: Final = "event_time"
"""The column of a time that is computed, unless the expression says ``AS``."""
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_NTZ")


def check_name(name: object, what: str, report: Reporter) -> bool:
    """Whether a table, output or topology name is safe in every catalog, file system and task id."""
    if isinstance(name, str) and _NAME.fullmatch(name) and "__" not in name:
        return True
    rule = "a lower-case letter, then lower-case letters, digits and single underscores, at most 63"
    report(UNSAFE_NAME, f"{what} name {name!r} is not safe; expected {rule} ('__' is reserved for rejoin)")
    return False


def check_column_name(name: str, report: Reporter) -> bool:
    if name.startswith("_"):
        report(UNSAFE_NAME, f"column name {name!r} starts with an underscore, which is reserved for rejoin's own columns")
        return False
    if not _COLUMN.fullmatch(name):
        report(UNSAFE_NAME, f"column name {name!r} is not safe; expected a letter, then letters, digits and underscores")
        return False
    return True


def texts(value: object) -> tuple[str, ...] | None:
    """One text or a list of texts, as a tuple; None if it is something else or empty."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
        return tuple(value)
    return None


# --- columns and key -------------------------------------------------------------------------------------------------


def columns(schema: object, report: Reporter) -> tuple[Column, ...]:
    """The columns of ``"order_id BIGINT, total DECIMAL(10,2)"``; those with a mistake are reported and left out."""
    if not isinstance(schema, str) or not schema.strip():
        report(BAD_SCHEMA, "schema must be a text such as 'order_id BIGINT, total DECIMAL(10,2)'")
        return ()
    parsed = [_column(part, report) for part in nested.without_brackets(schema)]
    found = tuple(column for column in parsed if column is not None)
    for name in repeated(column.name for column in found):
        report(DUPLICATE_NAME, f"column {name!r} stands twice in the schema (names are compared without regard to case)")
    return found


def _column(part: str, report: Reporter) -> Column | None:
    match = re.fullmatch(r"(`[^`]+`|\S+)\s+(.+)", part, re.DOTALL)
    if match is None:
        report(BAD_SCHEMA, f"schema: {part!r} is not a column name and a type")
        return None
    name, written = match[1].strip("`"), match[2].strip()
    if re.search(r"\s(NOT\s+NULL|COMMENT|DEFAULT|GENERATED)\b", " " + written, re.IGNORECASE):
        report(BAD_SCHEMA, f"schema: column {name!r}: only a name and a type are possible, not {written!r}")
        return None
    of_type = types.canonical(written)
    if of_type is None:
        report(BAD_SCHEMA, f"schema: column {name!r}: {types.refused(written)}")
    return Column(name, of_type) if check_column_name(name, report) and of_type is not None else None


def with_place(found: tuple[Column, ...], report: Reporter) -> tuple[Column, ...]:
    """The columns of a stream whose records are told by where they were read."""
    if spelled(PLACE.name, (column.name for column in found)):
        report(
            BAD_SCHEMA,
            f"without id= a stream has a column {PLACE.name!r}, the place of each record, and the schema has one, too; name the id",
        )
        return found
    return (PLACE, *found)


def key(declared: object, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> tuple[str, ...]:
    """The key columns in their declared spelling; empty after a report."""
    names = texts(declared)
    if names is None:
        report(BAD_SCHEMA, "key must be a column name or a list of column names")
        return ()
    types = {column.name: column.type for column in found}
    for name in repeated(names):
        report(BAD_SCHEMA, f"key: column {name!r} stands twice")
    known = list[str]()
    for name in names:
        column = spelled(name, types)
        known += [] if column is None else [column]
        if column is None and complete:
            report(BAD_SCHEMA, f"key: the schema has no column {name!r}{did_you_mean(name, types)}")
        elif column is not None and nested.is_nested(types[column] or ""):
            report(BAD_SCHEMA, f"key: column {name!r} is {types[column]}, and a key is made of single values; name columns that hold them")
        elif column is not None and types[column] in ("FLOAT", "DOUBLE"):
            report(BAD_SCHEMA, f"key: column {name!r} is {types[column]}, and rounded numbers cannot be keys; use DECIMAL or BIGINT")
    return tuple(known) if len(known) == len(names) and not repeated(names) else ()


def optional(
    declared: object, key_columns: tuple[str, ...], found: tuple[Column, ...], report: Reporter, *, complete: bool
) -> tuple[str, ...]:
    """The columns that the source may lack, in their declared spelling; those with a mistake are reported and left out."""
    names = () if declared in ((), []) else texts(declared)
    if names is None:
        report(BAD_OPTION, "optional must be a column name or a list of column names")
        return ()
    every, known = [column.name for column in found], list[str]()
    for name in names:
        column = spelled(name, every)
        if column is None and complete:
            report(BAD_OPTION, f"optional: the schema has no column {name!r}{did_you_mean(name, every)}")
        elif column in key_columns:
            report(BAD_OPTION, f"optional: {name!r} is a key column, and every row needs its key")
        known += [] if column is None else [column]
    return tuple(known)


def retention(declared: StreamDeclaration, report: Reporter) -> int | None:
    """How many microseconds older than the newest record of its stream a record may be; None: any age."""
    if declared.retention is None:
        return None
    kept, late = durations.micros(declared.retention), durations.micros(declared.lateness)
    if kept is None:
        report(BAD_OPTION, f"retention={declared.retention!r}: expected {durations.EXPECTED}")
    elif late is not None and kept < late:
        report(
            BAD_OPTION,
            f"retention={declared.retention!r} is less than lateness={declared.lateness!r}: records that others wait for would be refused",
        )
    return kept


def stream(
    declared: StreamDeclaration, found: tuple[Column, ...], report: Reporter, *, complete: bool
) -> tuple[tuple[str, ...], int] | None:
    """The columns by which a stream is joined, and its lateness in microseconds; None after a report."""
    every, late = [column.name for column in found], durations.micros(declared.lateness)
    names = () if declared.on is None else texts(declared.on)
    if late is None:
        report(BAD_OPTION, f"lateness={declared.lateness!r}: expected {durations.EXPECTED}")
    if names is None:
        report(BAD_OPTION, "key of a stream: a column name or a list of column names is expected")
    known = {name: spelled(name, every) for name in names or ()}
    for name in [name for name, column in known.items() if column is None and complete]:
        report(BAD_OPTION, f"key: the schema has no column {name!r}{did_you_mean(name, every)}")
    if late is None or names is None:
        return None
    return tuple(column for column in known.values() if column is not None), late


def timed(table: Table, declared: StreamDeclaration | None, report: Reporter, *, complete: bool) -> tuple[Table, Timed | None]:
    """The table with what makes it a stream."""
    if declared is None:
        return table, None
    joined, kept = stream(declared, table.columns, report, complete=complete), retention(declared, report)
    time = event_time(declared.event_time, table.columns, report, complete=complete)
    if time is None:
        return replace(table, retention=kept), None
    columns = table.columns if time.sql is None else (*table.columns, time.column)
    made = replace(table, columns=columns, event_time=time.column.name, computed_time=time.sql, retention=kept)
    return made, None if joined is None else Timed(time.column.name, *joined)


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
        if known.type in _TIMES:
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
    scope, name = Scope({"": Side("the schema", {c.name: c.type for c in found})}), item.alias or COMPUTED
    made = expression(declared, scope, report) if item.alias is None else dict(select_item(declared, scope, report)).get(name)
    if made is None or not check_column_name(name, report):
        return None
    return _checked(name, made, found, report)


def _checked(name: str, made: Expression, found: tuple[Column, ...], report: Reporter) -> EventTime | None:
    sql = made.replace(lambda ref: column_of("t", ref.column, None)).sql
    try:
        kind = printed(sql, {"t": {c.name: c.type or "" for c in found}}).type
    except NotPortable as reason:
        report(BAD_EXPRESSION, f"{reason}; an event time is computed where files are read, without Spark")
        return None
    if kind not in _TIMES:
        report(BAD_EXPRESSION, f"it is {kind}; expected TIMESTAMP or TIMESTAMP_NTZ")
        return None
    return EventTime(Column(name, kind), sql)


def policy(declaration: NameDeclaration, report: Reporter) -> Policy:
    """How an output is maintained. The default after a report."""
    found = Policy()
    if declaration.refresh not in DECLARABLE:
        report(BAD_OPTION, f"refresh must be one of {', '.join(map(repr, DECLARABLE))}")
    else:
        found = replace(found, refresh=Refresh(declaration.refresh))
    most = declaration.max_members
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        report(BAD_OPTION, f"max_members is {most!r}; expected a whole number from 1")
    else:
        found = replace(found, max_members=most)
    return replace(found, max_change_share=share("max_change_share", {"max_change_share": declaration.max_change_share}, report))


def share(name: str, options: dict[str, object], report: Reporter) -> float:
    """A share from 0 to 1; 0 after a report."""
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        report(BAD_OPTION, f"{name} is {value!r}; expected a share from 0 to 1")
        return 0.0
    return float(value)
