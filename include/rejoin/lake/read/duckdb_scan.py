"""DuckDB over the Parquet files of a snapshot: the relation that Iceberg says the files mean.

Columns are found by Iceberg's field ids, as the format demands: a file written before a column was added, renamed or widened reads right.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
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
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from rejoin.engines import object_stores
from rejoin.lake.iceberg.row_addresses import paths, place
from rejoin.lake.locations import native
from rejoin.plan.model.column_names import spelled
from rejoin.plan.sql.portable import quoted
from rejoin.statements.dialect import DUCKDB
from rejoin.statements.own_columns import PLACE

FILE, POSITION = "_file", "_pos"
"""Columns of a relation beside the table's: the file as DuckDB opens it (``opens``), and the row's number in it."""

ROW_NUMBER = "file_row_number"
"""What DuckDB calls the row's number, whatever the files hold."""

Called = Callable[[str], str]
"""From a file's path in Iceberg's metadata to the name by which DuckDB opens it."""

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

    def inlined(self) -> str:
        """The same without parameters, which a view cannot have."""
        return re.sub(r"\$(\w+)", lambda name: f"[{', '.join(map(quoted, self.parameters[name[1]]))}]", self.sql)


def opens(table: Table) -> Called:
    """How the files of a table are called: those of this machine by their path."""

    def called(path: str) -> str:
        local = native(path)
        return object_stores.name(table.io, path) if local is None else local

    return called


def scan(files: str, *options: str) -> str:
    """The rows of the Parquet files that a parameter lists (see ``listed``), as SQL text. The columns are those of the files alone."""
    return _read(f"${files}", *options)


def scan_of(names: Iterable[str]) -> str:
    """The same of files whose names, as DuckDB opens them, stand in the text."""
    return _read(f"[{', '.join(quoted(_alone(name)) for name in names)}]")


def _read(files: str, *options: str) -> str:
    """Without a word DuckDB takes a folder ``env=prod``, wherever above a file, for a column that overrides the file's own. It also leaves out NaN,
    even of ``isnan(c)`` and ``max(c)``: Parquet's smallest and largest values do.
    """
    return f"read_parquet({files}, {', '.join(('hive_partitioning = false', 'can_have_nan = true', *options))})"


def listed(files: Sequence[DataFile], called: Called) -> list[str]:
    """The files as DuckDB takes them in a list, where each is a pattern."""
    return [_alone(called(f.file_path)) for f in files]


def _alone(name: str) -> str:
    """The pattern that only one name meets."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def by_id(table: Table) -> bool:
    """Whether columns are found by Iceberg's field ids: files may have other columns than the table has now, or a name is DuckDB's own.

    It costs: joins no longer skip row groups.
    """
    return len(table.metadata.schemas) > 1 or _taken(table) is not None


def at_positions(table: Table, positions: Iterable[int]) -> str:
    """The condition, in the ``clause`` of a relation, that a row has one of these numbers in its file; it skips row groups."""
    return f"{ROW_NUMBER if _taken(table) is None else POSITION} IN ({', '.join(map(str, positions))})"


def relation(
    table: Table,
    data: Sequence[DataFile],
    deletes: Sequence[DataFile],
    clause: str = "",
    called: Called | None = None,
    among: Sequence[DataFile] = (),
) -> Relation:
    """The rows of some data files (at least one) that no delete file hides.

    Args:
        table: whose files they are.
        data: data files.
        deletes: position delete files.
        clause: applied to the data files before hidden rows are looked for (a join with registered keys, a filter).
        called: how the files are opened, if not as all files of their table are.
        among: all data files of the snapshot, if the rows shall have PLACE.
    """
    called = called or opens(table)
    files, hidden = listed(data, called), listed(deletes, called)
    rows, scanned = _rows(table, clause, placed=bool(among)), {"files": files}
    if among:
        scanned["among"] = [called(path) for path in paths(among)]
    if not hidden:
        return Relation(f"({rows})", scanned)
    # Delete files name a data file as its manifest does.
    named = "SELECT unnest($paths) AS f, unnest($named) AS file_path"
    gone = f"SELECT f, pos AS p FROM {scan('hidden')} JOIN ({named}) USING (file_path)"
    names = {"paths": [called(f.file_path) for f in data], "named": [f.file_path for f in data]}
    return Relation(
        f"(SELECT * FROM ({rows}) ANTI JOIN ({gone}) AS gone ON {FILE} = gone.f AND {POSITION} = gone.p)",
        {**scanned, **names, "hidden": hidden},
    )


def _rows(table: Table, clause: str, *, placed: bool) -> str:
    """The rows of the data files with FILE and POSITION, and if they are to be ``placed`` with PLACE."""
    schema = [f"schema = {_schema(table)}"] if by_id(table) else []
    found = scan("files", f"filename = '{FILE}'", f"{ROW_NUMBER} = true", *schema)
    taken = _taken(table)
    number = ROW_NUMBER if taken is None else POSITION
    where = f", {place('$among', FILE, number)} AS {PLACE}" if placed else ""
    if taken is None:
        return f"SELECT * RENAME ({ROW_NUMBER} AS {POSITION}){where} FROM {found} {clause}"
    # Two columns would have one name: the table's comes in by another, and gets its own once DuckDB's has another.
    named = f"SELECT * RENAME ({ROW_NUMBER} AS {POSITION}, {DUCKDB.name(_aside(taken))} AS {DUCKDB.name(taken)}) FROM {found}"
    return f"SELECT *{where} FROM ({named}) {clause}"


def _taken(table: Table) -> str | None:
    """The column that is called what DuckDB calls the row's number, in any case."""
    return spelled(ROW_NUMBER, (f.name for f in table.schema().fields))


def _aside(name: str) -> str:
    """A name that no column of a table has: those with an underscore are rejoin's."""
    return f"_{name}"


def _schema(table: Table) -> str:
    """What DuckDB shall read: field ids with name and type."""
    taken = _taken(table)
    fields = (
        f"{f.field_id}: {{name: {quoted(_aside(f.name) if f.name == taken else f.name)}, type: {quoted(_type(f.field_type))}, default_value: NULL}}"
        for f in table.schema().fields
    )
    return f"MAP {{{', '.join(fields)}}}"


def _type(kind: IcebergType) -> str:
    if isinstance(kind, DecimalType):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if isinstance(kind, StructType):
        return f"STRUCT({', '.join(f'{DUCKDB.name(f.name)} {_type(f.field_type)}' for f in kind.fields)})"
    if isinstance(kind, ListType):
        return f"{_type(kind.element_type)}[]"
    if isinstance(kind, MapType):
        return f"MAP({_type(kind.key_type)}, {_type(kind.value_type)})"
    return _TYPES[type(kind)]


def stored_types(table: Table) -> dict[str, str]:
    """A table's columns and what they are to DuckDB."""
    return {f.name: _type(f.field_type) for f in table.schema().fields}


def field_types(schema: Schema, struct: str) -> dict[str, str]:
    """The fields of a column that is a struct and what they are to DuckDB."""
    kind = schema.find_field(struct).field_type
    assert isinstance(kind, StructType)
    return {f.name: _type(f.field_type) for f in kind.fields}
