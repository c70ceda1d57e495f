"""What a database's catalog says of its tables, and a look at some values."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg2
import psycopg2.extensions
from psycopg2.sql import SQL, Composed, Identifier

from rejoin.capture.envelope import ELEMENTS
from rejoin.capture.server import Server
from rejoin.errors import CaptureRefused

_SAMPLE, _WIDTH = 1000, 100


@dataclass(frozen=True)
class UniqueKey:
    """Columns that are unique and never null, in the order of their index. ``replica``: it is chosen as the replica identity."""

    primary: bool
    replica: bool
    index: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CatalogTable:
    """A table that is no partition of another one.

    Attributes:
        identity: its replica identity, as ``pg_class`` has it: d, i, f or n.
        logged: its changes are in the log.
        readable: this user may SELECT from it.
        owned: this user has the rights of its owner.
        keys: the primary key first.
    """

    oid: int
    schema: str
    table: str
    identity: str
    logged: bool
    readable: bool
    owned: bool
    keys: tuple[UniqueKey, ...]

    @property
    def name(self) -> str:
        """Schema and table."""
        return f"{self.schema}.{self.table}"


class CatalogColumn(NamedTuple):
    """``type``: as PostgreSQL writes it, of a domain what that is made of. ``generated``: computed from others. ``dimensions``: as they are declared, of an
    array whose elements a capture tells apart; 0 of any other column.
    """

    name: str
    type: str
    generated: bool
    dimensions: int = 0


class CatalogForeignKey(NamedTuple):
    """``columns`` of the table ``left`` hold ``keys`` of the table ``right``, one by one."""

    name: str
    left: int
    right: int
    columns: tuple[str, ...]
    keys: tuple[str, ...]


def database_of(url: str) -> str:
    """The name of the database of a URL; empty if it has none."""
    with suppress(psycopg2.ProgrammingError):
        return str(psycopg2.extensions.parse_dsn(url).get("dbname") or "")
    return ""


def tables(server: Server) -> Iterator[CatalogTable]:
    """All tables but those of PostgreSQL itself."""
    keys = defaultdict[int, list[UniqueKey]](list)
    for oid, primary, replica, index, columns in server.rows("looking at keys", _KEYS):
        keys[oid].append(UniqueKey(primary, replica, index, tuple(columns)))
    for said in server.rows("looking at tables", _TABLES):
        yield CatalogTable(*(*said, tuple(keys[said[0]])))


def columns(server: Server, oids: Sequence[int]) -> dict[int, list[CatalogColumn]]:
    """The columns of tables, by their numbers."""
    found = dict[int, list[CatalogColumn]]((oid, []) for oid in oids)
    for oid, name, type_, generated, number, dimensions in server.rows("looking at columns", _COLUMNS, (list(oids),)):
        found[oid].append(CatalogColumn(name, type_, generated, max(1, dimensions) if number in ELEMENTS else 0))
    return found


def foreign_keys(server: Server) -> Iterator[CatalogForeignKey]:
    """Those that are declared."""
    for name, left, right, of_left, of_right in server.rows("looking at foreign keys", _FOREIGN_KEYS):
        yield CatalogForeignKey(name, left, right, tuple(of_left), tuple(of_right))


def sample(server: Server, table: CatalogTable, names: Sequence[str]) -> list[dict[str, Any]]:
    """Some values of columns, as texts of limited length; none of a table that may not be read."""
    if not table.readable or not names:
        return []
    shown = SQL(", ").join([SQL("left({}::text, {})").format(Identifier(name), SQL(str(_WIDTH))) for name in names])
    asked = SQL("SELECT {} FROM {} LIMIT {}").format(shown, _identifier(table), SQL(str(_SAMPLE)))
    return [dict(zip(names, row, strict=True)) for row in server.rows(f"reading a sample of {table.name}", asked)]


def held(server: Server, table: CatalogTable, key: str, values: set[str]) -> int:
    """How many of some texts are keys of a table: asked by the index of the key, so if one is no text of its type, none is."""
    if not table.readable:
        return 0
    ((type_,),) = server.rows(f"looking at {table.name}", _TYPE, (table.oid, key))
    asked = SQL("SELECT count(*) FROM unnest(%s::text[]) v(x) WHERE EXISTS (SELECT FROM {} WHERE {} = v.x::{})")
    with suppress(CaptureRefused):
        return int(server.rows("looking for keys", asked.format(_identifier(table), Identifier(key), SQL(type_)), (sorted(values),))[0][0])
    return 0


def _identifier(table: CatalogTable) -> Composed:
    return SQL("{}.{}").format(Identifier(table.schema), Identifier(table.table))


_TABLES: Final = """
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relreplident::text, c.relpersistence = 'p',
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), pg_has_role(c.relowner, 'USAGE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 2, 3
"""
_KEYS: Final = """
SELECT i.indrelid::int8, i.indisprimary, i.indisreplident, c.relname::text, array_agg(a.attname::text ORDER BY k.n)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY k(number, n) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
GROUP BY 1, 2, 3, 4 HAVING bool_and(a.attnotnull) ORDER BY 2 DESC, 4
"""
_COLUMNS: Final = """
WITH RECURSIVE base AS (
    SELECT a.attrelid, a.attname, a.attnum, a.attgenerated <> '' AS generated, a.atttypid AS type, a.atttypmod AS modifier, a.attndims AS dimensions, 0 AS depth
    FROM pg_attribute a WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
    SELECT attrelid, attname, attnum, generated, t.typbasetype, t.typtypmod, t.typndims, depth + 1 FROM base JOIN pg_type t ON t.oid = base.type AND t.typtype = 'd'
)
SELECT DISTINCT ON (attrelid, attnum) attrelid::int8, attname::text, format_type(type, modifier), generated, type::int8, dimensions FROM base ORDER BY attrelid, attnum, depth DESC
"""
_TYPE: Final = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = %s AND attname = %s"
_FOREIGN_KEYS: Final = """
SELECT c.conname::text, c.conrelid::int8, c.confrelid::int8, array_agg(l.attname::text ORDER BY k.n), array_agg(r.attname::text ORDER BY k.n)
FROM pg_constraint c CROSS JOIN unnest(c.conkey, c.confkey) WITH ORDINALITY k(left_number, right_number, n)
JOIN pg_attribute l ON l.attrelid = c.conrelid AND l.attnum = k.left_number JOIN pg_attribute r ON r.attrelid = c.confrelid AND r.attnum = k.right_number
WHERE c.contype = 'f' AND c.conparentid = 0 GROUP BY 1, 2, 3, c.oid ORDER BY 2, c.oid
"""
