"""The files of one snapshot of an Iceberg table, and which deletes hide rows of which."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.table import FileScanTask, ManifestGroupPlanner
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType, NestedField, PrimitiveType

Partition = tuple[int, Record]
"""The number of a partition spec, and the values that its transforms give."""


@dataclass(frozen=True)
class StoredFile:
    """A data file.

    Attributes:
        task: the file, with the deletes that hide rows of it by their position.
        sequence: when its rows were written, for equality deletes.
        partition: where its rows belong.
    """

    task: FileScanTask
    sequence: int
    partition: Partition

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """The same in two snapshots, if both read the same rows of it, but for equality deletes."""
        return self.task.file.file_path, tuple(sorted(d.file_path for d in self.task.delete_files))


@dataclass(frozen=True)
class EqualityDelete:
    """A file of values of some columns: older rows that have them are deleted, in its partition, or everywhere (None)."""

    file: DataFile
    columns: tuple[NestedField, ...]
    sequence: int
    partition: Partition | None


@dataclass(frozen=True)
class TableFiles:
    """What a snapshot reads."""

    stored: Mapping[tuple[str, tuple[str, ...]], StoredFile]
    deletes: Mapping[str, EqualityDelete]

    def without(self, others: "TableFiles") -> list[StoredFile]:
        """Those that the other snapshot does not have, or hides other rows of by position."""
        return [file for key, file in self.stored.items() if key not in others.stored]

    def common(self, others: "TableFiles") -> list[StoredFile]:
        """All others. Equality deletes may hide other rows of them."""
        return [file for key, file in self.stored.items() if key in others.stored]

    def thinned(self, others: "TableFiles") -> list[StoredFile]:
        """Those of the common ones that are older than an equality delete which only one of both has."""
        one_sided = [self.deletes.get(path) or others.deletes[path] for path in self.deletes.keys() ^ others.deletes.keys()]
        return hidden(self.common(others), one_sided)

    def applying(self, files: Collection[StoredFile]) -> list[EqualityDelete]:
        """The equality deletes that may hide rows of these files."""
        oldest: dict[Partition | None, int] = {}
        for file in files:
            for partition in (file.partition, None):
                oldest[partition] = min(file.sequence, oldest.get(partition, file.sequence))
        return [d for d in self.deletes.values() if d.partition in oldest and d.sequence > oldest[d.partition]]

    @cached_property
    def all(self) -> list[StoredFile]:
        """In the order of their paths."""
        return sorted(self.stored.values(), key=lambda file: file.task.file.file_path)


def hidden(files: Collection[StoredFile], deletes: Collection[EqualityDelete]) -> list[StoredFile]:
    """The files of which these may hide rows: older ones, in the same partition."""
    newest: dict[Partition | None, int] = {}
    for delete in deletes:
        newest[delete.partition] = max(delete.sequence, newest.get(delete.partition, 0))
    return [f for f in files if f.sequence < max(newest.get(f.partition, 0), newest.get(None, 0))]


def files_of(table: IcebergTable, snapshot: int) -> TableFiles:
    """What a snapshot reads, from its manifests.

    Raises:
        ValueError: it is gone, or a file is of no kind, or of no format, that can be read here.
    """
    entries = dict[str, ManifestEntry]()

    def planned(entry: ManifestEntry) -> bool:
        """PyIceberg plans all but equality deletes; each entry is seen here on its way."""
        _check(entry.data_file)
        entries[entry.data_file.file_path] = entry
        return entry.data_file.content is not DataFileContent.EQUALITY_DELETES

    if (found := table.snapshot_by_id(snapshot)) is None:
        raise ValueError("it is expired")
    stored = list[StoredFile]()
    for task in ManifestGroupPlanner(table.metadata, table.io).plan_files(found.manifests(table.io), planned):
        stored.append(StoredFile(task, entries[task.file.file_path].sequence_number or 0, (task.file.spec_id, task.file.partition)))
    deletes = {path: _delete(table, e) for path, e in entries.items() if e.data_file.content is DataFileContent.EQUALITY_DELETES}
    return TableFiles({file.key: file for file in stored}, deletes)


def _check(file: DataFile) -> None:
    by_position = file.content is DataFileContent.POSITION_DELETES
    if file.file_format not in (FileFormat.PARQUET, FileFormat.ORC, *([FileFormat.PUFFIN] if by_position else [])):
        raise ValueError(f"it has {file.content.name.lower().replace('_', ' ')} in files of the format {file.file_format.value}")


def _delete(table: IcebergTable, entry: ManifestEntry) -> EqualityDelete:
    file = entry.data_file
    known = {field.field_id: field for schema in (*table.schemas().values(), table.schema()) for field in schema.fields}
    ids = sorted(file.equality_ids or ())
    columns = tuple(known[i] for i in ids if i in known)
    told_apart = [f for f in columns if isinstance(f.field_type, PrimitiveType) and not isinstance(f.field_type, FloatType | DoubleType)]
    if not ids or len(told_apart) < len(ids):
        raise ValueError("it deletes rows by members of columns, or by columns of floating numbers")
    everywhere = all(isinstance(f.transform, VoidTransform) for f in table.specs()[file.spec_id].fields)
    return EqualityDelete(file, columns, entry.sequence_number or 0, None if everywhere else (file.spec_id, file.partition))
