"""What a run says of an error that it did not raise on purpose: where, which engine, which kind; never the engine's own words.

Spark, DuckDB, Arrow and databases quote the values that they stumble over. What is printed, logged, shown on the page or kept in the
ledger is made here, of names that the plan holds and of the engine's codes. ``REJOIN_TRACE=1`` shows the engine's words and the trace on the
terminal and in logs; the ledger never has them.
"""

import os
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rejoin.errors import EngineFailed, LedgerConflict, NotComputable, RejoinError, Unexpected
from rejoin.failures import extras
from rejoin.failures.stores import of_a_store
from rejoin.plan.sql.suspects import Suspect

TRACE = "REJOIN_TRACE"
"""The environment variable that shows the words of engines, row values included."""

_DATABASE = "the database of the catalog or the ledger"
_ENGINES = {
    "pyspark": "Spark",
    "py4j": "Spark",
    "grpc": "Spark Connect",
    "duckdb": "DuckDB",
    "_duckdb": "DuckDB",
    "pyarrow": "Arrow",
    "pyiceberg": "PyIceberg",
    "great_expectations": "Great Expectations",
    "sqlalchemy": _DATABASE,
    "sqlite3": "SQLite",
    "psycopg": "PostgreSQL",
    "confluent_kafka": "Kafka's client",
}
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\] ")
_SQLSTATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b")
_JAVA = re.compile(r"\b(?:[a-z][a-z0-9_]*\.)+[A-Z]\w*(?:Exception|Error)\b")
_WRAPPERS = ("org.apache.spark.SparkException", "java.util.concurrent.ExecutionException")
_COMPUTING = ("22", "P0")
"""Classes of SQLSTATE: data exceptions, and what ``raise_error`` and ``assert_true`` of an expression raise."""
_COMPUTING_IN_JAVA = ("java.util.regex.PatternSyntaxException",)


@dataclass(frozen=True)
class Kind:
    """What an engine calls an error: its own class and, of Spark, condition and SQLSTATE."""

    engine: str
    name: str
    sqlstate: str = ""

    @property
    def of_a_row(self) -> bool:
        """Whether an expression could not be computed for a row's values."""
        return self.sqlstate.startswith(_COMPUTING) or self.name in _COMPUTING_IN_JAVA


def tracing() -> bool:
    """Whether the words of engines may be shown."""
    return bool(os.environ.get(TRACE))


def kind_of(error: BaseException) -> Kind | None:
    """What the engine calls it; None if no engine raised it."""
    engine = _ENGINES.get(type(error).__module__.partition(".")[0])
    if engine is None:
        return None
    if engine not in ("Spark", "Spark Connect"):
        return Kind(engine, type(error).__name__)
    condition, state = _asked(error, "getCondition"), _asked(error, "getSqlState")
    text = str(error)
    # What an action on a frame raises may wrap what its task raised. Values come after the condition, never before.
    if not state and (found := _CONDITION.search(text)):
        condition = found[1]
        state = states[-1] if (states := _SQLSTATE.findall(text)) else ""
    java = next((j for j in _JAVA.findall(text) if j not in _WRAPPERS), "")
    return Kind(engine, condition or java or type(error).__name__, state or "")


def of_a_row(error: BaseException) -> bool:
    """Whether an expression could not be computed for a row's values: the other rows are fine."""
    kind = kind_of(error)
    return kind is not None and kind.of_a_row


def named(error: BaseException, where: str, suspects: Sequence[Suspect] = ()) -> RejoinError:
    """The error to raise instead: it holds no word of the engine.

    Args:
        error: what was raised.
        where: what was being done.
        suspects: the expressions that were being computed, if any.
    """
    if isinstance(error, RejoinError):
        return error
    if isinstance(error, ModuleNotFoundError) and (lacking := extras.missing(error, where)):
        return lacking
    kind = kind_of(error)
    if not (kind and kind.of_a_row) and (store := of_a_store(error, where)):
        return store
    if kind is None:
        return Unexpected(f"{type(error).__name__} in {where}{_at(error)}", next_step=f"{TRACE}=1 shows the whole trace; please report it")
    if (kind.engine, kind.name) == (_DATABASE, "OperationalError"):
        return LedgerConflict(
            f"{where}: {_DATABASE} did not answer; nothing of it was committed",
            next_step=f"try again; if it stays, look for a process that stands still while it writes; {TRACE}=1 shows the database's own words",
        )
    said = f"{kind.engine} says {kind.name}" + (f" (SQLSTATE {kind.sqlstate})" if kind.sqlstate else "")
    if kind.of_a_row and suspects:
        return NotComputable(
            f"{where}: {blamed(error, suspects)} cannot be computed for at least one row: {said}; nothing was committed",
            expected="an expression that has a value, or null, for every row",
            next_step="correct the input or the expression (try_cast, try_divide ... give null) and run again: the same input is read again",
        )
    return EngineFailed(
        f"{where}: {said}; nothing of it was committed",
        next_step=f"try again; if it stays, {TRACE}=1 shows the engine's own words (they may hold row values)",
    )


def blamed(error: BaseException, suspects: Sequence[Suspect]) -> str:
    """The expressions that an error can come from, as the plan has them: those that hold the text that Spark points at, else all."""
    text = str(error)
    pointed = [p for p in suspects if any(f in p.sql for f in _pointed(error, text))]
    told = [f"{p.title} = {p.sql}" for p in pointed or suspects]
    return "; or ".join(dict.fromkeys(told[:5])) + ("; or another expression" if len(told) > 5 else "")


def bare(error: RejoinError) -> RejoinError:
    """The error without what led to it, unless that is to be shown: whoever logs it would log that, too."""
    if not tracing():
        error.__cause__ = error.__context__ = None
        error.__suppress_context__ = True
    return error


def at_the_rim(error: BaseException, where: str) -> RejoinError:
    """The error that a command ends with; prints the engine's words and the trace first where these may be shown."""
    found = bare(named(error, where))
    if tracing() and (found is not error or error.__cause__ is not None):
        traceback.print_exception(error)
    return found


@contextmanager
def named_errors(where: str, suspects: Sequence[Suspect] = ()) -> Iterator[None]:
    """Around work of engines: only errors of ours leave it, and nothing hangs on them that has row values.

    Raises:
        RejoinError: whatever was raised inside, except what ends a process.
    """
    try:
        yield
        return
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        found, first = named(error, where, suspects), error
    if tracing() and found is not first:
        raise found from first
    raise bare(found)


def told(error: BaseException) -> str:
    """An error as the ledger keeps it: its code first, no word of an engine."""
    return str(error if isinstance(error, RejoinError) else named(error, "this process"))


def _asked(error: BaseException, method: str) -> str:
    """What a PySparkException says of itself; it asks the JVM, which may be gone."""
    try:
        return str(getattr(error, method)() or "")
    except Exception:  # noqa: BLE001
        return ""


def _pointed(error: BaseException, text: str) -> list[str]:
    """The pieces of SQL that Spark points at."""
    try:
        contexts = error.getQueryContext()  # type: ignore[attr-defined]
        return [str(c.fragment()) for c in contexts if c.fragment()]
    except Exception:  # noqa: BLE001  not a PySparkException, or its JVM is gone
        blocks = re.findall(r"== SQL \(line \d+, position (\d+)\) ==\n(.*)\n +(\^+)", text)
        return [line[int(at) - 1 : int(at) - 1 + len(marks)] for at, line, marks in blocks]


def _at(error: BaseException) -> str:
    """The innermost line of rejoin in a trace."""
    here = str(Path(__file__).parents[1])
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)]
    return f" ({Path(frames[-1].filename).relative_to(here)}:{frames[-1].lineno})" if frames else ""
