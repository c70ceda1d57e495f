"""The files of a snapshot, from Iceberg's metadata alone. Manifests and their lists never change, so each is read once a process."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import days_to_date

from rejoin.lake.iceberg import column_bounds
from rejoin.lake.locations import native
from rejoin.statements.own_columns import RUN

_MANIFESTS: dict[tuple[str, bool], tuple[ManifestEntry, ...]] = {}
"""Entries by manifest, and whether its bounds were trusted."""
_MOST_MANIFESTS = 20_000
_AT_ONCE = 8
_LISTS: dict[str, tuple[ManifestFile, ...]] = {}
"""Manifests by manifest list."""
_FILES: "dict[tuple[str, bool], SnapshotFiles]" = {}
"""Files by manifest list, and whether bounds were trusted. A run asks for those of some tables ten times."""
_MOST_LISTS = 500

_ORDERED = (BooleanType, IntegerType, LongType, StringType, DecimalType)
"""Types whose bounds Python compares, as they are, in Iceberg's order."""


@dataclass(frozen=True)
class SnapshotFiles:
    """The entries of a snapshot's data files, and of the position delete files that hide rows of them."""

    data_entries: tuple[ManifestEntry, ...]
    delete_entries: tuple[ManifestEntry, ...]

    @property
    def data(self) -> tuple[DataFile, ...]:
        return tuple(entry.data_file for entry in self.data_entries)

    @property
    def deletes(self) -> tuple[DataFile, ...]:
        return tuple(entry.data_file for entry in self.delete_entries)

    def without(self, gone: Sequence[DataFile]) -> "SnapshotFiles":
        """The same but some data files."""
        paths = {file.file_path for file in gone}
        return SnapshotFiles(tuple(e for e in self.data_entries if e.data_file.file_path not in paths), self.delete_entries)

    @property
    def live(self) -> int:
        """Rows that no delete file hides."""
        return self.rows - sum(entry.data_file.record_count for entry in self.delete_entries)

    @property
    def rows(self) -> int:
        """Rows in the data files, hidden ones and old versions included."""
        return sum(entry.data_file.record_count for entry in self.data_entries)


def files_of(table: Table, snapshot_id: int) -> SnapshotFiles:
    """The files that a reader of this snapshot has to read. They have no bounds but such as hold for every row."""
    return _files(table, snapshot_id, trust=column_bounds.exact(table, snapshot_id))


def exact_files(table: Table, snapshot_id: int) -> SnapshotFiles:
    """The same with all bounds that hold: where the snapshot does not say that its bounds do, the footer of every file is read."""
    if column_bounds.exact(table, snapshot_id):
        return files_of(table, snapshot_id)
    files = _files(table, snapshot_id, trust=True)
    return SnapshotFiles(column_bounds.exact_entries(table, files.data_entries), files.delete_entries)


def _files(table: Table, snapshot_id: int, *, trust: bool) -> SnapshotFiles:
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    known = snapshot.manifest_list, trust
    if (files := _FILES.get(known)) is None:
        if len(_FILES) >= _MOST_LISTS:
            _FILES.clear()
        files = _FILES[known] = _listed(table, snapshot, trust=trust)
    return files


def _listed(table: Table, snapshot: Snapshot, *, trust: bool) -> SnapshotFiles:
    manifests = manifests_of(snapshot, table.io)
    known = {m.manifest_path: entries for m in manifests if (entries := _MANIFESTS.get((m.manifest_path, trust))) is not None}
    read = dict(_read(table, [m for m in manifests if m.manifest_path not in known], trust=trust))
    if len(_MANIFESTS) + len(read) > _MOST_MANIFESTS:
        _MANIFESTS.clear()
    _MANIFESTS.update({(path, trust): entries for path, entries in read.items()})
    known |= read
    found = [entry for manifest in manifests for entry in known[manifest.manifest_path]]
    data = tuple(e for e in found if e.data_file.content == DataFileContent.DATA)
    return SnapshotFiles(data, tuple(e for e in found if e.data_file.content != DataFileContent.DATA))


def _read(table: Table, manifests: Sequence[ManifestFile], *, trust: bool) -> Iterator[tuple[str, tuple[ManifestEntry, ...]]]:
    """Manifests, by their path, with their entries; several at once where each takes requests to a store."""

    def one(manifest: ManifestFile) -> tuple[str, tuple[ManifestEntry, ...]]:
        entries = tuple(manifest.fetch_manifest_entry(table.io, discard_deleted=True))
        return manifest.manifest_path, entries if trust else column_bounds.trusted(table, entries)

    if len(manifests) < 2 or native(manifests[0].manifest_path) is not None:
        yield from map(one, manifests)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(one, manifests)


def manifests_of(snapshot: Snapshot, io: FileIO) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot."""
    found = _LISTS.get(snapshot.manifest_list)
    if found is None:
        found = tuple(snapshot.manifests(io))
        _keep(snapshot.manifest_list, found)
    return found


def remember(snapshot: Snapshot, manifests: Sequence[ManifestFile], written: Mapping[str, Sequence[ManifestEntry]]) -> None:
    """Keeps what a commit has just written, so that nobody has to read it again.

    Args:
        snapshot: what it has made.
        manifests: those of the snapshot, in their order.
        written: by its path, the entries of each manifest that is new. Their bounds hold.
    """
    for manifest in manifests:
        if (entries := written.get(manifest.manifest_path)) is None:
            continue
        assert snapshot.sequence_number is not None
        manifest.sequence_number = manifest.min_sequence_number = snapshot.sequence_number
        for entry in entries:  # readers inherit these from the manifest
            entry.sequence_number = entry.file_sequence_number = snapshot.sequence_number
            entry.data_file.spec_id = manifest.partition_spec_id
        if len(_MANIFESTS) < _MOST_MANIFESTS:
            _MANIFESTS[manifest.manifest_path, True] = tuple(entries)
    _keep(snapshot.manifest_list, tuple(manifests))


def _keep(manifest_list: str, manifests: tuple[ManifestFile, ...]) -> None:
    if len(_LISTS) >= _MOST_LISTS:
        _LISTS.clear()
    _LISTS[manifest_list] = manifests


def unique(table: Table, files: Sequence[DataFile], column: str) -> bool:
    """Whether no two rows of a versioned table can have one key, ``column`` being its first: in one file they never have.

    True if all rows were written by one run, or if the files' ranges do not even touch.
    """
    runs = {bounds(table, f, RUN) for f in files}
    if len(runs) == 1 and (run := next(iter(runs))) is not None and run[0] == run[1]:
        return True
    ranges = [bounds(table, f, column) for f in files]
    known = sorted(r for r in ranges if r is not None)
    return len(known) == len(ranges) and all(a[1] < b[0] for a, b in pairwise(known))


def bounds(table: Table, file: DataFile, column: str) -> tuple[Any, Any] | None:
    """The smallest and largest value of a column in a file, as Python values; None where the metadata cannot tell."""
    kind, found = table.schema().find_field(column).field_type, _stored_bounds(table, file, column)
    if found is None:
        return None
    try:
        if isinstance(kind, TimestampType | TimestamptzType):
            return _time(found[0], kind), _time(found[1], kind)
        if isinstance(kind, DateType):
            return days_to_date(found[0]), days_to_date(found[1])
    except OverflowError:  # beyond the years that Python knows
        return None
    return found if isinstance(kind, _ORDERED) else None


def _time(micros: int, kind: IcebergType) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC if isinstance(kind, TimestamptzType) else None) + timedelta(microseconds=micros)


def _stored_bounds(table: Table, file: DataFile, column: str) -> tuple[Any, Any] | None:
    """The same as Iceberg stores them: a time as microseconds, a date as days."""
    field = table.schema().find_field(column)
    low, high = (file.lower_bounds or {}).get(field.field_id), (file.upper_bounds or {}).get(field.field_id)
    if not isinstance(field.field_type, PrimitiveType) or low is None or high is None:
        return None
    return from_bytes(field.field_type, low), from_bytes(field.field_type, high)


def holding(table: Table, files: Iterable[DataFile], column: str, values: Iterable[Any]) -> list[tuple[DataFile, int]]:
    """The files that can hold a row with one of the values, each with how many of them; where bounds cannot tell: all."""
    asked = list(values)
    ordered = sorted(v for v in asked if v is not None)
    field, nulls, kept = table.schema().find_field(column).field_id, len(ordered) < len(asked), []
    for file in files:
        known = bounds(table, file, column)
        if nulls and (file.null_value_counts or {}).get(field) != 0:
            known = None
        inside = len(asked) if known is None else bisect_right(ordered, known[1]) - bisect_left(ordered, known[0])
        if inside:
            kept.append((file, inside))
    return kept


def newest(table: Table, files: SnapshotFiles, column: str) -> int | None:
    """The largest time in a column, in microseconds since the epoch; None where the metadata cannot tell, rows are hidden, or all are null."""
    field = table.schema().find_field(column).field_id
    timed = [file for file in files.data if (file.null_value_counts or {}).get(field) != file.record_count]
    found = [_stored_bounds(table, file, column) for file in timed]
    if files.deletes or not found or None in found:
        return None
    return max(int(known[1]) for known in found if known is not None)


def before(table: Table, files: Iterable[DataFile], column: str, time: int) -> list[DataFile]:
    """The files in which every row has a time before one, in microseconds."""
    field, found = table.schema().find_field(column).field_id, []
    for file in files:
        ends = _stored_bounds(table, file, column)
        if ends is not None and ends[1] < time and (file.null_value_counts or {}).get(field) == 0:
            found.append(file)
    return found


def overlapping(table: Table, files: Iterable[DataFile], column: str, spans: Sequence[tuple[int, int]]) -> list[DataFile]:
    """The files that can hold a time within one of some spans of microseconds; where bounds cannot tell: all."""
    known = ((file, _stored_bounds(table, file, column)) for file in files)
    return [f for f, ends in known if ends is None or any(ends[0] <= last and first <= ends[1] for first, last in spans)]
