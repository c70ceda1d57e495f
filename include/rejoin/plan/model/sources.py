"""Where the rows of a table come from, as a plan says it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Meaning(StrEnum):
    """What a record of a source says, whatever its dialect and however its files come."""

    FEED = "feed"  # one change: a row as it is now, or that it is gone
    SNAPSHOT = "snapshot"  # one of all the rows that there are
    RECORDS = "records"  # something that happened: it adds up, and says nothing of the others


class OnBadRecord(StrEnum):
    """What happens to a record that cannot be applied."""

    QUARANTINE = "quarantine"  # kept with reason and coordinates, counted; the run goes on below ``max_bad_share``
    FAIL = "fail"  # the run stops before anything is visible


class Snapshots(StrEnum):
    """What the snapshots within a feed say."""

    COMPLETE = "complete"  # all rows that there are: one that ends deletes what it did not bring
    ADDITIVE = "additive"  # that these rows are there, and nothing of others


@dataclass(frozen=True)
class SnapshotSource:
    """Full snapshots: one completed file or directory each, in name order; rows that are absent were deleted.

    ``max_delete_share``: a snapshot that would delete more than this share of the live rows is refused.
    ``null``: the text that means NULL in a CSV field.
    """

    path: str
    max_delete_share: float = 0.3
    null: str = ""
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    kind: str = "snapshot"
    meaning: ClassVar[Meaning] = Meaning.SNAPSHOT


@dataclass(frozen=True)
class RecordsSource:
    """Files of records of a stream; none says anything of those that it lacks. ``null``: as of a snapshot. ``places``: records have no id (``record_place``)."""

    path: str
    null: str = ""
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    places: bool = False
    kind: str = "records"
    meaning: ClassVar[Meaning] = Meaning.RECORDS


@dataclass(frozen=True)
class DebeziumSource:
    """Change events as Debezium writes them: files of JSON lines ``{"key", "value", "headers"[, "topic"]}``.

    ``topic``: read only the lines of this topic (None: all lines).
    ``units``: (column, "ms" | "us" | "ns") for integer timestamps whose event carries no schema; default "us".
    ``placeholder``: the text that stands for an unchanged TOAST value.
    ``snapshots``: what its snapshots say. ``max_delete_share``: one that would delete more than this share of the live rows, since it did not bring
    them, is refused.
    """

    path: str
    topic: str | None = None
    units: tuple[tuple[str, str], ...] = ()
    placeholder: str = "__debezium_unavailable_value"
    snapshots: Snapshots = Snapshots.COMPLETE
    max_delete_share: float = 0.3
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    kind: str = "debezium"
    meaning: ClassVar[Meaning] = Meaning.FEED
    dialect: ClassVar[str] = "debezium"


@dataclass(frozen=True)
class FeedSource:
    """Change events in another dialect (``dialects``): files of lines. ``only``: what the dialect chooses records by, such as a table's name."""

    path: str
    dialect: str
    only: str | None = None
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    kind: str = "feed"
    meaning: ClassVar[Meaning] = Meaning.FEED


Source = SnapshotSource | RecordsSource | DebeziumSource | FeedSource
SOURCES: dict[str, type[Source]] = {"snapshot": SnapshotSource, "records": RecordsSource, "debezium": DebeziumSource, "feed": FeedSource}
"""By ``kind``, which is also the name of the function that a topology calls."""


def meaning_of(kind: str) -> Meaning:
    """The meaning of a source of this kind."""
    return SOURCES[kind].meaning
