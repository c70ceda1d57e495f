"""Stored rows as the plan sees them. A table keeps the columns of earlier plans, in the order in which they came; whoever reads a struct gets the
fields that the plan names, in its order and as wide as it says, so that rows of different tables can meet.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from rejoin.engines.relation import Engine
from rejoin.plan.change.compatibility import fits
from rejoin.statements.own_columns import HASH

Fields = Sequence[tuple[str, str | None]]
"""Names and Spark SQL types (None: as stored) of columns."""

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.date32(): "DATE",
}


def spark_name(kind: pa.DataType) -> str | None:
    """What Spark SQL calls a type, in capitals; None for a struct."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"  # engines name the zone UTC in several ways
    return _NAMES.get(kind)


def row(engine: Engine, schema: pa.Schema, fields: Fields) -> str:
    """SQL text over rows with these columns: the fields and the hash as one struct; a field that is not stored yet is null."""
    return engine.sql.struct([*_texts(engine, schema, fields, ""), (HASH, HASH)])


def struct(engine: Engine, schema: pa.Schema, column: str, fields: Fields, own: Sequence[str] = ()) -> str:
    """SQL text: a struct column with exactly these fields and the hash, null where it is null.

    Args:
        engine: who computes it.
        schema: the columns of the rows.
        column: the struct.
        fields: of the result; one that the struct lacks is null.
        own: fields that are columns of the rows themselves.
    """
    beside = dict(_texts(engine, schema, [f for f in fields if f[0] in own], ""))
    texts = [(n, beside.get(n, text)) for n, text in _texts(engine, schema.field(column).type, fields, column)]
    sql = engine.sql
    return f"CASE WHEN {sql.name(column)} IS NOT NULL THEN {sql.struct([*texts, (HASH, sql.get(sql.name(column), HASH))])} END"


def _texts(engine: Engine, stored: pa.Schema | pa.StructType, fields: Fields, of: str) -> list[tuple[str, str]]:
    sql, types, made = engine.sql, {f.name: f.type for f in _fields(stored)}, []
    for name, of_type in fields:
        if name not in types:
            made.append((name, sql.null(of_type or "STRING")))
            continue
        value, was = sql.get(sql.name(of), name) if of else sql.name(name), spark_name(types[name])
        made.append((name, sql.cast(value, of_type) if of_type not in (None, was) and fits(was or "", of_type or "") else value))
    return made


def _fields(stored: pa.Schema | pa.StructType) -> Iterable[pa.Field]:
    return [stored.field(i) for i in range(len(stored.names) if isinstance(stored, pa.Schema) else stored.num_fields)]
