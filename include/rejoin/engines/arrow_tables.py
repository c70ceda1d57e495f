"""Rows in this process as a table takes them."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_ALIKE = {(pa.large_string(), pa.string()), (pa.large_binary(), pa.binary())}
"""Types of a table, as PyIceberg says them, and of rows that a file keeps as the same."""


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns of ``schema``: what they lack is null, inside structs too."""
    have = {name: rows[name].combine_chunks() for name in rows.column_names}
    wanted = as_wide(_plain(schema), rows.schema)
    return pa.table([_fitted(have.get(f.name), f.type, rows.num_rows) for f in wanted], schema=wanted)


def as_wide(schema: pa.Schema, have: pa.Schema) -> pa.Schema:
    """The schema with texts and bytes as the rows have them, whether these count in 32 or 64 bits: files do not tell, and nothing is copied."""
    types = {f.name: f.type for f in have}
    return pa.schema([f.with_type(_as_wide(f.type, types.get(f.name, f.type))) for f in schema], schema.metadata)


def _as_wide(kind: pa.DataType, have: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind) and pa.types.is_struct(have):
        types = {f.name: f.type for f in have}
        return pa.struct([f.with_type(_as_wide(f.type, types.get(f.name, f.type))) for f in kind])
    return have if (kind, have) in _ALIKE else kind


def _fitted(values: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if values is None:
        return pa.nulls(count, kind)
    if not pa.types.is_struct(kind):
        return values.cast(kind)
    have = {f.name for f in values.type}
    fields = [kind.field(i) for i in range(kind.num_fields)]
    parts = [_fitted(pc.struct_field(values, f.name) if f.name in have else None, f.type, count) for f in fields]
    return pa.StructArray.from_arrays(parts, fields=[pa.field(f.name, f.type) for f in fields], mask=values.is_null())


def in_parts(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The batches as tables of at least so many rows, but the last."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(b.num_rows for b in some) >= rows:
            yield pa.Table.from_batches(some)
            some = []
    if sum(b.num_rows for b in some):
        yield pa.Table.from_batches(some)


def shaped(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The same in batches, which are not copied if they have these columns; none if there are no rows."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    if not batches:
        return []
    if set(schema.names) <= set(rows.schema.names):
        batches = [batch.select(schema.names) for batch in batches]
        wanted = as_wide(_plain(schema), rows.schema)
        if all(batch.schema.equals(wanted) for batch in batches):
            return batches
    return list(fitted(pa.Table.from_batches(batches), schema).to_batches())


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(f.name, f.type) for f in schema])
