"""Avro container files and Parquet files of change events -> lines of JSON as Kafka Connect's JSON converter would have written them."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.formats.avro_file import avro_file
from rejoin.sources.formats.connect_json import documents, of_arrow, of_avro, physical_arrow, physical_avro
from rejoin.sources.stored_files import PinnedFile, corrupt, pinned_bytes, place, verify

BINARY = (".avro", ".parquet")
"""Ends of names of files that are read so."""
_ROWS = 10_000
_AVRO_SCHEMA = b"parquet.avro.schema"
"""Where writers of Parquet by way of Avro leave its schema."""


def binary_documents(root: str, file: PinnedFile) -> Iterator[bytes]:
    """The records of a pinned file, each with its schema, a line each, in pieces of some lines.

    Raises:
        SourceFileMissing, SourceFileChanged: the pinned bytes are no longer there.
        SourceCorrupt: the file is damaged. What was read before must be thrown away.
    """
    found = (_of_avro if file.path.endswith(".avro") else _of_parquet)(root, file)
    while lines := list(islice(found, 1_000)):
        yield b"".join(lines)


def _of_avro(root: str, file: PinnedFile) -> Iterator[bytes]:
    found = avro_file(b"".join(pinned_bytes(root, file)), file.path, physical_avro)
    return documents(_of_avro_schema(found.schema, file), found.records)


def _of_parquet(root: str, file: PinnedFile) -> Iterator[bytes]:
    verify(root, file)
    opened = parquet_file(place(root, file.path))
    written = (opened.schema_arrow.metadata or {}).get(_AVRO_SCHEMA)
    schema = of_arrow(opened.schema_arrow) if written is None else _of_avro_schema(written, file)
    return documents(schema, _rows(opened, file))


def _of_avro_schema(schema: Any, file: PinnedFile) -> dict[str, Any]:
    try:
        return of_avro(json.loads(schema) if isinstance(schema, bytes) else schema)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise corrupt(file.path, "its Avro schema cannot be read") from None


def _rows(opened: Any, file: PinnedFile) -> Iterator[Any]:
    try:
        for group in range(opened.num_row_groups):  # each by itself: of several Arrow cannot put every nested type together
            for batch in opened.iter_batches(_ROWS, row_groups=[group]):
                yield from physical_arrow(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))).to_pylist()
    except (pa.ArrowException, OSError):
        raise corrupt(file.path, "its pages are damaged") from None
