"""What manifests say of the files of a lake, compared with what is in the files; and conditions that no reader may answer in another way."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import GreaterThan
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.schema import index_by_id
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake import table_names
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.read.duckdb_scan import relation
from rejoin.statements.dialect import DUCKDB

READERS = ("spark", "pyiceberg", "duckdb")
Column = tuple[int, str, pa.ChunkedArray]


def wrong_bounds(refs: Refs, states: Mapping[str, int]) -> list[str]:
    """What is wrong with the bounds and counts of every file of these snapshots, as sentences; none if all is right."""
    return [line for name, snapshot in states.items() for line in of_snapshot(refs.require(name, snapshot), snapshot)]


def of_snapshot(table: Table, snapshot_id: int) -> list[str]:
    """The same for one snapshot."""
    return [f"{table.name()[-1]}: {line}" for file in stored_files(table, snapshot_id) for line in _of_file(table, file)]


def stored_files(table: Table, snapshot_id: int) -> list[DataFile]:
    """The files of a snapshot as its manifests have them, read by PyIceberg alone."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    return [e.data_file for m in snapshot.manifests(table.io) for e in m.fetch_manifest_entry(table.io, discard_deleted=True)]


def counted_above(refs: Refs, spark: Any, name: str, snapshot_id: int, column: str, value: Any) -> dict[str, int]:
    """Rows with a value above another, as each of ``READERS`` counts them; all leave out files or row groups by what is said of them."""
    table = refs.require(name, snapshot_id)
    files = files_of(table, snapshot_id)
    stored = relation(table, files.data, files.deletes) if files.data else None
    above = GreaterThan(column, value)  # type: ignore[call-arg, arg-type]  # pydantic hides the positional form from mypy
    rows = spark.sql(f"SELECT * FROM {table_names.full(refs.topology, name)} VERSION AS OF {snapshot_id}")
    with cursor() as database:
        sql = "SELECT 0" if stored is None else f"SELECT count(*) FROM {stored.sql} WHERE {DUCKDB.name(column)} > $above"
        parameters = {} if stored is None else {**stored.parameters, "above": value}
        [[counted]] = database.sql(sql, params=parameters).fetchall()
    found = (
        rows.where(rows[f"`{column}`"] > value).count(),
        table.scan(row_filter=above, snapshot_id=snapshot_id).to_arrow().num_rows,
        counted,
    )
    return dict(zip(READERS, found, strict=True))


def _of_file(table: Table, file: DataFile) -> Iterator[str]:
    with table.io.new_input(file.file_path).open() as stream:
        rows = pq.ParquetFile(stream).read()
    if rows.num_rows != file.record_count:
        yield f"{rows.num_rows} rows, counted as {file.record_count}"
    fields = {i: f.field_type for schema in table.schemas().values() for i, f in index_by_id(schema).items()}
    lower, upper, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    for field_id, name, column in _leaves(rows):
        low, high = _range(column)
        kind = fields.get(field_id)
        if file.content != DataFileContent.DATA:
            low, high = [v if v is None or isinstance(v, int) else v.encode() for v in (low, high)]
        for bounds, end, outside in ((lower, low, lambda b, v: b > v), (upper, high, lambda b, v: b < v)):
            if field_id not in bounds or end is None:
                continue
            bound = bounds[field_id] if kind is None else from_bytes(kind, bounds[field_id])  # type: ignore[arg-type]
            if isinstance(bound, bytes) and isinstance(end, int):
                bound = int.from_bytes(bound, "little", signed=True)
            if outside(bound, end):
                yield f"column {name} of a file of {rows.num_rows} rows: a bound that does not hold"
        if field_id in nulls and "." not in name and nulls[field_id] != column.null_count:
            yield f"column {name}: {column.null_count} nulls, counted as {nulls[field_id]}"


def _leaves(rows: pa.Table) -> Iterator[Column]:
    flat = rows
    while any(pa.types.is_struct(f.type) for f in flat.schema):
        flat = flat.flatten()
    ids = list(_ids(rows.schema))
    assert len(ids) == flat.num_columns
    yield from zip(ids, flat.column_names, flat.columns, strict=True)


def _ids(fields: Any) -> Iterator[int]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _ids([field.type.field(i) for i in range(field.type.num_fields)])
        else:
            yield int(field.metadata[b"PARQUET:field_id"])


def _range(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """The smallest and largest value, as Iceberg's bounds are decoded, by Python's own order."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values = [v for v in column.to_pylist() if v is not None and v == v]  # noqa: PLR0124 -- NaN
    return (min(values), max(values)) if values else (None, None)
