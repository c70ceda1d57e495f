"""Reads on the driver: the rows of a snapshot with some keys, or of one run, by DuckDB over the snapshot's Parquet files.

DuckDB skips row groups whose statistics rule the keys out and reads other columns only where a key was found. So a lookup of k keys costs
about k row groups, whatever the size of the table; it needs no Spark job. Columns are found by Iceberg's field ids, as the format demands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from rejoin.lake.files import files_of, native, overlapping
from rejoin.stages.frames import RUN

LOCAL_ROWS = 100_000
"""The driver never holds more rows of a frame than these, nor looks up more keys."""
PROBE_ROWS = 30_000_000
"""A lookup that would have to decode more rows than these is left to Spark."""
ROW_GROUP = 8_192
"""Rows in a row group of the tables that rejoin writes: small enough for lookups, large enough for scans (docs/benchmarks.md)."""

FILE, POSITION = "_file", "_pos"

_TYPES: dict[type[IcebergType], str] = {
    BooleanType: "BOOLEAN",
    IntegerType: "INTEGER",
    LongType: "BIGINT",
    FloatType: "FLOAT",
    DoubleType: "DOUBLE",
    StringType: "VARCHAR",
    BinaryType: "BLOB",
    DateType: "DATE",
    TimestampType: "TIMESTAMP",
    TimestamptzType: "TIMESTAMPTZ",
}


@dataclass(frozen=True)
class TooLarge:
    """The driver should not do this read, and why."""

    why: str


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database a process: it keeps the footers of files, which never change. Every read uses a cursor of its own."""
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'; SET memory_limit = '2GB'; SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    return made


def having(table: Table, snapshot_id: int, key: Sequence[str], keys: pa.Table, columns: Sequence[str]) -> pa.Table | TooLarge:
    """The rows of a snapshot whose ``key`` columns have one of the values in ``keys``: ``columns``, which may hold FILE and POSITION.

    All stored versions; rows hidden by position deletes are left out.
    """
    if not keys.num_rows:
        return _nothing(table, columns)
    if any(isinstance(table.schema().find_field(k).field_type, FloatType | DoubleType) for k in key):
        return TooLarge("a key column is a floating point number")
    low, high = (pc.min_max(keys[key[0]])[side].as_py() for side in ("min", "max"))
    found = files_of(table, snapshot_id)
    data = overlapping(table, found.data, key[0], low, high)
    touched = sum(min(f.record_count, keys.num_rows * ROW_GROUP) for f in data)
    if touched > PROBE_ROWS:
        return TooLarge(f"{touched:,} rows would be decoded")
    return _read(table, data, found.deletes, columns, f"SEMI JOIN wanted USING ({_list(key)})", {"wanted": keys.select(list(key))})


def of_run(table: Table, snapshot_id: int, run: int, columns: Sequence[str]) -> pa.Table | TooLarge:
    """The rows of a snapshot that a run wrote."""
    found = files_of(table, snapshot_id)
    data = overlapping(table, found.data, RUN, run, run)
    return _read(table, data, found.deletes, columns, f"WHERE {_quoted(RUN)} = {run}", {})


def every(table: Table, snapshot_id: int, columns: Sequence[str]) -> pa.Table | TooLarge:
    """All rows of a snapshot."""
    found = files_of(table, snapshot_id)
    if found.rows > LOCAL_ROWS:
        return TooLarge(f"{found.rows:,} rows")
    return _read(table, found.data, found.deletes, columns, "", {})


def _read(
    table: Table, data: Sequence[DataFile], deletes: Sequence[DataFile], columns: Sequence[str], clause: str, frames: dict[str, pa.Table]
) -> pa.Table | TooLarge:
    paths, hidden = [native(f.file_path) for f in data], [native(f.file_path) for f in deletes]
    if None in paths or None in hidden:
        return TooLarge("the files are not on this machine")
    if not paths:
        return _nothing(table, columns)
    cursor = _database().cursor()
    try:
        for name, frame in frames.items():
            cursor.register(name, frame)
        scan = f"read_parquet($files, filename = '{FILE}', file_row_number = true, schema = {_schema(table)})"
        wanted = [f"file_row_number AS {POSITION}" if c == POSITION else _quoted(c) for c in columns]
        sql = f"SELECT {', '.join(wanted)} FROM {scan} {clause} LIMIT {LOCAL_ROWS + 1}"
        parameters: dict[str, Any] = {"files": paths}
        if hidden:
            parameters["hidden"] = hidden
            gone = "SELECT regexp_replace(file_path, '^file:(//)?/', '/') AS f, pos AS p FROM read_parquet($hidden)"
            rows = f"SELECT * FROM {scan} {clause}"
            sql = f"SELECT {', '.join(wanted)} FROM ({rows}) ANTI JOIN ({gone}) ON {FILE} = f AND file_row_number = p LIMIT {LOCAL_ROWS + 1}"
        rows_found: pa.Table = cursor.execute(sql, parameters).to_arrow_table()
    finally:
        cursor.close()
    return TooLarge(f"more than {LOCAL_ROWS:,} rows were found") if rows_found.num_rows > LOCAL_ROWS else rows_found


def _nothing(table: Table, columns: Sequence[str]) -> pa.Table:
    extra = {FILE: pa.string(), POSITION: pa.int64()}
    types = {f.name: f.type for f in table.schema().as_arrow()} | extra
    return pa.schema([(c, types[c]) for c in columns]).empty_table()


def _schema(table: Table) -> str:
    fields = (f"{f.field_id}: {{name: {_text(f.name)}, type: {_text(_type(f.field_type))}, default_value: NULL}}" for f in table.schema().fields)
    return f"MAP {{{', '.join(fields)}}}"


def _type(kind: IcebergType) -> str:
    if isinstance(kind, DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, StructType):
        return f"STRUCT({', '.join(f'{_quoted(f.name)} {_type(f.field_type)}' for f in kind.fields)})"
    return _TYPES[type(kind)]


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
