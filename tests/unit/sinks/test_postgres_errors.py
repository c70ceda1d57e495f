"""Which of PostgreSQL's errors is over by itself, and which somebody has to act upon."""

import psycopg
import pytest
from psycopg import errors as pg

from rejoin.errors import RejoinError, SinkConflict, SinkDenied, SinkDown, SinkError, SinkRecordRefused, SinkSchemaRefused, SinkSlow
from rejoin.sinks.postgres.errors import coded

OF_STATES: dict[str, type[RejoinError]] = {
    "08006": SinkDown,  # connection failure
    "40003": SinkDown,  # whether the statement was completed is not known
    "40P01": SinkConflict,
    "53100": SinkDown,  # disk full
    "55006": SinkDown,  # object in use
    "25006": SinkDown,  # a server that only reads: for a while after a failover
    "57P01": SinkDown,  # the server is shut down
    "57014": SinkSlow,
    "58030": SinkDown,  # input or output
    "XX000": SinkDown,
    "22003": SinkRecordRefused,
    "23514": SinkRecordRefused,
    "44000": SinkRecordRefused,  # the check option of a view
    "54000": SinkRecordRefused,  # an index row that is too large
    "P0001": SinkRecordRefused,  # RAISE in a trigger
    "28P01": SinkDenied,
    "42P01": SinkSchemaRefused,
    "0A000": SinkError,  # a view that cannot be written to
    "P0002": SinkError,
}


@pytest.mark.parametrize(("state", "expected"), OF_STATES.items(), ids=OF_STATES.keys())
def test_an_error_that_no_retry_cures_is_terminal(state: str, expected: type[RejoinError]) -> None:
    found = coded(pg.lookup(state)("row (1, secret)"), "out.pg", "a.t")
    assert type(found) is expected
    assert state in str(found) and "secret" not in str(found)


def test_a_text_with_nul_is_refused_by_the_client_and_is_the_records_fault() -> None:
    assert type(coded(psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), "out.pg", "a.t")) is SinkRecordRefused


def test_without_a_state_a_connection_may_come_back_and_a_mistake_does_not_go_away() -> None:
    assert type(coded(psycopg.OperationalError("consuming input failed"), "out.pg", "a.t")) is SinkDown
    assert type(coded(psycopg.ProgrammingError("no encoding"), "out.pg", "a.t")) is SinkError
