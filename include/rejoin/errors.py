"""Every error that rejoin raises on purpose: one base class, one stable code a cause.

A message says what happened, where, what was expected, and what to do next; it never holds row values or secrets.
Whether a retry can help is a type, so a scheduler decides by ``isinstance`` and a shell by the exit code.
"""

from dataclasses import dataclass, field
from typing import ClassVar


class RejoinError(Exception):
    """Base of all errors raised on purpose.

    Args:
        what: what happened and where, in one sentence, with names and coordinates but no row values.
        expected: what would have been right.
        next_step: what the reader should do now.
    """

    code: ClassVar[str] = "REJOIN"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, expected: str = "", next_step: str = "") -> None:
        self.what, self.expected, self.next_step = what, expected, next_step
        super().__init__(what, expected, next_step)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process boundaries (Spark workers, Airflow), so they pickle by their arguments."""
        return _rebuild, (type(self), self.what, self.expected, self.next_step)

    def __str__(self) -> str:
        parts = [f"{self.code} {self.what}"]
        if self.expected:
            parts.append(f"  expected: {self.expected}")
        if self.next_step:
            parts.append(f"  to go on: {self.next_step}")
        return "\n".join(parts)


def _rebuild(kind: type[RejoinError], what: str, expected: str, next_step: str) -> RejoinError:
    return kind(what, expected=expected, next_step=next_step)


class TransientError(RejoinError):
    """Trying again later can succeed without anybody doing anything."""

    code = "TRANSIENT"
    exit_code = 75  # EX_TEMPFAIL of sysexits.h


class TerminalError(RejoinError):
    """Trying again changes nothing: the input, the topology or the set-up has to change first."""

    code = "TERMINAL"


# --- the topology file (exit code 2) ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One mistake in a topology file: a stable code, the sentence for the user, and the user's own line."""

    code: str
    message: str
    file: str = field(default="")
    line: int = field(default=0)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.message}"


class TopologyError(TerminalError):
    """A topology file has mistakes; ``problems`` lists all of them, each with its line."""

    code = "TOPOLOGY"
    exit_code = 2

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"topology {name!r} has {count}; nothing was run\n" + "\n".join(f"  {p}" for p in problems))

    def __reduce__(self) -> tuple[object, ...]:
        return TopologyError, (self.name, self.problems)


class TopologyFileError(TerminalError):
    """A topology file is missing, does not run, or holds no (or more than one) topology."""

    code = "TOPOLOGY_FILE"
    exit_code = 2


class ExpressionRefused(TerminalError):
    """Spark cannot analyze an expression of the topology that rejoin has no rules for; nothing was read or opened."""

    code = "EXPRESSION_REFUSED"
    exit_code = 2


class PlanNotApproved(TerminalError):
    """An edited topology rebuilds or leaves behind something, or changes what readers of a sink get, and nobody agreed; nothing was run."""

    code = "PLAN_NOT_APPROVED"
    exit_code = 2


class BadTestTable(TerminalError):
    """A text of a test (``rejoin.testing``) is no table, or does not fit the one it is for. The message quotes the test's own text."""

    code = "BAD_TEST_TABLE"
    exit_code = 2


# --- sources (exit code 3) -------------------------------------------------------------------------------------------


class SourceError(TerminalError):
    """Base of all errors about input."""

    code = "SOURCE"
    exit_code = 3


class SourceMissing(SourceError):
    """The path of a source does not exist, or holds no snapshot at all."""

    code = "SOURCE_MISSING"


class SourceFileMissing(SourceError):
    """A file that the cut pinned is gone."""

    code = "SOURCE_FILE_MISSING"


class SourceFileChanged(SourceError):
    """A file has other bytes than when the cut pinned it, or than when an earlier run applied it."""

    code = "SOURCE_FILE_CHANGED"


class SourceCorrupt(SourceError):
    """A file cannot be read at all (truncated Parquet or gzip, not the format its name says)."""

    code = "SOURCE_CORRUPT"


class SourceOutsideRoot(SourceError):
    """A source path leaves the root that relative paths start from."""

    code = "SOURCE_OUTSIDE_ROOT"


class SchemaDrift(SourceError):
    """The columns of a source no longer fit the declared schema."""

    code = "SCHEMA_DRIFT"


class SnapshotEmpty(SourceError):
    """A snapshot without rows: refused, because absence means deletion."""

    code = "SNAPSHOT_EMPTY"


class SnapshotOrder(SourceError):
    """Two snapshots of which none is newer than the other by name."""

    code = "SNAPSHOT_ORDER"


class SnapshotShrunk(SourceError):
    """A snapshot would delete a larger share of the table than the source allows."""

    code = "SNAPSHOT_SHRUNK"


class BadRecords(SourceError):
    """Records were refused and the policy says stop: ``on_bad_record="fail"`` or more than ``max_bad_share``."""

    code = "BAD_RECORDS"


class ChangeTooLarge(SourceError):
    """A run would change a larger share of an output than its ``max_change_share`` allows."""

    code = "CHANGE_TOO_LARGE"


class ValidationFailed(SourceError):
    """An expectation of severity FAIL is not met, or more rows would be held back than stated."""

    code = "VALIDATION_FAILED"


class NotComputable(SourceError):
    """An expression of the topology has no value for some row: a cast, a division, an overflow, a text that is no date."""

    code = "NOT_COMPUTABLE"


class RefreshRefused(SourceError):
    """An output with ``refresh="incremental_strict"`` can only be brought up to date by recomputing it."""

    code = "REFRESH_REFUSED"


class EngineRefused(SourceError):
    """A step is not for the engine that was asked for."""

    code = "ENGINE_REFUSED"


class ScenarioRefused(SourceError):
    """A line of a scenario file is no scenario, or one of a shape that ``rejoin replay`` does not run."""

    code = "SCENARIO_REFUSED"


# --- runs (exit code 4, or 75 where waiting helps) -------------------------------------------------------------------


class RunBusy(TransientError):
    """Another owner's run is open and alive."""

    code = "RUN_BUSY"


class LedgerConflict(TransientError):
    """Another process moved the ledger between our read and our compare-and-swap."""

    code = "LEDGER_CONFLICT"


class SparkDown(TransientError):
    """The Spark Connect server does not answer, or was started anew in the middle of a step."""

    code = "SPARK_DOWN"


class RunSuperseded(TerminalError):
    """The run of this stage is closed (committed or abandoned); what the stage wrote is garbage and harms nobody."""

    code = "RUN_SUPERSEDED"
    exit_code = 4


class RunCommitted(TerminalError):
    """A committed run cannot be abandoned."""

    code = "RUN_COMMITTED"
    exit_code = 4


class RunUnknown(TerminalError):
    """The ledger has no such run, or nothing was committed yet."""

    code = "RUN_UNKNOWN"
    exit_code = 4


class Stale(TerminalError):
    """A topology was not published for longer than its operators allow."""

    code = "STALE"
    exit_code = 4


class SnapshotExpired(TerminalError):
    """The state of a run is beyond retention: its Iceberg snapshot is gone."""

    code = "SNAPSHOT_EXPIRED"
    exit_code = 4


# --- the lake and the engine (exit code 5) ---------------------------------------------------------------------------


class SetupError(TerminalError):
    """Java, jars, a setting or a catalog is missing or wrong."""

    code = "SETUP"
    exit_code = 5


class SchemaRefused(TerminalError):
    """An edited topology asks for a change that a table cannot make (another key, a narrower or other column type)."""

    code = "SCHEMA_REFUSED"
    exit_code = 5


class InvariantBroken(TerminalError):
    """A check that every run makes on itself failed: a bug or a damaged table. Nothing was made visible."""

    code = "INVARIANT_BROKEN"
    exit_code = 6


class UnknownTable(TerminalError):
    """A command names a table or key that the topology does not have."""

    code = "UNKNOWN_TABLE"
    exit_code = 2


class FileExists(TerminalError):
    """A command would overwrite a file; nothing was written."""

    code = "FILE_EXISTS"
    exit_code = 2


class QueryRefused(TerminalError):
    """A query has a mistake, or is something else than one SELECT over the lake's tables; nothing was computed."""

    code = "QUERY_REFUSED"
    exit_code = 2


class QueryFailed(TerminalError):
    """A query cannot be computed for the values of some row."""

    code = "QUERY_FAILED"
    exit_code = 2


class RowAbsent(TerminalError):
    """A table has no row with the key that was asked for."""

    code = "ROW_ABSENT"
    exit_code = 4


# --- errors that were not raised on purpose (exit code 1); made by ``rejoin.failures`` --------------------------------------


class EngineFailed(RejoinError):
    """Spark, DuckDB, a database ... gave up. Whether trying again helps is not known."""

    code = "ENGINE_FAILED"


class Unexpected(RejoinError):
    """Anything else: probably a fault of rejoin."""

    code = "UNEXPECTED"


# --- sinks (exit code 7, 4 where another attempt took over, or 75 where waiting helps) ----------------------------------
# The run is committed whatever happens to a sink.


class SinkError(TerminalError):
    """Base of the errors of sinks that somebody has to act upon."""

    code = "SINK"
    exit_code = 7


class SinkDown(TransientError):
    """A sink does not answer, or stopped answering. What it had not committed comes again."""

    code = "SINK_DOWN"


class SinkSlow(TransientError):
    """A sink answers too slowly: records waited longer than ``delivery.timeout.ms``, or a statement longer than its limit."""

    code = "SINK_SLOW"


class SinkBufferFull(TransientError):
    """The producer's memory was full for longer than ``max.block.ms``."""

    code = "SINK_BUFFER_FULL"


class SinkConflict(TransientError):
    """A database refused a transaction again and again because of others: deadlock, serialization, lock timeout."""

    code = "SINK_CONFLICT"


class SinkFenced(TerminalError):
    """A newer attempt delivers to the same sink; this one has stopped."""

    code = "SINK_FENCED"
    exit_code = 4


class SinkTargetMissing(SinkError):
    """The topic does not exist."""

    code = "SINK_TARGET_MISSING"


class SinkSchemaRefused(SinkError):
    """The target table does not fit the output, or a schema registry refuses the output's schema."""

    code = "SINK_SCHEMA"


class SinkRecordRefused(SinkError):
    """The target refuses a record: a constraint, a value that does not fit its column."""

    code = "SINK_RECORD"


class SinkMessageTooLarge(SinkError):
    """A record is larger than the producer or the topic allows."""

    code = "SINK_MESSAGE_TOO_LARGE"


class SinkDenied(SinkError):
    """The sink does not let us in, or not do that."""

    code = "SINK_DENIED"


class SinkCursorLost(SinkError):
    """The sink has no cursor, and the ledger says that it had one: the target was made anew or restored."""

    code = "SINK_CURSOR_LOST"


class SinkCursorAhead(SinkError):
    """The sink has seen runs that the lake does not have."""

    code = "SINK_CURSOR_AHEAD"


class SinksBehind(SinkError):
    """The run is committed, and some sinks did not get it; the message has the error of each."""

    code = "SINKS_BEHIND"


@dataclass(frozen=True)
class BadRecord(Exception):
    """Why one record cannot be applied; caught by the source and turned into a quarantined row, never raised to users.

    ``reason`` names columns and expected types, never the value itself.
    """

    code: str
    reason: str


def by_exit_code(code: int | None) -> type[RejoinError] | None:
    """The kind of error that an exit code of the command line or of a job stands for; None if it stands for none of ours."""
    terminal = {k.exit_code for k in TerminalError.__subclasses__()} - {TerminalError.exit_code}
    if code == TransientError.exit_code:
        return TransientError
    return TerminalError if code in terminal else None
