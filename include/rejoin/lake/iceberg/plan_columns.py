"""Stored rows as the plan sees them. A table keeps the columns of earlier plans, in the order in which they came; whoever reads a struct gets the
fields that the plan names, in its order and as wide as it says, so that rows of different tables can meet.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from rejoin.engines.relation import Engine
from rejoin.plan.change.compatibility import fits
from rejoin.plan.sql.nested import ARRAY, ELEMENT, KEY, MAP, STRUCT, VALUE, Nested, parts_of
from rejoin.statements.dialect import Dialect
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
    """What Spark SQL calls a type, in capitals; None of a type that no column may have."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"  # engines name the zone UTC in several ways
    return _of_parts(kind) if pa.types.is_nested(kind) else _NAMES.get(kind)


def _of_parts(kind: pa.DataType) -> str | None:
    if pa.types.is_struct(kind):
        of_kind, parts = STRUCT, [(field.name, field.type) for field in kind]
    elif pa.types.is_map(kind):
        of_kind, parts = MAP, [(KEY, kind.key_type), (VALUE, kind.item_type)]
    else:
        of_kind, parts = ARRAY, [(ELEMENT, kind.value_type)]
    known = tuple((name, of) for name, part in parts if (of := spark_name(part)) is not None)
    return Nested(of_kind, known).text if len(known) == len(parts) else None


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
        made.append((name, value if of_type is None or not fits(was or "", of_type) else _shaped(sql, value, was or "", of_type)))
    return made


def _shaped(sql: Dialect, value: str, was: str, now: str, depth: int = 0) -> str:
    """SQL text of a value as a type that its own one fits: fields of structs that it lacks are null, wherever they stand."""
    if was == now:
        return value
    old, new, one = parts_of(was), parts_of(now), f"y{depth}"
    if old is None or new is None:
        return sql.cast(value, now)
    had, entries = dict(old.parts), f"map_entries({value})"

    def part(of: str) -> list[tuple[str, str]]:
        given = ((name, kind, sql.get(of, name)) for name, kind in new.parts)
        return [(n, _shaped(sql, field, had[n], kind, depth + 1) if n in had else sql.null(kind)) for n, kind, field in given]

    if new.kind == STRUCT:
        made = sql.struct(part(value))
    elif new.kind == ARRAY:
        made = sql.transformed(value, one, _shaped(sql, one, old.element, new.element, depth + 1))
    else:
        made = f"map_from_entries({sql.transformed(entries, one, sql.struct(part(one)))})"
    return f"CASE WHEN {value} IS NOT NULL THEN {made} END"


def _fields(stored: pa.Schema | pa.StructType) -> Iterable[pa.Field]:
    return [stored.field(i) for i in range(len(stored.names) if isinstance(stored, pa.Schema) else stored.num_fields)]
