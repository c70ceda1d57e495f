"""What a table declaration says: names, key, typed columns. Checked here, once; of its source in ``sources``."""

import re
from dataclasses import replace
from typing import Final

from rejoin.declare.declarations import NameDeclaration, StreamDeclaration
from rejoin.plan.model import durations
from rejoin.plan.model.added_columns import PLACE
from rejoin.plan.model.column_names import repeated, spelled
from rejoin.plan.model.plan import Column
from rejoin.plan.model.policy import DECLARABLE, Policy, Refresh
from rejoin.plan.model.problems import BAD_OPTION, BAD_SCHEMA, DUPLICATE_NAME, UNSAFE_NAME, Reporter, did_you_mean
from rejoin.plan.sql import types

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
    parsed = [_column(part.strip(), report) for part in re.split(r",(?![^(]*\))", schema)]
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


def policy(declaration: NameDeclaration, report: Reporter) -> Policy:
    """How an output is maintained. The default after a report."""
    found = Policy()
    if declaration.refresh not in DECLARABLE:
        report(BAD_OPTION, f"refresh must be one of {', '.join(map(repr, DECLARABLE))}")
    else:
        found = replace(found, refresh=Refresh(declaration.refresh))
    return replace(found, max_change_share=share("max_change_share", {"max_change_share": declaration.max_change_share}, report))


def share(name: str, options: dict[str, object], report: Reporter) -> float:
    """A share from 0 to 1; 0 after a report."""
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        report(BAD_OPTION, f"{name} is {value!r}; expected a share from 0 to 1")
        return 0.0
    return float(value)
