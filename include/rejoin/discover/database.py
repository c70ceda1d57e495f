"""The tables of a PostgreSQL database, as its catalog has them: it says keys, types and foreign keys itself."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from rejoin.capture import catalog
from rejoin.capture.catalog import CatalogColumn, CatalogTable
from rejoin.capture.server import Server, url_of
from rejoin.discover.columns import Column, array_of
from rejoin.discover.foreign_keys import foreign_keys
from rejoin.discover.table import UNKNOWN, ForeignKey, Found, FoundTable
from rejoin.discover.topology_file import identifier
from rejoin.errors import SourceMissing
from rejoin.plan.sql.nested import is_nested

_TYPES: Final = {
    "smallint": "INT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "bytea": "BINARY",
    "date": "DATE",
}
_TEXTS = re.compile(r"text|character( varying)?(\(\d+\))?|uuid|name|citext")
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_TIMESTAMP = re.compile(r"timestamp(\(\d\))? with(out)? time zone")


def name_in(url: str) -> str:
    """A name for the connection of a URL: that of its database."""
    return identifier(catalog.database_of(url) or "database", set())


def look(connections: Mapping[str, Mapping[str, str]], at: str, pattern: str) -> Found:
    """The tables of a database whose ``schema.name`` fits a pattern.

    Raises:
        SourceMissing: there are none.
        SetupError, SourceDenied, SourceDown.
    """
    with closing(Server(at, url_of(connections, at))) as server:
        chosen = [table for table in catalog.tables(server) if fnmatchcase(table.name, pattern)]
        logged = [table for table in chosen if table.logged]
        if not logged:
            raise SourceMissing(
                f"the database {at!r} has no tables {pattern!r} that can be captured",
                next_step="name schema.table as the database does; * stands for any letters",
            )
        tables = _tables(server, at, logged)
        by_name = {table.name: of for of, table in zip(logged, tables, strict=True)}
        names = {of.oid: name for name, of in by_name.items()}
        declared, notes = _declared(server, names, {table.name: table for table in tables})
        joins = foreign_keys(tables, declared, lambda right, values: catalog.held(server, by_name[right.name], right.key[0], values))
        others = [f"{table.name}: unlogged or temporary, so its changes are in no log" for table in chosen if not table.logged]
        noted = [replace(table, notes=[*table.notes, *notes[table.name]]) for table in tables]
        return Found(noted, others, tuple(joins), _notes(at, server.wal_level()))


def _tables(server: Server, at: str, found: Sequence[CatalogTable]) -> list[FoundTable]:
    made, columns = list[FoundTable](), catalog.columns(server, [table.oid for table in found])
    for table in found:
        name = identifier(table.table, {t.name for t in made})
        one = _found(at, table, name, list(map(column, columns[table.oid])))
        values = [c.name for c in one.columns if c.type in ("INT", "BIGINT", "STRING", "DECIMAL(38,0)")]
        made.append(replace(one, rows=catalog.sample(server, table, values)))
    return made


def key(table: CatalogTable) -> tuple[tuple[str, ...], str]:
    """The columns by which changes are told, and what is missing for any."""
    primary = next((key.columns for key in table.keys if key.primary), ())
    chosen = next((key.columns for key in table.keys if key.replica), ())
    unique = next(iter(table.keys), None)
    if table.identity == "n":
        return (), f"REPLICA IDENTITY NOTHING: the log does not say which row is gone. ALTER TABLE {table.name} REPLICA IDENTITY DEFAULT"
    if table.identity == "i" and chosen:
        return chosen, ""
    if table.identity == "f" and unique:
        return primary or unique.columns, ""
    if primary or not unique:
        return primary, "" if primary else "no primary key: the log does not say which row is changed or gone. Add one"
    return (
        (),
        f"no primary key. ALTER TABLE {table.name} REPLICA IDENTITY USING INDEX {unique.index}; then the key is {', '.join(unique.columns)}",
    )


def _notes(at: str, level: str) -> list[str]:
    said = f"`rejoin capture FILE --once` before each run reads the changes. The database: url in [sources.{at}] of the lake's file, or REJOIN_SOURCE_{at.upper()}"
    missing = f"wal_level is {level}: ALTER SYSTEM SET wal_level = logical, and restart the server, before anything can be captured"
    return [said] if level == "logical" else [said, missing]


def column(of: CatalogColumn) -> Column:
    """A column, and the type that holds its values as the log has them."""
    name, type_, generated, dimensions = of
    if generated:
        return Column(name, None, "generated, and so not in the log")
    if dimensions:
        element = column(CatalogColumn(name, type_.removesuffix("[]"), generated))
        return Column(name, array_of(element.type, dimensions), f"{type_}, elements as their texts" if element.note else "")
    if type_ in _TYPES:
        return Column(name, _TYPES[type_])
    if (numeric := _NUMERIC.fullmatch(type_)) and int(numeric[2]) <= int(numeric[1]) <= 38:
        return Column(name, f"DECIMAL({numeric[1]},{numeric[2]})")
    if times := _TIMESTAMP.fullmatch(type_):
        return Column(name, "TIMESTAMP_NTZ" if times[2] else "TIMESTAMP")
    return Column(name, "STRING", "" if _TEXTS.fullmatch(type_) else f"{type_}, as its text")


def _found(at: str, table: CatalogTable, name: str, columns: Sequence[Column]) -> FoundTable:
    by, missing = key(table)
    columns = [
        Column(c.name, "STRING", "an array, as its text, since keys hold single values") if c.name in by and is_nested(c.type or "") else c
        for c in columns
    ]
    rounded = [c.name for c in columns if c.name in by and c.type in ("FLOAT", "DOUBLE")]
    notes = [f"table {table.name} of the database {at}"]
    notes += [missing] if missing else []
    notes += [f"the key column {rounded[0]} is a rounded number, which can be no key"] if rounded else []
    notes += [] if table.readable else ["this user has no right to SELECT from it"]
    notes += [] if table.owned else ["this user does not own it, as a capture has to for the publication"]
    notes += (
        ["REPLICA IDENTITY FULL: every change brings all old values; the primary key is enough"] if table.identity == "f" and by else []
    )
    source = f'debezium(captured("{table.name}", at="{at}"))' if re.fullmatch(r"[^\s./]+\.[^\s./]+", table.name) else UNKNOWN
    return FoundTable(name, columns, () if rounded else by, source, [], notes, ["captured", "debezium"])


def _declared(
    server: Server, names: Mapping[int, str], tables: Mapping[str, FoundTable]
) -> tuple[list[ForeignKey], Mapping[str, list[str]]]:
    """The foreign keys of the catalog, and what is to be said of those that are no join of rejoin."""
    found, notes = list[ForeignKey](), defaultdict[str, list[str]](list)
    for one in catalog.foreign_keys(server):
        if not {one.left, one.right} <= names.keys():
            continue
        left, right, pairs = names[one.left], tables[names[one.right]], dict(zip(one.keys, one.columns, strict=True))
        if set(right.key) == pairs.keys():
            found.append(ForeignKey(left, tuple(pairs[k] for k in right.key), right.name, f"the foreign key {one.name} of the database"))
        elif right.key:
            notes[left].append(
                f"no join for the foreign key {one.name}: it leads to {', '.join(one.keys)} of {right.name}, which is not its key"
            )
    return found, notes
