"""Writes one data file of a table: as PyIceberg writes it, but with encodings that know what the columns hold.

A hash never repeats, so a dictionary of hashes is thrown away after its first page, and the lengths before the values, all alike, do not compress
well; keys come in their order, so they differ little from one to the next. Rejoin's own tables are 10 to 15 % smaller for it, and are written and looked up in
less time. Outputs are for any reader of Iceberg, and not every one knows these encodings: theirs are plain.
"""

import uuid

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import ParquetFormatWriter
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StructType, TimestampType, TimestamptzType

from rejoin.errors import NotComputable
from rejoin.lake.local import as_wide
from rejoin.stages.columns import HASH

_STEPS = (IntegerType, LongType, DateType, TimestampType, TimestamptzType)
"""Types of which the difference to the value before can be stored."""
KEY = "write.metadata.metrics.column."
"""Begins the property that asks for the bounds of a column in full: of those by which the rows are sorted."""
_PLAIN = "PLAIN"


def data_file(table: Table, metadata: TableMetadata, rows: pa.Table) -> DataFile:
    """Writes rows (columns and types as the table's, in its order) to a new file. ``metadata``: the table's, with the properties to write by.

    Raises:
        NotComputable: as by ``check_years``.
    """
    schema = metadata.schema()
    output = table.io.new_output(table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet"))
    try:
        with _Writer(output, schema, dict(metadata.properties), _encodings(table)) as writer:
            writer.write(rows.cast(as_wide(schema.as_arrow(), rows.schema)))
    except OverflowError:
        check_years(".".join(table.name()), rows)
        raise
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=len(output),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **writer.result().to_serialized_dict(),
    )


def check_years(table: str, rows: pa.Table) -> None:
    """Looks at the dates and times of rows that are to become part of ``table``. Fields of structs are not looked at.

    Raises:
        NotComputable: some are outside the years 1 to 9999. Spark has such years; files cannot tell their bounds, and Python has no value for them.
    """
    found = [name for name, values in zip(rows.column_names, rows.columns, strict=True) if _beyond(values)]
    if found:
        raise NotComputable(
            f"column {', '.join(found)} of table {table} has a date or time outside the years 1 to 9999; nothing was committed",
            expected="dates and times of the years 1 to 9999, or null",
            next_step="correct the input or the expression and run again: the same input is read again",
        )


def _beyond(values: pa.ChunkedArray) -> bool:
    if not (pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type)):
        return False
    years = pc.min_max(pc.year(values))
    return years["min"].is_valid and not 1 <= years["min"].as_py() <= years["max"].as_py() <= 9999


def _encodings(table: Table) -> dict[str, str]:
    """The columns and fields that are not written as Parquet does it by itself."""
    own = any(field.name == "_op" for field in table.schema().fields)  # an output has none
    found: dict[str, str] = {}
    for field in table.schema().fields:
        for leaf in _leaves(field):
            if leaf.rpartition(".")[2] == HASH:
                found[leaf] = "DELTA_LENGTH_BYTE_ARRAY" if own else _PLAIN
        if own and isinstance(field.field_type, _STEPS) and f"{KEY}{field.name}" in table.properties:
            found[field.name] = "DELTA_BINARY_PACKED"
    return found


def _leaves(field: NestedField) -> list[str]:
    """What Parquet calls the columns of a field."""
    kind = field.field_type
    return [f"{field.name}.{inner.name}" for inner in kind.fields] if isinstance(kind, StructType) else [field.name]


class _Writer(ParquetFormatWriter):
    """PyIceberg's, with encodings of some columns."""

    def __init__(self, output: OutputFile, schema: Schema, properties: dict[str, str], encodings: dict[str, str]) -> None:
        super().__init__(output, schema, properties)
        dictionaries = [leaf for field in schema.fields for leaf in _leaves(field) if leaf not in encodings]
        self._parquet_writer_kwargs |= {"column_encoding": encodings, "use_dictionary": dictionaries}
