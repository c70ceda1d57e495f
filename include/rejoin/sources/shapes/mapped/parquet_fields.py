"""Rows of Parquet files -> their fields."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.shapes.mapped.arrow_fields import ArrowFields, arrow_fields
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.parquet_file import BATCH_ROWS
from rejoin.sources.stored_files import PinnedFile, corrupt, place, verify


@dataclass(frozen=True)
class ParquetFields:
    """A file: its fields, and its records."""

    fields: ArrowFields
    batches: Iterator[pa.RecordBatch]


def opened(mapping: Mapping, root: str, file: PinnedFile) -> ParquetFields:
    """A pinned file.

    Raises:
        SourceFileMissing, SourceFileChanged: the pinned bytes are no longer there.
        SourceCorrupt: the file is damaged, now or as its batches are read.
        SchemaDrift: a field has no single values.
    """
    verify(root, file)
    found = parquet_file(place(root, file.path))
    schema, int96 = found.schema_arrow, {column.name for column in found.schema if column.physical_type == "INT96"}
    if twice := [name for name in mapping.reads if schema.names.count(name) > 1]:
        raise corrupt(file.path, f"it has several columns named {twice[0]!r}")
    fields = arrow_fields(mapping, schema, file.path, int96)
    return ParquetFields(fields, _batches(found, fields, file))


def _batches(found: pq.ParquetFile, fields: ArrowFields, file: PinnedFile) -> Iterator[pa.RecordBatch]:
    line = 1
    try:
        for rows in found.iter_batches(BATCH_ROWS, columns=list(fields.types)):
            yield fields.records(rows, line)
            line += rows.num_rows
    except (pa.ArrowException, OSError):
        raise corrupt(file.path, "its pages are damaged") from None
