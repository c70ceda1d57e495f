"""Errors of engines are told without their words: whatever raised them, and however they hang together."""

import sqlite3
import traceback
from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

from rejoin.errors import EngineFailed, LedgerConflict, NotComputable, RejoinError, SinkRecordRefused, SourceMissing, Unexpected
from rejoin.failures.engine_errors import TRACE, named_errors, of_a_row, told
from rejoin.plan.sql.suspects import Suspect
from rejoin.steps.validate.great_expectations import _raised

CANARY = "kanary4711"
SUSPECTS = (Suspect("column 'a' of output 'o'", "CAST(l.`a` AS INT)"), Suspect("column 'b' of output 'o'", "l.`b` / l.`c`"))
SPARK = f"""An error occurred while calling o107.append.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0 (TID 0) (192.0.2.2 executor driver):
org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value '{CANARY} [LIKE_A_CONDITION] SQLSTATE: 99999' of the type "STRING"
cannot be cast to "INT" because it is malformed. SQLSTATE: 22018
== SQL (line 1, position 19) ==
named_struct('a', CAST(l.`a` AS INT))
                  ^^^^^^^^^^^^^^^^^^
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.invalidInputInCastToNumberError(QueryExecutionErrors.scala:147)
"""
REGEX = f": org.apache.spark.SparkException: Job aborted: java.util.regex.PatternSyntaxException: Unclosed character class\n[{CANARY}\n ^"


class FromSpark(Exception):
    """As py4j raises what Java did."""


FromSpark.__module__ = "py4j.protocol"


def _spark(words: str = SPARK) -> None:
    raise FromSpark(words)


def _database() -> None:
    with create_engine("sqlite://").begin() as db:
        db.execute(text("CREATE TABLE t (k TEXT PRIMARY KEY)"))
        for _ in range(2):
            db.execute(text("INSERT INTO t VALUES (:k)"), {"k": CANARY})


def _silent() -> None:
    create_engine(f"sqlite:////nowhere/{CANARY}").connect()


def _chained() -> None:
    try:
        raise sqlite3.IntegrityError(f"Key (k)=({CANARY}) already exists")
    except sqlite3.IntegrityError as error:
        raise SinkRecordRefused("a table refuses a record") from error


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (lambda: duckdb.sql(f"SELECT CAST('{CANARY}' AS INT)").fetchall(), EngineFailed, "DuckDB says ConversionException"),
        (lambda: pa.array([CANARY]).cast(pa.int64()), EngineFailed, "Arrow says ArrowInvalid"),
        (_database, EngineFailed, "IntegrityError"),
        (_silent, LedgerConflict, "did not answer"),
        (lambda: {}[CANARY], Unexpected, "KeyError"),
        (_chained, SinkRecordRefused, "a table refuses a record"),
        (_spark, NotComputable, "Spark says CAST_INVALID_INPUT (SQLSTATE 22018)"),
        (lambda: _spark(REGEX), NotComputable, "Spark says java.util.regex.PatternSyntaxException"),
    ],
)
def test_fault_b_an_error_of_an_engine_is_told_without_its_words(work: Callable[[], object], kind: type[RejoinError], said: str) -> None:
    with pytest.raises(kind) as caught, named_errors("step resolve.o", SUSPECTS):
        work()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert said in told(caught.value)
    assert told(caught.value).startswith(f"{kind.code} ")
    assert caught.value.__cause__ is None


def test_fault_b_the_message_names_the_expression_that_spark_points_at_and_no_other() -> None:
    with pytest.raises(NotComputable) as caught, named_errors("step resolve.o", SUSPECTS):
        _spark()
    assert "column 'a' of output 'o' = CAST(l.`a` AS INT)" in str(caught.value)
    assert "column 'b'" not in str(caught.value)
    assert "LIKE_A_CONDITION" not in str(caught.value)


def test_fault_b_the_words_of_engines_are_shown_when_asked_for_and_never_in_what_the_ledger_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACE, "1")
    with pytest.raises(NotComputable) as caught, named_errors("step resolve.o", SUSPECTS):
        _spark()
    assert CANARY in "".join(traceback.format_exception(caught.value))
    assert CANARY not in told(caught.value)
    assert told(KeyError(CANARY)) == told(KeyError("x"))


def test_errors_of_ours_and_of_analysis_are_no_errors_of_a_row() -> None:
    assert of_a_row(FromSpark(SPARK))
    assert not of_a_row(FromSpark("[UNRESOLVED_COLUMN] no such column. SQLSTATE: 42703"))
    assert not of_a_row(SourceMissing("x"))
    assert not of_a_row(ValueError("[CAST_INVALID_INPUT] SQLSTATE: 22018"))


def test_fault_b_of_what_great_expectations_could_not_evaluate_only_the_class_is_kept() -> None:
    trace = f'Traceback (most recent call last):\n  File "x.py", line 1\npandas.errors.ParserError: {CANARY}\n'
    assert _raised({"exception_traceback": trace, "exception_message": CANARY}) == "pandas.errors.ParserError"
    assert _raised({"exception_message": CANARY}) == "an exception"
