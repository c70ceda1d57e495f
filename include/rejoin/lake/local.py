"""Rows in this process as a table takes them."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns of ``schema``: what they lack is null, inside structs too."""
    have = {name: rows[name].combine_chunks() for name in rows.column_names}
    return pa.table(
        [_fitted(have.get(f.name), f.type, rows.num_rows) for f in schema], schema=pa.schema([(f.name, f.type) for f in schema])
    )


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


def streamed(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatchReader:
    """The batches with the columns of ``schema``, the metadata of its fields aside."""
    plain = pa.schema([(f.name, f.type) for f in schema])

    def shown() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            same = batch.schema.equals(plain)
            yield from [batch] if same else fitted(pa.Table.from_batches([batch]), schema).to_batches()

    return pa.RecordBatchReader.from_batches(plain, shown())
