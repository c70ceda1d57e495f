"""DuckDB over the Parquet files of a snapshot: the connection, and the relation that Iceberg says the files mean.

Columns are found by Iceberg's field ids, as the format demands: a file written before a column was added, renamed or widened reads right.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
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

from rejoin.lake.files import native

FILE, POSITION = "_file", "_pos"
"""Columns of a relation beside the table's: the file as this machine names it, and the row's number in it."""

MEMORY = "2GB"
"""DuckDB keeps no more in memory than this; larger sorts go to a temporary directory."""

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
class Relation:
    """SQL text of a subquery and the parameters that it needs."""

    sql: str
    parameters: dict[str, list[str]]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database a process: it keeps the footers of files, which never change."""
    # Else what does not fit into memory goes to a folder .tmp where the process happens to work. Users of one machine do not share it.
    spill = Path(tempfile.gettempdir()) / f"rejoin-duckdb-{os.getuid()}"
    made = duckdb.connect(config={"temp_directory": str(spill)})
    made.execute(f"SET TimeZone = 'UTC'; SET memory_limit = '{MEMORY}'; SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    return made


def cursor() -> duckdb.DuckDBPyConnection:
    """A connection of the caller's own."""
    return _database().cursor()


def evolved(table: Table) -> bool:
    """Whether files of the table may have other columns than it has now. Reading by field id costs: joins no longer skip row groups."""
    return len(table.metadata.schemas) > 1


def relation(table: Table, data: Sequence[DataFile], deletes: Sequence[DataFile], clause: str = "") -> Relation | None:
    """The rows of some data files (at least one) that no delete file hides; None if the files are not on this machine.

    Args:
        table: whose files they are.
        data: data files.
        deletes: position delete files.
        clause: applied to the data files before hidden rows are looked for (a join with registered keys, a filter).
    """
    paths, hidden = [native(f.file_path) for f in data], [native(f.file_path) for f in deletes]
    if None in paths or None in hidden:
        return None
    files = [p for p in paths if p is not None]
    schema = f", schema = {_schema(table)}" if evolved(table) else ""
    scan = f"read_parquet($files, filename = '{FILE}', file_row_number = true{schema})"
    rows = f"SELECT * RENAME (file_row_number AS {POSITION}) FROM {scan} {clause}"
    if not hidden:
        return Relation(f"({rows})", {"files": files})
    # Delete files name a data file as its manifest does.
    named = "SELECT unnest($files) AS f, unnest($named) AS file_path"
    gone = f"SELECT f, pos AS p FROM read_parquet($hidden) JOIN ({named}) USING (file_path)"
    return Relation(
        f"(SELECT * FROM ({rows}) ANTI JOIN ({gone}) AS gone ON {FILE} = gone.f AND {POSITION} = gone.p)",
        {"files": files, "named": [f.file_path for f in data], "hidden": [p for p in hidden if p is not None]},
    )


def _schema(table: Table) -> str:
    fields = (
        f"{f.field_id}: {{name: {_text(f.name)}, type: {_text(_type(f.field_type))}, default_value: NULL}}" for f in table.schema().fields
    )
    return f"MAP {{{', '.join(fields)}}}"


def _type(kind: IcebergType) -> str:
    if isinstance(kind, DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, StructType):
        return f"STRUCT({', '.join(f'{_quoted(f.name)} {_type(f.field_type)}' for f in kind.fields)})"
    return _TYPES[type(kind)]


def columns_text(names: Sequence[str]) -> str:
    """Column names as SQL text."""
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
