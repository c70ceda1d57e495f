"""Statements and types of a target table in PostgreSQL. Pure: identifiers are quoted, values are never part of a text."""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
from psycopg.sql import SQL, Composable, Composed, Identifier

from rejoin.plan.model.sinks import CURSORS

STAGING: Final = "rejoin_staging"
JSON: Final = "jsonb"
"""What structs, maps, and arrays of nested values are stored as."""
OP: Final = "_op"
"""Of the staging table; no column of an output begins with an underscore."""

Column = tuple[str, str]
"""Name and type."""
Nulls = frozenset[str]
"""The parts of the keys of some rows that are null; the others are not."""
NO_NULLS: Final[Nulls] = frozenset()

_WIDER: Final[dict[str, frozenset[str]]] = {
    "integer": frozenset({"bigint", "numeric"}),
    "bigint": frozenset({"numeric"}),
    "real": frozenset({"double precision"}),
    "text": frozenset({"character varying", "character"}),
}
"""Other types that a column may have: they hold every value, or are the user's own, stricter rule."""


def type_of(kind: pa.DataType) -> str:
    """The PostgreSQL type that holds exactly the values of a stored column; of JSON as ``plain`` has them."""
    simple = {
        pa.bool_(): "boolean",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.date32(): "date",
    }
    if kind in simple:
        return simple[kind]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytea"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and not pa.types.is_nested(kind.value_type):
        return f"{type_of(kind.value_type)}[]"
    if pa.types.is_nested(kind):
        return JSON
    raise TypeError(f"no PostgreSQL type is known for {kind}")


def fits(wanted: str, found: str) -> bool:
    """Whether a column of type ``found`` (as ``format_type`` prints it) can take values of type ``wanted``."""
    if wanted.endswith("[]"):
        return found == wanted
    base = found.split("(", maxsplit=1)[0]
    if wanted.startswith("numeric(") and found.startswith("numeric("):
        (p, s), (q, t) = (tuple(map(int, x[8:-1].split(","))) for x in (wanted, found))
        return t >= s and q - t >= p - s
    return found == wanted or base in _WIDER.get(wanted, ()) or (wanted.startswith("numeric(") and found == "numeric")


def create_cursors(schema: str) -> Composed:
    return SQL(
        "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, attempt bigint NOT NULL, position text, moved_at timestamptz NOT NULL)"
    ).format(Identifier(schema, CURSORS))


def begin(schema: str) -> Composed:
    """A new attempt; gives its number and the position."""
    return SQL(
        "INSERT INTO {0} AS c (sink, attempt, moved_at) VALUES (%s, 1, now()) "
        "ON CONFLICT (sink) DO UPDATE SET attempt = c.attempt + 1 RETURNING attempt, position"
    ).format(Identifier(schema, CURSORS))


def lock(schema: str) -> Composed:
    """The attempt that the cursor belongs to; nobody else moves it before this transaction ends."""
    return SQL("SELECT attempt FROM {} WHERE sink = %s FOR UPDATE").format(Identifier(schema, CURSORS))


def move(schema: str) -> Composed:
    return SQL("UPDATE {} SET position = %s, moved_at = now() WHERE sink = %s").format(Identifier(schema, CURSORS))


def forget(schema: str) -> Composed:
    """The cursor of a table that is gone says nothing about the one that takes its place."""
    return SQL("UPDATE {} SET position = NULL WHERE sink = %s").format(Identifier(schema, CURSORS))


def create_target(target: Identifier, columns: Sequence[Column], key: Sequence[str], *, nulls: bool) -> Composed:
    """``nulls``: parts of the key may be null, which a primary key forbids."""
    made = [SQL("{} {}").format(Identifier(name), SQL(kind)) for name, kind in columns]
    unique = SQL("UNIQUE NULLS NOT DISTINCT" if nulls else "PRIMARY KEY")
    return SQL("CREATE TABLE IF NOT EXISTS {} ({}, {} ({}))").format(target, _list(made), unique, _names(key))


COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

UNIQUE: Final = """
SELECT 1 FROM pg_index i WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate
AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
     WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])) = %s::text[]
"""
"""Whether a unique index of exactly these columns exists."""

UNIQUE_NULLS: Final = f"{UNIQUE} AND i.indnullsnotdistinct"
"""The same, and to which null is a value."""
NULLS_SINCE: Final = 150_000
"""The version of PostgreSQL, as it numbers them, that has such indexes."""


def create_staging(columns: Sequence[Column]) -> Composed:
    made = [SQL("{} {}").format(Identifier(name), SQL(kind)) for name, kind in ((OP, '"char"'), *columns)]
    return SQL("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP").format(Identifier(STAGING), _list(made))


def copy(columns: Sequence[Column]) -> Composed:
    return SQL("COPY {} ({}) FROM STDIN").format(Identifier(STAGING), _names([OP, *(name for name, _ in columns)]))


def patterns(key: Sequence[str]) -> Composed:
    """The parts of the key that are null together in the staging table: a row of truth values each, always in the same order.

    A statement for each pattern compares by ``=`` and ``IS NULL``, for which PostgreSQL has its indexes and hash joins, and not for
    ``IS NOT DISTINCT FROM``.
    """
    shown = _list(SQL("{} IS NULL").format(Identifier(k)) for k in key)
    return SQL("SELECT DISTINCT {0} FROM {1} ORDER BY {0}").format(shown, Identifier(STAGING))


def lock_rows(target: Identifier, key: Sequence[str], nulls: Nulls) -> Composed:
    """Locks the rows to change in the order of the key, so that two transactions that do so never wait for each other in a circle."""
    return SQL("SELECT count(*) FROM (SELECT 1 FROM {0} AS t JOIN {1} AS s ON {2} ORDER BY {3} FOR UPDATE OF t) AS locked").format(
        target, Identifier(STAGING), _same(key, nulls), _list(SQL("t.{}").format(Identifier(k)) for k in key)
    )


def delete(target: Identifier, key: Sequence[str], nulls: Nulls) -> Composed:
    return SQL("DELETE FROM {0} AS t USING {1} AS s WHERE {2} AND s.{3} = 'D'").format(
        target, Identifier(STAGING), _same(key, nulls), Identifier(OP)
    )


def delete_others(target: Identifier, key: Sequence[str], found: Sequence[Nulls]) -> Composed:
    """``found``: every pattern of nulls in the staging table."""
    return SQL("DELETE FROM {0} AS t WHERE {1}").format(target, _unstaged(key, found))


def clear(target: Identifier, columns: Sequence[str], key: Sequence[str], found: Sequence[Nulls]) -> Composed:
    """Empties columns of all rows that are not in the staging table."""
    set_ = _list(SQL("{} = NULL").format(Identifier(c)) for c in columns)
    filled = Composed([SQL("t.{} IS NOT NULL").format(Identifier(c)) for c in columns]).join(" OR ")
    return SQL("UPDATE {0} AS t SET {1} WHERE ({2}) AND {3}").format(target, set_, filled, _unstaged(key, found))


def upsert(target: Identifier, columns: Sequence[Column], key: Sequence[str]) -> Composed:
    names = [name for name, _ in columns]
    rest = [SQL("{0} = EXCLUDED.{0}").format(Identifier(n)) for n in names if n not in key]
    action = SQL("DO UPDATE SET {}").format(_list(rest)) if rest else SQL("DO NOTHING")
    return SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} WHERE {3} <> 'D' ORDER BY {4} ON CONFLICT ({4}) {5}").format(
        target, _names(names), Identifier(STAGING), Identifier(OP), _names(key), action
    )


def _unstaged(key: Sequence[str], found: Sequence[Nulls]) -> Composed:
    """Whether a row of the target is not in the staging table."""
    one = SQL("NOT EXISTS (SELECT 1 FROM {0} AS s WHERE {1})")
    return Composed([one.format(Identifier(STAGING), _same(key, nulls)) for nulls in found] or [SQL("true")]).join(" AND ")


def _same(key: Sequence[str], nulls: Nulls) -> Composed:
    pair, none = SQL("t.{0} = s.{0}"), SQL("t.{0} IS NULL AND s.{0} IS NULL")
    return Composed([(none if k in nulls else pair).format(Identifier(k)) for k in key]).join(" AND ")


def _names(names: Sequence[str]) -> Composed:
    return _list(map(Identifier, names))


def _list(parts: Iterable[Composable]) -> Composed:
    return Composed(list(parts)).join(", ")
