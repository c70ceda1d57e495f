"""A snapshot as PyIceberg and Arrow read it, with no list of files, no bounds and no reader of rejoin's: for comparisons."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan, FileScanTask, Table
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from rejoin.lake.iceberg.column_bounds import leaf_ids
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.limits import limits
from rejoin.statements.own_columns import PLACE

_TIMES: dict[type, pa.DataType] = {DateType: pa.int32(), TimestampType: pa.int64(), TimestamptzType: pa.int64()}
"""What times are as numbers, as bounds have them."""
_BOUNDED = (*_TIMES, IntegerType, LongType, StringType, DecimalType)
"""Types whose bounds are compared. Not floating point numbers: whether -0.0 equals 0.0 differs between a filter and the bounds, by Iceberg's rules."""


def streams(table: Table, snapshot_id: int, schema: pa.Schema, at_once: int) -> Sequence[Iterable[pa.RecordBatch]]:
    """The columns ``schema`` of all rows, in as many streams as are taken ``at_once``; PLACE is null, since nobody looks where they lie."""
    scan = table.scan(snapshot_id=snapshot_id, selected_fields=tuple(c for c in schema.names if c != PLACE))
    files = list(scan.plan_files())
    return [_batches(scan, files[number::at_once], schema) for number in range(max(1, min(at_once, len(files))))]


def _batches(scan: DataScan, files: Sequence[FileScanTask], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reading = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter)
    for some in _at_a_time(files):
        for batch in reading.to_record_batches(some):
            columns = [pa.nulls(batch.num_rows, f.type) if f.name == PLACE else batch[f.name].cast(f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _at_a_time(files: Sequence[FileScanTask]) -> Iterator[list[FileScanTask]]:
    """The files by so many as have the rows of a range: PyIceberg holds all rows of what it is given at once."""
    some, rows = list[FileScanTask](), 0
    for file in files:
        if some and rows + file.file.record_count > limits().range_rows:
            yield some
            some, rows = [], 0
        some.append(file)
        rows += file.file.record_count
    if some:
        yield some


def outside_bounds(table: Table, snapshot_id: int) -> int:
    """How many values are outside of the bounds that a manifest says of their file, or the file of their row group: all readers skip by these."""
    found, schema = 0, arrow_schema(table)
    fields = {f.field_id: f for f in table.schema().fields if isinstance(f.field_type, _BOUNDED)}
    for task in table.scan(snapshot_id=snapshot_id).plan_files():
        lower, upper = task.file.lower_bounds or {}, task.file.upper_bounds or {}
        with table.io.new_input(task.file.file_path).open() as stream:
            file = pq.ParquetFile(stream)
            leaves = {i: fields[of] for i, of in enumerate(leaf_ids(file.schema_arrow)) if of in fields}
            names = {of: f.name for f in file.schema_arrow if (of := int(f.metadata[b"PARQUET:field_id"])) in fields}
            for group in range(file.num_row_groups):
                about, rows = file.metadata.row_group(group), file.read_row_group(group, columns=list(names.values()))
                for leaf, field in leaves.items():
                    of, kind = field.field_id, field.field_type
                    assert isinstance(kind, PrimitiveType)
                    ends = [(from_bytes(kind, lower[of]), from_bytes(kind, upper[of]))] if of in lower and of in upper else []
                    ends += _of_group(about.column(leaf).statistics, kind)
                    found += _outside(rows[names[of]].cast(schema.field(field.name).type), kind, ends)
    return found


def _of_group(counted: Any, kind: PrimitiveType) -> list[tuple[Any, Any]]:
    """The bounds of a column in a row group, as ``from_bytes`` has those of a file; none if it has none."""
    if counted is None or not counted.has_min_max:
        return []
    return [(counted.min_raw, counted.max_raw) if type(kind) in _TIMES else (counted.min, counted.max)]


def _outside(column: pa.ChunkedArray, kind: PrimitiveType, ends: list[tuple[Any, Any]]) -> int:
    values = column.cast(_TIMES[type(kind)]) if type(kind) in _TIMES else column
    wrong = [pc.or_(pc.less(values, pa.scalar(low, values.type)), pc.greater(values, pa.scalar(high, values.type))) for low, high in ends]
    return int(pc.sum(wrong[0] if len(wrong) == 1 else pc.or_(*wrong)).as_py() or 0) if wrong else 0
