"""Bounds of columns in manifests: which of them hold for every row of their file, and a snapshot's word that all of its do.

Arrow writes no smallest and largest value for a row group with a value of more than 4,096 bytes, and PyIceberg makes the bounds of a file of
the row groups that have them: too narrow as soon as one has not. Iceberg's writer for Spark knows the values themselves; its bounds hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import MetricModeTypes, StatisticsCollector, compute_statistics_plan
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, ManifestEntry
from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import BinaryType, StringType

SUMMARY = {"rejoin.bounds": "exact"}
"""In the summary of a snapshot: every bound in its manifests holds. Files that an older rejoin wrote are in snapshots without it."""
_AT_ONCE = 8
_FIELDS = [field.name for field in DATA_FILE_TYPE[2].fields]
_LOWER, _UPPER = _FIELDS.index("lower_bounds"), _FIELDS.index("upper_bounds")
_LAST, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


def exact(table: Table, snapshot_id: int) -> bool:
    """Whether every bound in the manifests of a snapshot holds for all rows of its file."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return summary.get("total-data-files") == "0" or SUMMARY.items() <= summary.items()


def writing(metadata: TableMetadata) -> TableMetadata:
    """The metadata of a table for PyIceberg to write files by, each of the rows that it is given: with bounds in full, which ``settle`` makes
    what the table wants.
    """
    # The row group's size is for Spark; PyIceberg warns that it does not know it.
    other = ("write.metadata.metrics.", "write.parquet.row-group-size-bytes")
    properties = {k: v for k, v in metadata.properties.items() if not k.startswith(other)}
    whole = {"write.metadata.metrics.default": "full", "write.target-file-size-bytes": str(1 << 62)}
    return metadata.model_copy(update={"properties": properties | whole})


def settle(table: Table, files: Iterable[DataFile]) -> None:
    """Leaves new files of PyIceberg's (see ``writing``) the bounds that hold for every row, as long as the table wants them."""
    wanted = compute_statistics_plan(table.schema(), table.properties)
    for file in files:
        # What PyIceberg says of a single row group, Parquet says too.
        without = _unknown(_footer(table, file)) if len(file.split_offsets or ()) > 1 else set()
        known = {i: c for i, c in wanted.items() if i not in without}
        _put(
            file,
            {i: bound for i, v in file.lower_bounds.items() if i in known and (bound := _shortened(known[i], v, up=False)) is not None},
            {i: bound for i, v in file.upper_bounds.items() if i in known and (bound := _shortened(known[i], v, up=True)) is not None},
        )


def trusted(table: Table, entries: Sequence[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    """Entries of a snapshot that is not ``exact``, with the bounds that hold all the same: of values that are never long."""
    fields = {i: f for schema in table.schemas().values() for i, f in index_by_id(schema).items()}
    long = {i for i, f in fields.items() if isinstance(f.field_type, StringType | BinaryType)}
    return tuple(_without(entry, long) for entry in entries)


def exact_entries(table: Table, entries: Sequence[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    """Entries with the bounds that hold. Reads the footer of every file, not its rows."""

    def one(entry: ManifestEntry) -> ManifestEntry:
        footer = _footer(table, entry.data_file)
        return _without(entry, _unknown(footer)) if "parquet-cpp-arrow" in (footer.created_by or "") else entry

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(one, entries))


def _footer(table: Table, file: DataFile) -> pq.FileMetaData:
    with table.io.new_input(file.file_path).open() as stream:
        return pq.read_metadata(stream)


def _unknown(footer: pq.FileMetaData) -> set[int]:
    """The field ids of columns of which a row group with values does not say the smallest and largest."""
    found = set()
    for place, field_id in enumerate(leaf_ids(footer.schema.to_arrow_schema())):
        for group in range(footer.num_row_groups):
            column = footer.row_group(group).column(place)
            known = column.statistics
            if known is None or not (known.has_min_max or (known.has_null_count and known.null_count == column.num_values)):
                found.add(field_id)
                break
    return found


def leaf_ids(fields: Iterable[pa.Field]) -> Iterator[int]:
    """The field ids of a file's columns, in its order."""
    for field in fields:
        if pa.types.is_nested(field.type):
            yield from leaf_ids(field.type.field(i) for i in range(field.type.num_fields))
        else:
            yield int(field.metadata[b"PARQUET:field_id"])


def _without(entry: ManifestEntry, ids: set[int]) -> ManifestEntry:
    """The entry without the bounds of some fields."""
    old = entry.data_file
    file, lower, upper = DataFile(*(old[i] for i in range(len(old)))), old.lower_bounds or {}, old.upper_bounds or {}
    file.spec_id = old.spec_id
    _put(file, {i: v for i, v in lower.items() if i not in ids}, {i: v for i, v in upper.items() if i not in ids})
    return ManifestEntry.from_args(
        status=entry.status,
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=file,
    )


def _put(file: DataFile, lower: dict[int, bytes], upper: dict[int, bytes]) -> None:
    file[_LOWER], file[_UPPER] = lower, upper


def _shortened(wanted: StatisticsCollector, value: bytes, *, up: bool) -> bytes | None:
    """A bound as long as the table wants it; None if it wants none, or if nothing that short is above the value."""
    if wanted.mode.type in (MetricModeTypes.NONE, MetricModeTypes.COUNTS):
        return None
    if wanted.mode.type == MetricModeTypes.FULL:
        return value
    text = isinstance(wanted.iceberg_type, StringType)
    whole: Sequence[int] = [ord(c) for c in value.decode()] if text else value
    short = [*whole[: wanted.mode.length]]
    if up and len(short) < len(whole):
        last = _LAST if text else 0xFF
        while short and short[-1] == last:
            short.pop()
        if not short:
            return None
        short[-1] = _SURROGATES.stop if text and short[-1] + 1 in _SURROGATES else short[-1] + 1
    return "".join(map(chr, short)).encode() if text else bytes(short)
