"""Rows in this process as a table takes them."""

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
