"""Rows of Parquet files -> their fields, as they are, and what makes texts of them.

A field that is a column by itself, and has its type or one that can be widened to it, is taken as it is; of others the text is read.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from rejoin.errors import SchemaDrift
from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.events import EventKind, raw_text
from rejoin.sources.formats.encoded_text import no_utf8
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.mapped.statement import Statement, run
from rejoin.sources.shapes.parquet_file import BATCH_ROWS, fits
from rejoin.sources.stored_files import PinnedFile, corrupt, place, verify
from rejoin.statements.dialect import DUCKDB


@dataclass(frozen=True)
class ParquetFields:
    """A file, and the statement for its rows."""

    statement: Statement
    batches: Iterator[pa.RecordBatch]

    def raw(self, rows: pa.RecordBatch) -> list[str]:
        """Rows as quarantine keeps them: as JSON, every field its text."""
        texts = run(self.statement.texts, pa.Table.from_batches([rows])).to_pylist()
        return [raw_text(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()) for row in texts]


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
    known = [name for name in mapping.reads if name in schema.names]
    if twice := [name for name in known if schema.names.count(name) > 1]:
        raise corrupt(file.path, f"it has several columns named {twice[0]!r}")
    types = {name: pa.timestamp("us", "UTC") if name in int96 else _plain(schema.field(name).type) for name in known}
    texts = {name: _text(name, kind, file) for name, kind in types.items()}
    plain = [(column, made.field) for column, made in mapping.columns if made.field is not None and made.field in types]
    whole = frozenset(c.name for c, field in plain if c.type != "STRING" and fits(types[field], str(c.type)))
    statement = Statement(mapping, frozenset(known), texts, whole)
    return ParquetFields(statement, _batches(found, types, mapping, file))


def _batches(found: pq.ParquetFile, types: dict[str, pa.DataType], mapping: Mapping, file: PinnedFile) -> Iterator[pa.RecordBatch]:
    line, absent = 1, [name for name in mapping.reads if name not in types]
    try:
        for rows in found.iter_batches(BATCH_ROWS, columns=list(types)):
            yield _records(rows, types, absent, line)
            line += rows.num_rows
    except (pa.ArrowException, OSError):
        raise corrupt(file.path, "its pages are damaged") from None


def _records(rows: pa.RecordBatch, types: dict[str, pa.DataType], absent: list[str], line: int) -> pa.RecordBatch:
    arrays, count = dict[str, pa.Array](), rows.num_rows
    wrong, reasons = pa.repeat(pa.scalar(False), count), pa.nulls(count, pa.string())
    for name, kind in types.items():
        values = rows[name].dictionary_decode() if pat.is_dictionary(rows[name].type) else rows[name]
        if pat.is_string(kind) and (bad := no_utf8(values)) is not None:
            wrong, reasons = pc.or_(wrong, bad), pc.if_else(bad, f"field {name!r}: no UTF-8", reasons)
            values = pc.if_else(bad, pa.scalar("\ufffd", values.type), values)  # so that nobody takes the record for all that was written
        arrays[name] = values if values.type == kind else values.cast(kind)
    lists = pa.repeat(pa.scalar(absent, pa.list_(pa.string())), count)
    own = {
        "_line": pa.array(np.arange(line, line + count)),
        "_lines": pa.repeat(pa.scalar(1, pa.int64()), count),
        "_absent": lists,
        "_kind": pc.if_else(wrong, str(EventKind.QUARANTINED), str(EventKind.UPSERT)),
        "_code": pc.if_else(wrong, "VALUE_TYPE", pa.scalar(None, pa.string())),
        "_reason": reasons,
    }
    return pa.record_batch(arrays | own)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_large_string(kind) or pat.is_string_view(kind) or pat.is_null(kind):  # null: of a column in which nothing else is
        return pa.string()
    if pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind):
        return pa.binary()
    return kind


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pat.is_string, "{}"),
    (lambda t: pat.is_integer(t) or pat.is_boolean(t) or pat.is_float32(t) or pat.is_float64(t), "CAST({} AS VARCHAR)"),
    (lambda t: pat.is_date(t) or pat.is_time(t), "CAST({} AS VARCHAR)"),
    (lambda t: pat.is_timestamp(t) and t.tz is None, "CAST({} AS VARCHAR)"),
    (pat.is_timestamp, "CAST(CAST({} AS TIMESTAMP) AS VARCHAR) || 'Z'"),
    (pat.is_binary, "base64({})"),
)


def _text(name: str, kind: pa.DataType, file: PinnedFile) -> str:
    """SQL of a field's text."""
    value = DUCKDB.name(name)
    if pat.is_decimal(kind) and kind.precision <= 38:
        # DuckDB leaves the zero before the point out where no digit can be there.
        wider = f"DECIMAL({min(38, kind.precision + 1)},{kind.scale})"
        return f"CAST(CAST({value} AS {wider}) AS VARCHAR)"
    found = next((text for test, text in _TEXTS if test(kind)), None)
    if found is None:
        raise SchemaDrift(
            f"field {name!r} has the type {kind} in {file.path!r}, and is read as a single value",
            expected="numbers, texts, bytes, dates, timestamps, true or false",
            next_step="read another field, or let the writer flatten this one",
        )
    return found.format(value)
