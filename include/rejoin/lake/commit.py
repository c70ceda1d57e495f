"""Commits of small writes by PyIceberg: rows on the driver become one data file, and one position delete file, in one snapshot.

PyIceberg has no public call that adds position deletes; ``_RowDelta`` writes the manifest of them as the format says (version 2).
"""

import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import ManageSnapshots, _FastAppendFiles
from pyiceberg.typedef import EMPTY_DICT, Record

_PATH_ID, _POS_ID = 2147483546, 2147483545  # reserved field ids of position delete files
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POS_ID)}),
    ]
)


def data_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """Writes rows (columns and types as the table's) to new data files, which no snapshot holds yet."""
    return list(_dataframe_to_data_files(table_metadata=table.metadata, df=rows, io=table.io)) if rows.num_rows else []


def delete_file(table: Table, positions: Sequence[tuple[str, int]]) -> DataFile:
    """Writes a file of position deletes: (path of a data file as the manifests have it, row number)."""
    ordered = sorted(positions)
    paths, numbers = [p for p, _ in ordered], [n for _, n in ordered]
    rows = pa.table([pa.array(paths, pa.string()), pa.array(numbers, pa.int64())], schema=_DELETES)
    location = table.location_provider().new_data_location(f"{uuid.uuid4()}-deletes.parquet")
    output = table.io.new_output(location)
    with output.create() as stream:
        pq.write_table(rows, stream, compression="zstd")
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(ordered),
        file_size_in_bytes=len(output.to_input_file()),
        column_sizes={},
        value_counts={_PATH_ID: len(ordered), _POS_ID: len(ordered)},
        null_value_counts={_PATH_ID: 0, _POS_ID: 0},
        nan_value_counts={},
        lower_bounds={_PATH_ID: paths[0].encode()},
        upper_bounds={_PATH_ID: paths[-1].encode()},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
    )


def commit(table: Table, branch: str, base: int, added: Sequence[DataFile], deletes: Sequence[DataFile] = ()) -> int:
    """Starts ``branch`` at ``base`` and puts one snapshot with the files on it, in one metadata commit. Returns the snapshot's id.

    Raises:
        CommitFailedException: another commit to the table came between; do it again with newer metadata.
    """
    transaction = table.transaction()
    ManageSnapshots(transaction).create_branch(base, branch).commit()
    producer = _RowDelta(
        operation=Operation.OVERWRITE if deletes else Operation.APPEND, transaction=transaction, io=table.io, branch=branch
    )
    producer.deletes = tuple(deletes)
    for file in added:
        producer.append_data_file(file)
    producer.commit()
    transaction.commit_transaction()
    return producer.snapshot_id


class _DeleteManifestWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _RowDelta(_FastAppendFiles):
    deletes: tuple[DataFile, ...] = ()

    def _manifests(self) -> list[ManifestFile]:
        return ([self._delete_manifest()] if self.deletes else []) + super()._manifests()

    def _delete_manifest(self) -> ManifestFile:
        metadata = self._transaction.table_metadata
        with _DeleteManifestWriter(metadata.spec(), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression) as writer:
            for file in self.deletes:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        added, self._added_data_files = self._added_data_files, [*self._added_data_files, *self.deletes]
        try:
            return super()._summary(snapshot_properties)
        finally:
            self._added_data_files = added
