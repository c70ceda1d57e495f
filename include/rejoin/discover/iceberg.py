"""The tables of an Iceberg catalog."""

import json
from dataclasses import replace

from rejoin.discover.columns import Column, of_arrow
from rejoin.discover.foreign_keys import foreign_keys
from rejoin.discover.landed_rows import landed
from rejoin.discover.table import Found, FoundTable
from rejoin.discover.topology_file import identifier
from rejoin.errors import SourceMissing
from rejoin.sources.access import OWN, SourceAccess
from rejoin.sources.transports.iceberg_catalog import CatalogTable, tables

_SAMPLE = 1000


def look(access: SourceAccess, at: str, pattern: str) -> Found:
    """The tables whose ``namespace.table`` fits a pattern, or whose namespace does.

    Raises:
        SourceMissing: nothing says where the catalog is, or there are none.
    """
    made, others = list[FoundTable](), list[str]()
    for table in tables(access, at, pattern):
        if table.unread:
            others.append(f"{table.name}: {table.unread}")
        else:
            made.append(_of_table(at, identifier(table.name.rpartition(".")[2], {t.name for t in made}), table))
    if not made and not others:
        raise SourceMissing(
            f"the catalog {at!r} has no tables {pattern!r}", next_step="name a namespace, or namespace.table; * stands for any letters"
        )
    return Found(made, others, tuple(foreign_keys(made)))


def _of_table(at: str, name: str, table: CatalogTable) -> FoundTable:
    columns = [
        Column(field.name, kind := of_arrow(field.type), "" if kind else f"rejoin does not read {field.type}") for field in table.schema
    ]
    rows = table.rows(tuple(column.name for column in columns if column.type is not None), _SAMPLE)
    how, written = landed(table.schema.names), json.dumps(table.name) + ("" if at == OWN else f", at={json.dumps(at)}")
    found = how.table(name, f"iceberg({written})", columns, rows)
    notes = [f"table {table.name} of the catalog {at}", *(how.notes if how.marks else [])]
    notes += ["the key is a guess: the table has no identifier fields"] if found.key and not table.key else []
    if table.only_grows and not how.marks:
        notes.append("rows were only added so far: records(...) of a stream reads them, if they never change")
    return replace(found, key=table.key or found.key, notes=notes, uses=["iceberg", *found.uses])
