"""Where the rows of a table come from, as a plan says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


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


class OnIncomplete(StrEnum):
    """What becomes of outputs while a snapshot within the feed of a table that they are made of was not read to its end."""

    PUBLISH = "publish"  # what is there is visible
    WAIT = "wait"  # they stay as they are; the run that reads the end recomputes them


@dataclass(frozen=True)
class JsonFormat:
    """Lines, a JSON object each."""

    kind: str = "json"


@dataclass(frozen=True)
class CsvFormat:
    """CSV as its writer writes it.

    ``quote``: None: there are no quotes. ``escape``: what stands before a quote in a quoted field; None: a quote is doubled.
    ``header``: the first line names the fields; else ``names`` do, or are what the header is replaced by.
    ``null``: the text that means NULL. ``trim``: white space around a field does not count.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    header: bool = True
    names: tuple[str, ...] = ()
    encoding: str = "utf-8"
    null: str = ""
    trim: bool = False
    kind: str = "csv"


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet files."""

    kind: str = "parquet"


@dataclass(frozen=True)
class InstalledFormat:
    """A format that an installed package brings. ``options``: what is said of it, as a JSON object."""

    kind: str
    options: str = "{}"


Format = JsonFormat | CsvFormat | ParquetFormat | InstalledFormat
FORMATS: dict[str, type[JsonFormat | CsvFormat | ParquetFormat]] = {"json": JsonFormat, "csv": CsvFormat, "parquet": ParquetFormat}
"""rejoin's own by ``kind``, which is also the name of the function that a topology calls."""


def format_from(data: Mapping[str, Any] | None) -> Format | None:
    """The format of a plan that was written as JSON."""
    if data is None:
        return None
    written: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return FORMATS.get(data["kind"], InstalledFormat)(**written)


@dataclass(frozen=True)
class SnapshotSource:
    """Full snapshots: one completed file or directory each, in name order; rows that are absent were deleted.

    ``max_delete_share``: a snapshot that would delete more than this share of the live rows is refused.
    ``null``: the text that means NULL in a CSV field. ``format``, ``columns``: as of ``ChangesSource``; with either of them fields are texts, as there.
    """

    path: str
    max_delete_share: float = 0.3
    null: str = ""
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    format: Format | None = None
    columns: tuple[tuple[str, str], ...] = ()
    kind: str = "snapshot"
    meaning: ClassVar[Meaning] = Meaning.SNAPSHOT


@dataclass(frozen=True)
class RecordsSource:
    """Files of records of a stream; none says anything of those that it lacks. ``null``, ``format``, ``columns``: as of a snapshot. ``places``: records have no id (``added_columns``)."""

    path: str
    null: str = ""
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    places: bool = False
    format: Format | None = None
    columns: tuple[tuple[str, str], ...] = ()
    kind: str = "records"
    meaning: ClassVar[Meaning] = Meaning.RECORDS


@dataclass(frozen=True)
class DebeziumSource:
    """Change events as Debezium writes them: files of JSON lines, each a message ``{"key", "value", "headers"[, "topic"]}`` or its value alone.

    ``topic``: read only the lines of this topic (None: all lines).
    ``units``: (column, "ms" | "us" | "ns") for integer timestamps whose event carries no schema; default "us".
    ``placeholder``: the text that stands for an unchanged TOAST value.
    ``snapshots``: what its snapshots say. ``max_delete_share``: one that would delete more than this share of the live rows, since it did not bring
    them, is refused. ``on_incomplete``: what becomes of outputs until its end.
    """

    path: str
    topic: str | None = None
    units: tuple[tuple[str, str], ...] = ()
    placeholder: str = "__debezium_unavailable_value"
    snapshots: Snapshots = Snapshots.COMPLETE
    max_delete_share: float = 0.3
    on_incomplete: OnIncomplete = OnIncomplete.PUBLISH
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    kind: str = "debezium"
    meaning: ClassVar[Meaning] = Meaning.FEED
    dialect: ClassVar[str] = "debezium"


@dataclass(frozen=True)
class FeedSource:
    """Change events in another dialect (``dialects``): files of lines. ``only``: what the dialect chooses records by, such as a table's name.
    ``snapshots``, ``max_delete_share``, ``on_incomplete``: as of Debezium, where the dialect has snapshots.
    """

    path: str
    dialect: str
    only: str | None = None
    snapshots: Snapshots = Snapshots.COMPLETE
    max_delete_share: float = 0.3
    on_incomplete: OnIncomplete = OnIncomplete.PUBLISH
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    kind: str = "feed"
    meaning: ClassVar[Meaning] = Meaning.FEED


@dataclass(frozen=True)
class ChangesSource:
    """Files of rows, each of which says how a row is now, or that it is gone. What a field of a record is called there, and SQL over fields, which are texts,
    stands here as SQL over ``t``; a field by itself is ``t.`name```.

    ``order``: what says which version of a key is newer, the most telling first; empty: the order of files and of lines in them.
    ``deleted``: true of a record of a row that is gone; None: there are none.
    ``loaded``: true of a record of a full load; None: there are none, or another one only fills in what is not there.
    ``columns``: declared column -> what it is made of; any other one is the field of its name.
    ``format``: None: what the name of a file says.
    """

    path: str
    order: tuple[str, ...] = ()
    deleted: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    format: Format | None = None
    on_bad_record: OnBadRecord = OnBadRecord.QUARANTINE
    max_bad_share: float = 0.05
    loaded: str | None = None
    kind: str = "changes"
    meaning: ClassVar[Meaning] = Meaning.FEED


Source = SnapshotSource | RecordsSource | DebeziumSource | FeedSource | ChangesSource
SOURCES: dict[str, type[Source]] = {
    "snapshot": SnapshotSource,
    "records": RecordsSource,
    "debezium": DebeziumSource,
    "feed": FeedSource,
    "changes": ChangesSource,
}
"""By ``kind``, which is also the name of the function that a topology calls."""


WithSnapshots = DebeziumSource | FeedSource
"""Feeds that can have whole snapshots among their changes."""


def chosen(source: Source) -> str | None:
    """What a feed chooses records by: a topic, the name of a table. None: it has all."""
    return source.topic if isinstance(source, DebeziumSource) else source.only if isinstance(source, FeedSource) else None


NamedFields = ChangesSource | SnapshotSource | RecordsSource
"""Sources that can say how their files are written, and what columns are made of."""


def names_fields(source: Source) -> bool:
    """Whether a source says what is made of the fields of its records, or how they are written: then every field is a text."""
    return isinstance(source, ChangesSource) or (isinstance(source, NamedFields) and (source.format is not None or bool(source.columns)))


def meaning_of(kind: str) -> Meaning:
    """The meaning of a source of this kind."""
    return SOURCES[kind].meaning
