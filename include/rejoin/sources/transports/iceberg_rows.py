"""Rows of an Iceberg table's files. PyIceberg reads them, and leaves out what is deleted by position; DuckDB what is deleted by values."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import NestedField

from rejoin.sources.events import BATCH_ROWS
from rejoin.sources.transports.iceberg_files import EqualityDelete, Partition, StoredFile, TableFiles, hidden
from rejoin.statements.dialect import DUCKDB

_PLACE = (pa.field("_sequence", pa.int64()), pa.field("_partition", pa.int64()))


class SnapshotRows:
    """Reads files of one snapshot as that snapshot has them."""

    def __init__(self, table: IcebergTable, files: TableFiles) -> None:
        self._table, self.files = table, files

    def table(self, schema: Schema, files: Collection[StoredFile]) -> pa.Table:
        """All rows of these files."""
        return pa.Table.from_batches(self.batches(schema, files), schema.as_arrow())

    def batches(self, schema: Schema, files: Collection[StoredFile]) -> Iterator[pa.RecordBatch]:
        """Rows of these files, first of those of which nothing is hidden by values."""
        deletes = self.files.applying(files)
        thinned = hidden(files, deletes)
        rest = {file.key for file in thinned}
        yield from self._scan(schema, [file.task for file in files if file.key not in rest])
        if thinned:
            yield from self._left(schema, thinned, deletes)

    def _left(self, schema: Schema, files: Sequence[StoredFile], deletes: Sequence[EqualityDelete]) -> Iterator[pa.RecordBatch]:
        """The rows that no delete hides."""
        compared = {field.field_id: _compared(schema, field) for delete in deletes for field in delete.columns}
        wide = Schema(*schema.fields, *(field for i, field in compared.items() if i not in schema.field_ids))
        numbers: dict[Partition | None, int] = {partition: n for n, partition in enumerate(dict.fromkeys(file.partition for file in files))}
        statement = f"SELECT {DUCKDB.names(schema.column_names)} FROM rows AS r"
        import duckdb  # a cut needs none

        with duckdb.connect() as db:
            db.execute("SET enable_progress_bar = false")
            db.execute("SET threads = 1")  # rows keep their order, since their numbers are their places, also when they are read again
            for n, ((ids, everywhere), some) in enumerate(_alike(deletes).items()):
                columns = Schema(*(compared[i] for i in ids))
                db.register(
                    "stated", self._placed(columns, ((d.sequence, numbers.get(d.partition, 0), FileScanTask(d.file)) for d in some))
                )
                names = [*columns.column_names, *([] if everywhere else ["_partition"])]
                db.execute(f"CREATE TEMP TABLE d{n} AS SELECT {DUCKDB.names(names)}, max(_sequence) AS _sequence FROM stated GROUP BY ALL")
                same = " AND ".join(f"d{n}.{DUCKDB.name(name)} IS NOT DISTINCT FROM r.{DUCKDB.name(name)}" for name in names)
                statement += f" ANTI JOIN d{n} ON {same} AND d{n}._sequence > r._sequence"
            db.register("rows", self._placed(wide, ((f.sequence, numbers[f.partition], f.task) for f in files)))
            yield from (batch.cast(schema.as_arrow()) for batch in db.sql(statement).to_arrow_reader(BATCH_ROWS))

    def _placed(self, schema: Schema, tasks: Iterable[tuple[int, int, FileScanTask]]) -> pa.RecordBatchReader:
        """Rows of files, with the sequence number and the number of the partition that stand before their tasks."""
        arrow = pa.schema([*schema.as_arrow(), *_PLACE])

        def rows() -> Iterator[pa.RecordBatch]:
            for place, some in groupby(sorted(tasks, key=lambda t: t[:2]), lambda t: t[:2]):
                for batch in self._scan(schema, [task for *_, task in some]):
                    yield pa.record_batch([*batch.columns, *(pa.repeat(pa.scalar(n, pa.int64()), len(batch)) for n in place)], arrow)

        return pa.RecordBatchReader.from_batches(arrow, rows())

    def _scan(self, schema: Schema, tasks: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
        scan, arrow = ArrowScan(self._table.metadata, self._table.io, schema, AlwaysTrue()), schema.as_arrow()
        return (batch.cast(arrow) for batch in scan.to_record_batches(tasks))


def _compared(schema: Schema, field: NestedField) -> NestedField:
    """A column by which rows are deleted, as it is read. One that is not asked for may be dropped, and its name be another's."""
    if field.field_id in schema.field_ids:
        return schema.find_field(field.field_id)
    return NestedField(field.field_id, f"_compared_{field.field_id}", field.field_type, required=False)


def _alike(deletes: Sequence[EqualityDelete]) -> Mapping[tuple[tuple[int, ...], bool], Sequence[EqualityDelete]]:
    """Deletes by the same columns: the ids of these, and whether they count in every partition."""
    alike = defaultdict[tuple[tuple[int, ...], bool], list[EqualityDelete]](list)
    for delete in deletes:
        alike[tuple(field.field_id for field in delete.columns), delete.partition is None].append(delete)
    return alike
