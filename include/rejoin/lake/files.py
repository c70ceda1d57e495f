"""The files of a snapshot, from Iceberg's metadata alone. A manifest never changes, so each is read once a process."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import Table
from pyiceberg.types import BooleanType, DateType, DecimalType, IntegerType, LongType, StringType

_MANIFESTS: dict[str, tuple[DataFile, ...]] = {}
_MOST_MANIFESTS = 20_000

_ORDERED = (BooleanType, IntegerType, LongType, StringType, DateType, DecimalType)
"""Types whose bounds Python compares as Iceberg orders them."""


@dataclass(frozen=True)
class Files:
    """The data files of a snapshot and the position delete files that hide rows of them."""

    data: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Rows in the data files, hidden ones and old versions included."""
        return sum(file.record_count for file in self.data)


def files_of(table: Table, snapshot_id: int) -> Files:
    """The files that a reader of this snapshot has to read."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    found: list[DataFile] = []
    for manifest in snapshot.manifests(table.io):
        path = manifest.manifest_path
        if path not in _MANIFESTS:
            if len(_MANIFESTS) >= _MOST_MANIFESTS:
                _MANIFESTS.clear()
            _MANIFESTS[path] = tuple(entry.data_file for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True))
        found += _MANIFESTS[path]
    data = tuple(f for f in found if f.content == DataFileContent.DATA)
    return Files(data, tuple(f for f in found if f.content != DataFileContent.DATA))


def overlapping(table: Table, files: Iterable[DataFile], column: str, low: Any, high: Any) -> list[DataFile]:
    """The files that can hold a row with ``low <= column <= high``; all of them where bounds cannot tell."""
    field = table.schema().find_field(column)
    if not isinstance(field.field_type, _ORDERED):
        return list(files)
    kept = []
    for file in files:
        lower, upper = (file.lower_bounds or {}).get(field.field_id), (file.upper_bounds or {}).get(field.field_id)
        if lower is None or upper is None or (from_bytes(field.field_type, lower) <= high and low <= from_bytes(field.field_type, upper)):
            kept.append(file)
    return kept


def native(path: str) -> str | None:
    """The path of a file as this process can open it; None if it is not on a file system of this machine."""
    local = re.sub("^file:(//)?(?=/)", "", path)
    return None if "://" in local else local
