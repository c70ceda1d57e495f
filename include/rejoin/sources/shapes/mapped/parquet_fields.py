"""Rows of Parquet files -> their fields."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from rejoin.sources.shapes.mapped.arrow_fields import ArrowFields, arrow_fields
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.parquet_file import ParquetRows
from rejoin.sources.stored_files import corrupt


@dataclass(frozen=True)
class ParquetFields:
    """A file: its fields, and its records."""

    fields: ArrowFields
    batches: Iterator[pa.RecordBatch]


def opened(mapping: Mapping, of: ParquetRows) -> ParquetFields:
    """A pinned file, or some of its rows.

    Raises:
        SourceFileMissing, SourceFileChanged: the pinned bytes are no longer there.
        SourceCorrupt: the file is damaged, now or as its batches are read.
        SchemaDrift: a field has no single values.
    """
    found, path = of.opened(), of.file.path
    schema, int96 = found.schema_arrow, {column.name for column in found.schema if column.physical_type == "INT96"}
    if twice := [name for name in mapping.reads if schema.names.count(name) > 1]:
        raise corrupt(path, f"it has several columns named {twice[0]!r}")
    fields = arrow_fields(mapping, schema, path, int96)
    return ParquetFields(fields, (fields.records(rows, line) for line, rows in of.batches(found, list(fields.types))))
