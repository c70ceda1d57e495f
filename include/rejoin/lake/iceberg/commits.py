"""Commits of small writes by PyIceberg: rows on the driver become one data file, and one position delete file, in one snapshot.

PyIceberg has no public call that adds position deletes: ``snapshot_producers`` has one.
"""

import copyreg
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    DataFileContent,
    FileFormat,
)
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import ManageSnapshots
from pyiceberg.typedef import EMPTY_DICT, Record

from rejoin.engines.arrow_tables import shaped
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.iceberg.data_file import data_file
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, files_of, remember
from rejoin.lake.iceberg.snapshot_producers import ChangeTransaction, Rewrite, RowDelta
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.limits import limits

_PATH_ID, _POS_ID = 2147483546, 2147483545  # reserved field ids of position delete files
_SPLIT_OFFSETS = [field.name for field in DATA_FILE_TYPE[2].fields].index("split_offsets")
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.dictionary(pa.int32(), pa.string()), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POS_ID)}),
    ]
)


def _without_catalog(table: Table) -> tuple[Callable[..., Table], tuple[object, ...]]:
    """A table as another process gets it: its files can be read and written there, nothing can be committed."""
    return Table, (table.name(), table.metadata, table.metadata_location, table.io, None)


copyreg.pickle(Table, _without_catalog)


class DataFiles:
    """New data files of a table, which no snapshot holds yet, written while their rows come: what is to go into a few files is held in memory.

    Args:
        table: whose files they are.
        at_once: files that are written while the rows of the next one come.
    """

    def __init__(self, table: Table, at_once: int = 2) -> None:
        self._table, self._metadata = table, column_bounds.writing(table.metadata)
        default = TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT
        self._size = int(table.properties.get(TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, default))
        self._some: list[pa.RecordBatch] = []
        self._held, self._at_once = 0, at_once
        self._made: list[DataFile] = []
        self._running: deque[Future[DataFile]] = deque()
        self._pool = ThreadPoolExecutor(at_once)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows, columns and types as the table's. Files are of about so many bytes as the table wants and of full row groups, but the last."""
        self._some.append(batch)
        self._held += batch.nbytes
        if self._held < self._size:
            return
        rows = pa.Table.from_batches(self._some)
        whole = rows.num_rows - rows.num_rows % limits().row_group
        if whole:
            self._write(rows.slice(0, whole))
        self._some = rows.slice(whole).to_batches()
        self._held = sum(rest.nbytes for rest in self._some)

    def end(self) -> None:
        """No more rows come: what is left is written, too."""
        if self._held:
            self._write(pa.Table.from_batches(self._some))
            self._some, self._held = [], 0

    def done(self) -> list[DataFile]:
        """All files, once there are no more rows."""
        self.end()
        self._made += [written.result() for written in self._running]
        return _settled(self._table, self._made)

    def _write(self, rows: pa.Table) -> None:
        if len(self._running) == self._at_once:
            self._made.append(self._running.popleft().result())
        self._running.append(self._pool.submit(data_file, self._table, self._metadata, rows))


def data_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """Writes rows of this process (columns and types as the table's) to new data files."""
    if rows.num_rows <= limits().row_group:  # one file: no thread is worth its start
        return _settled(table, [data_file(table, column_bounds.writing(table.metadata), rows)] if rows.num_rows else [])
    return FilesOf(table)(iter(rows.to_batches(max_chunksize=limits().row_group)), 2)


@dataclass(frozen=True)
class FilesOf:
    """Writes rows to new data files of a table as they come: of their columns only the table's count."""

    table: Table

    def __call__(self, rows: Iterator[pa.RecordBatch], /, writers: int) -> list[DataFile]:
        schema = arrow_schema(self.table)
        with DataFiles(self.table, writers) as made:
            for batch in rows:
                for some in shaped(batch, schema):
                    made.add(some)
            return made.done()


def _settled(table: Table, made: list[DataFile]) -> list[DataFile]:
    column_bounds.settle(table, made)
    for file in made:
        file[_SPLIT_OFFSETS] = None  # else Spark plans a split a row group
    return made


def together(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """Batches of one kind as a table; None if there are none."""
    found = list(batches)
    return pa.Table.from_batches(found) if found else None


def delete_file(table: Table, positions: pa.Table) -> DataFile:
    """Writes a file of position deletes: ``file_path`` (of a data file, as the manifests have it) and ``pos``, at least one row, in their order."""
    rows = positions.select(_DELETES.names).cast(_DELETES)
    location = table.location_provider().new_data_location(f"{uuid.uuid4()}-deletes.parquet")
    output = table.io.new_output(location)
    with output.create() as stream:
        pq.write_table(rows, stream, compression="zstd", use_dictionary=["file_path"], store_schema=False)
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=len(output.to_input_file()),
        column_sizes={},
        value_counts={_PATH_ID: rows.num_rows, _POS_ID: rows.num_rows},
        null_value_counts={_PATH_ID: 0, _POS_ID: 0},
        nan_value_counts={},
        lower_bounds={_PATH_ID: rows["file_path"][0].as_py().encode()},
        upper_bounds={_PATH_ID: rows["file_path"][-1].as_py().encode()},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
    )


def refs_of(table: Table) -> ManageSnapshots:
    """Changes of branches and tags, one metadata commit; a context manager, or ends with ``commit``."""
    return ManageSnapshots(ChangeTransaction(table, autocommit=True))


def commit(table: Table, branch: str, base: int, added: Sequence[DataFile], deletes: Sequence[DataFile] = ()) -> int:
    """Starts ``branch`` at ``base`` and puts one snapshot with the files on it, in one metadata commit. Returns the snapshot's id.

    Raises:
        CommitFailedException: another commit to the table came between; do it again with newer metadata.
    """
    transaction = ChangeTransaction(table)
    ManageSnapshots(transaction).create_branch(base, branch).commit()
    producer = RowDelta(
        operation=Operation.OVERWRITE if deletes else Operation.APPEND,
        transaction=transaction,
        io=table.io,
        snapshot_properties=column_bounds.SUMMARY if column_bounds.exact(table, base) else EMPTY_DICT,
        branch=branch,
    )
    producer.deletes = tuple(deletes)
    for file in added:
        producer.append_data_file(file)
    producer.commit()
    transaction.commit_transaction()
    snapshot = table.metadata.snapshot_by_id(producer.snapshot_id)
    assert snapshot is not None
    remember(snapshot, producer.all, producer.written)
    return producer.snapshot_id


def begin(table: Table, tag: str) -> None:
    """Gives a table without snapshots its first one, which holds no rows, on ``main`` and with a tag, in one metadata commit."""
    transaction = ChangeTransaction(table)
    producer = RowDelta(operation=Operation.APPEND, transaction=transaction, io=table.io)
    producer.commit()
    ManageSnapshots(transaction).create_tag(producer.snapshot_id, tag).commit()
    transaction.commit_transaction()


def rewrite(
    table: Table,
    branch: str,
    base: int,
    holds: "SnapshotContents",
    columns: Callable[[Transaction], None] | None = None,
) -> int:
    """Starts ``branch`` at ``base`` with a snapshot that holds these files and no others.

    The bounds of the old files have to hold, as those of ``files_of`` and ``exact_files`` do. The snapshot has one manifest of data files and
    one of delete files, however many its base had. ``columns`` changes the table's columns in the same commit, and then ``main`` comes along if it
    is at ``base``: else its readers would not find the new fields.
    """
    transaction = ChangeTransaction(table)
    if columns is not None:
        columns(transaction)
    ManageSnapshots(transaction).create_branch(base, branch).commit()
    producer = Rewrite(
        operation=Operation.OVERWRITE, transaction=transaction, io=table.io, snapshot_properties=column_bounds.SUMMARY, branch=branch
    )
    producer.deletes, producer.kept = tuple(holds.deletes), holds.kept
    held = files_of(table, base)
    stay = {f.file_path for f in (*holds.kept.data, *holds.kept.deletes)}
    producer.gone = tuple(f for f in (*held.data, *held.deletes) if f.file_path not in stay)
    for file in holds.added:
        producer.append_data_file(file)
    producer.commit()
    if columns is not None and table.metadata.current_snapshot_id == base:
        ManageSnapshots(transaction).set_current_snapshot(producer.snapshot_id).commit()
    transaction.commit_transaction()
    return producer.snapshot_id


@dataclass(frozen=True)
class SnapshotContents:
    """The files of a snapshot that is not made of its base's: those that stay, and new ones with rows and with deletes."""

    kept: SnapshotFiles
    added: Sequence[DataFile]
    deletes: Sequence[DataFile] = ()
