"""PostgreSQL's errors -> ours. Only names leave the server's message: its detail holds values."""

import psycopg
from psycopg import errors as pg

from rejoin.errors import (
    RejoinError,
    SinkConflict,
    SinkDenied,
    SinkDown,
    SinkError,
    SinkRecordRefused,
    SinkSchemaRefused,
    SinkSlow,
)

CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected, pg.LockNotAvailable)
"""What trying again may cure."""

_DENIED = (pg.InsufficientPrivilege, pg.InvalidAuthorizationSpecification)
_SCHEMA = (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidColumnReference, pg.DatatypeMismatch, pg.InvalidSchemaName, pg.WrongObjectType)
_SLOW = (pg.QueryCanceled, pg.IdleInTransactionSessionTimeout)
_RECORD = ("22", "23", "44", "54", "P0001")
"""Values, constraints, the check of a view, limits of size, and RAISE of a trigger: this row would be refused again."""
_PASSING = ("08", "25006", "40", "53", "55", "57", "58", "XX")
"""Connection, a server that only reads, rollback, resources, state of an object, intervention of an operator, system and internal errors: each may be over the next time."""


def coded(error: psycopg.Error, sink: str, table: str, tries: int = 1) -> RejoinError:
    """The error to raise for a server's error."""
    state, found = error.sqlstate or "", error.diag
    names = [f"{what} {name!r}" for what, name in (("constraint", found.constraint_name), ("column", found.column_name)) if name]
    said = f"{type(error).__name__}{f' ({state})' if state else ''}{', ' + ', '.join(names) if names else ''}"
    failed = f"sink {sink!r}: writing to table {table!r} failed: {said}"
    what = f"{failed}; nothing of this transaction was committed"
    again = f"the next run tries again, and so does `rejoin publish --sink {sink}`"
    if isinstance(error, CONFLICTS):
        return SinkConflict(f"{what}; it was tried {tries} times", expected="no other writer on these rows for so long", next_step=again)
    if isinstance(error, _DENIED) or state.startswith("28"):
        return SinkDenied(what, expected="rights to read, write and create tables in the schema", next_step="check user and rights")
    if isinstance(error, _SLOW):
        return SinkSlow(what, expected="an answer within statement_timeout", next_step=again)
    if state.startswith(_RECORD) or (isinstance(error, psycopg.DataError) and not state):  # the second is the client's, of a text with NUL
        return SinkRecordRefused(
            what,
            expected="a table that takes every row of the output",
            next_step=f"change the table or correct the input; {again}",
        )
    if isinstance(error, _SCHEMA) or state.startswith("42"):
        return SinkSchemaRefused(what, next_step="compare the table with `rejoin explain`")
    if state.startswith(_PASSING) or (isinstance(error, psycopg.OperationalError) and not state):
        return SinkDown(f"{failed}; what was not committed comes again", next_step=again)
    return SinkError(what, next_step=f"look up the code in PostgreSQL's list of errors and correct what it says; {again}")
