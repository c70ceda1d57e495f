"""Rows with the types of Arrow, of a file or a table -> their fields, as they are, and what makes texts of them.

A field that is a column by itself, and has its type or one that can be widened to it, is taken as it is; of others the text is read.
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from rejoin.errors import SchemaDrift
from rejoin.plan.sql.nested import is_nested
from rejoin.sources.events import EventKind, arrow_type, raw_text
from rejoin.sources.formats.encoded_text import no_utf8
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.mapped.statement import Statement, run
from rejoin.sources.shapes.parquet_file import fits
from rejoin.sources.shapes.parquet_rows import cast_values, faults, shown
from rejoin.statements.dialect import DUCKDB

_MARK = "\ufffd"
"""In place of what cannot be read, so that nobody takes the record for all that was written."""
_NULL = "CAST(NULL AS VARCHAR)"


@dataclass(frozen=True)
class ArrowFields:
    """The fields that rows have, and the statement for them.

    Attributes:
        statement: of ``records``.
        types: field -> its type there.
        nested: field -> the type of the nested column that it is.
        absent: fields that are read, and that the rows lack.
    """

    statement: Statement
    types: dict[str, pa.DataType]
    nested: dict[str, pa.DataType]
    absent: list[str]

    def records(self, rows: pa.RecordBatch, line: int) -> pa.RecordBatch:
        """Rows, the first of them on ``line`` -> records with their fields, for ``records.Records``."""
        arrays, count = dict[str, pa.Array](), rows.num_rows
        codes = reasons = pa.nulls(count, pa.string())
        for name, kind in self.types.items():
            values = rows[name].dictionary_decode() if pat.is_dictionary(rows[name].type) else rows[name]
            for bad, code, reason in self._faults(name, values):
                codes, reasons = pc.if_else(bad, code, codes), pc.if_else(bad, reason, reasons)
                values = pc.if_else(bad, pa.scalar(_MARK if pat.is_string(kind) else None, values.type), values)
            arrays[name] = cast_values(values, self.nested.get(name, kind))
        lists = pa.repeat(pa.scalar(self.absent, pa.list_(pa.string())), count)
        own = {
            "_line": pa.array(np.arange(line, line + count)),
            "_lines": pa.repeat(pa.scalar(1, pa.int64()), count),
            "_absent": lists,
            "_kind": pc.if_else(pc.is_valid(codes), str(EventKind.QUARANTINED), str(EventKind.UPSERT)),
            "_code": codes,
            "_reason": reasons,
        }
        return pa.record_batch(arrays | own)

    def raw(self, rows: pa.RecordBatch) -> list[str]:
        """Records as quarantine keeps them: as JSON, every field its text, nested ones as they are."""
        texts = run(self.statement.texts, pa.Table.from_batches([rows])).to_pylist()
        for name in self.nested:
            for text, value, kind in zip(texts, shown(rows[name]), rows["_kind"].to_pylist(), strict=True):
                text[name] = _MARK if value is None and kind == EventKind.QUARANTINED else value
        return [raw_text(json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str).encode()) for row in texts]

    def _faults(self, name: str, values: pa.Array) -> Iterable[tuple[pa.BooleanArray, str, str]]:
        """As ``parquet_rows.faults``; of single values only texts: what is made of others tells for itself."""
        if name in self.nested:
            return faults(name, values)
        bad = no_utf8(values) if pat.is_string(self.types[name]) else None
        return () if bad is None else ((bad, "VALUE_TYPE", f"field {name!r}: no UTF-8"),)


def arrow_fields(mapping: Mapping, schema: pa.Schema, place: str, int96: Collection[str] = ()) -> ArrowFields:
    """What rows of a schema have.

    Args:
        mapping: what is made of them.
        schema: no two columns that are read have one name.
        place: what errors call the file or table.
        int96: columns that are stored as INT96.

    Raises:
        SchemaDrift: a field that is read as a text has no single values, or others than the nested column that it is.
    """
    known = [name for name in mapping.reads if name in schema.names]
    types = {name: pa.timestamp("us", "UTC") if name in int96 else _plain(schema.field(name).type) for name in known}
    plain = [(column, made.field) for column, made in mapping.columns if made.field is not None and made.field in types]
    fitting = [(c.name, str(c.type), field) for c, field in plain if c.type != "STRING" and fits(types[field], str(c.type))]
    nested = {field: arrow_type(type_) for _, type_, field in fitting if is_nested(type_)}
    whole = frozenset(name for name, type_, field in fitting if nested.get(field, arrow_type(type_)) == arrow_type(type_))
    as_text = {name for made in mapping.made(whole) for name in made.reads}
    texts = {name: _text(name, kind, place) if name in as_text or name not in nested else _NULL for name, kind in types.items()}
    absent = [name for name in mapping.reads if name not in types]
    return ArrowFields(Statement(mapping, frozenset(known), texts, whole), types, nested, absent)


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


def _text(name: str, kind: pa.DataType, place: str) -> str:
    """SQL of a field's text."""
    value = DUCKDB.name(name)
    if pat.is_decimal(kind) and kind.precision <= 38:
        # DuckDB leaves the zero before the point out where no digit can be there.
        wider = f"DECIMAL({min(38, kind.precision + 1)},{kind.scale})"
        return f"CAST(CAST({value} AS {wider}) AS VARCHAR)"
    found = next((text for test, text in _TEXTS if test(kind)), None)
    if found is None:
        raise SchemaDrift(
            f"field {name!r} has the type {kind} in {place!r}, and is read as a single value, or by a nested column of another type",
            expected="numbers, texts, bytes, dates, timestamps, true or false; of a nested column its declared type, or one that can be widened to it",
            next_step="declare the column that is this field with its type, read another field, or let the writer flatten this one",
        )
    return found.format(value)
