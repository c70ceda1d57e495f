"""PostgreSQL's errors -> ours. Only names leave the server's message: its detail holds values."""

import psycopg
from psycopg import errors as pg

from rejoin.errors import (
    RejoinError,
    SinkConflict,
    SinkDenied,
    SinkDown,
    SinkRecordRefused,
    SinkSchemaRefused,
    SinkSlow,
)

CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected, pg.LockNotAvailable)
"""What trying again may cure."""

_DENIED = (pg.InsufficientPrivilege, pg.InvalidAuthorizationSpecification)
_SCHEMA = (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidColumnReference, pg.DatatypeMismatch, pg.InvalidSchemaName, pg.WrongObjectType)
_SLOW = (pg.QueryCanceled, pg.IdleInTransactionSessionTimeout)


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
    if state.startswith(("22", "23")):
        return SinkRecordRefused(
            what,
            expected="a table that takes every row of the output",
            next_step=f"change the table or correct the input; {again}",
        )
    if isinstance(error, _SCHEMA) or state.startswith("42"):
        return SinkSchemaRefused(what, next_step="compare the table with `rejoin explain`")
    return SinkDown(f"{failed}; what was not committed comes again", next_step=again)
