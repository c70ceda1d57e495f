"""What is wrong with the input, and what a run refuses because of it (exit code 3)."""

from dataclasses import dataclass

from rejoin.errors.base import TerminalError, TransientError


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


class SourceOverrun(SourceError):
    """Records that no run has read are no longer in the topic: retention or compaction was faster."""

    code = "SOURCE_OVERRUN"


class TopicReplaced(SourceError):
    """A topic is another one than before: made anew, cut shorter, or of another cluster."""

    code = "TOPIC_REPLACED"


class PartitionsAdded(SourceError):
    """A topic has more partitions than before. Only one partition keeps the changes of a row in order, and a row may now be in another one."""

    code = "PARTITIONS_ADDED"


class SchemaUnknown(SourceError):
    """A message names a schema that the registry does not have, or one that is not Avro."""

    code = "SCHEMA_UNKNOWN"


class SourceDenied(SourceError):
    """The system that holds a source does not let rejoin in, or does not let it read the source."""

    code = "SOURCE_DENIED"


class SourceDown(TransientError):
    """The system that holds a source does not answer, or stopped answering. Nothing is committed; the next try reads the same."""

    code = "SOURCE_DOWN"


class CaptureRefused(SourceError):
    """A database, or a table of it, is not set up so that its changes can be captured."""

    code = "CAPTURE_REFUSED"


class CaptureBusy(TransientError):
    """Another process captures the same tables."""

    code = "CAPTURE_BUSY"


class SlotLost(SourceError):
    """The replication slot that a capture goes on from is gone, or the server has removed what it stood for: changes are missing."""

    code = "SLOT_LOST"


class SourceEpoch(SourceError):
    """The log of a database ends before what was captured from it, or a feed has new changes of older positions: it is another server, or an older copy."""

    code = "SOURCE_EPOCH"


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


class SnapshotAgain(SourceError):
    """A feed has rows of a second snapshot, and says neither where that begins nor where it ends."""

    code = "SNAPSHOT_AGAIN"


class BadRecords(SourceError):
    """Records were refused and the policy says stop: ``on_bad_record="fail"`` or more than ``max_bad_share``."""

    code = "BAD_RECORDS"


class ChangeTooLarge(SourceError):
    """A run would change a larger share of an output than its ``max_change_share`` allows."""

    code = "CHANGE_TOO_LARGE"


class GroupTooLarge(SourceError):
    """An array would have more elements than the ``max_members`` of its output allows."""

    code = "GROUP_TOO_LARGE"


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
    """The engine that was chosen cannot or should not do a step."""

    code = "ENGINE_REFUSED"


class ScenarioRefused(SourceError):
    """A line of a scenario file is not a scenario, or not one that ``rejoin replay`` can run."""

    code = "SCENARIO_REFUSED"


@dataclass(frozen=True)
class BadRecord(Exception):
    """Why one record cannot be applied; caught by the source and turned into a quarantined row, never raised to users.

    ``reason`` names columns and expected types, never the value itself.
    """

    code: str
    reason: str
