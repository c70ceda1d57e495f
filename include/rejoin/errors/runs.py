"""Runs that cannot go on, or are not there (exit code 4, or 75 where waiting helps)."""

from rejoin.errors.base import TerminalError, TransientError


class RunBusy(TransientError):
    """Another owner's run is open and alive."""

    code = "RUN_BUSY"


class LedgerConflict(TransientError):
    """Another process moved the ledger between our read and our compare-and-swap."""

    code = "LEDGER_CONFLICT"


class SparkDown(TransientError):
    """The Spark Connect server does not answer, or was started anew in the middle of a step."""

    code = "SPARK_DOWN"


class StoreDown(TransientError):
    """The object store of the lake does not answer, or says that it is not available now."""

    code = "STORE_DOWN"


class SnapshotOpen(TransientError):
    """The run is committed, but left some outputs as they were: these wait for the end of a snapshot within a feed."""

    code = "SNAPSHOT_OPEN"


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
