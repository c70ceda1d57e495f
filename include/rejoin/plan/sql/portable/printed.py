"""What printing makes: a piece of DuckDB SQL whose type in Spark is known."""

from dataclasses import dataclass
from typing import Final

from rejoin.plan.sql.nested import ARRAY, MAP, STRUCT, parts_of
from rejoin.plan.sql.typing.coercion import is_decimal
from rejoin.plan.sql.typing.cursor import Term

NULL: Final = "VOID"
"""The type of a NULL that nothing gives a type to."""

_TYPES: Final = {
    "BOOLEAN": "BOOLEAN",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "STRING": "VARCHAR",
    "BINARY": "BLOB",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMPTZ",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
UTC: Final = "SET GLOBAL TimeZone = 'UTC'"
"""For a database and all its cursors: without GLOBAL a cursor has the time zone of the machine."""
DISABLED: Final = "statistics_propagation"
"""An optimizer. Where it knows from the smallest and largest values of a table that a comparison is always false, or that a value is never null,
DuckDB does not look at the rows, and misses their errors.
"""
SETTINGS: Final = (UTC, f"SET disabled_optimizers = '{DISABLED}'")
"""What a connection has to have set."""

WHOLE: Final = ("INT", "BIGINT")
TIMES: Final = ("TIMESTAMP", "TIMESTAMP_NTZ")


class NotPortable(Exception):
    """An expression that is not proven to mean the same in DuckDB; the message is the end of a sentence."""


@dataclass(frozen=True)
class Printed:
    """An expression. ``text``: for DuckDB; ``type``: what Spark calls its type, in capitals (``DECIMAL(10,2)``)."""

    text: str
    type: str


@dataclass(frozen=True)
class Made:
    """A part of an expression. ``text`` can stand anywhere without parentheses around it. ``raises``: some values give an error in Spark.

    ``literal``: the constant that it is, if it is one as written.
    """

    text: str
    type: str
    raises: bool = False
    literal: Term | None = None


def duckdb_type(kind: str) -> str:
    """DuckDB's name of a Spark type.

    Raises:
        NotPortable: it is none that a column may have.
    """
    if is_decimal(kind):
        return kind
    if made := parts_of(kind):
        inner = [(name, duckdb_type(of)) for name, of in made.parts]
        fields = ", ".join(f'"{name}" {of}' for name, of in inner)
        return {ARRAY: f"{inner[-1][1]}[]", STRUCT: f"STRUCT({fields})", MAP: f"MAP(VARCHAR, {inner[-1][1]})"}[made.kind]
    if kind not in _TYPES:
        raise NotPortable(f"{'NULL without a type' if kind == NULL else kind} is not proven equal in DuckDB")
    return _TYPES[kind]


def as_type(text: str, kind: str) -> str:
    """DuckDB's own cast."""
    return f"CAST({text} AS {duckdb_type(kind)})"


def quoted(value: str) -> str:
    """A text as a literal."""
    return "'" + value.replace("'", "''") + "'"


def guarded(text: str, condition: str, error: str) -> str:
    """``text``, or an error for rows whose condition is false. A NULL passes."""
    return f"CASE WHEN ({condition}) = false THEN error({quoted(error)}) ELSE {text} END"


def unproven(what: str) -> NotPortable:
    return NotPortable(f"{what} is not proven equal in DuckDB")
