"""The text of a topology file for tables that were found. Pure."""

import json
import keyword
import re
from collections.abc import Sequence

from rejoin.discover.foreign_keys import ForeignKey
from rejoin.discover.table import FoundTable
from rejoin.sources.events import quoted

UNKNOWN_KEY = "TODO"
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def identifier(text: str, taken: set[str]) -> str:
    """A name that Python and SQL take, unlike those that are taken."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower() or "table"
    name = f"t_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)


def topology_file(name: str, place: str, tables: Sequence[FoundTable], joins: Sequence[ForeignKey]) -> str:
    """The whole file.

    Args:
        name: of the topology.
        place: what was looked at.
        tables: what was found there.
        joins: what seems to hold between them.
    """
    used = sorted({"Topology", *(word for table in tables for word in table.uses)})
    parts = [
        f'"""Proposed by `rejoin discover {place}` from samples. Look at every line: a sample proves nothing."""',
        f"from rejoin import {', '.join(used)}",
        f'{name} = Topology("{name}")',
        *(_table(name, table) for table in tables),
        *_joins(tables, joins),
    ]
    return "\n\n".join(parts) + "\n"


def _table(topology: str, table: FoundTable) -> str:
    known = [column for column in table.columns if column.type is not None]
    notes = [*table.notes, *(f"{c.name}: {c.note}" for c in table.columns if c.note)]
    key = table.key or (UNKNOWN_KEY,)
    if not table.key:
        notes.append("no column of the sample is a key: name the columns that are one")
    keys = json.dumps(key[0] if len(key) == 1 else key, ensure_ascii=False)
    schema = ", ".join(f"{_column(c.name)} {c.type}" for c in known)
    lines = [
        f"{table.name} = {topology}.table(",
        f'    "{table.name}",',
        f"    key={keys},",
        f'    schema="{schema}",',
        f"    source={table.source},",
        ")",
    ]
    return "\n".join([*(f"# {note}" for note in notes), *lines])


def _column(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


def _joins(tables: Sequence[FoundTable], joins: Sequence[ForeignKey]) -> list[str]:
    """One output a foreign key, with all columns of the left row, and those of the right one that are not its key."""
    if not joins:
        of = tables[0] if tables else None
        return [] if of is None else [f'# no foreign key was found: declare joins here\n{of.name}.named("{of.name}_kept")']
    by_name = {table.name: table for table in tables}
    made = []
    for join in joins:
        right = by_name[join.right]
        shown = [c.name for c in right.columns if c.type is not None and c.name not in right.key]
        select = ", ".join(
            ['"left.*"', *(f'"right.{_column(n)} AS {join.column.lower()}_{re.sub(r"[^A-Za-z0-9_]", "_", n)}"' for n in shown)]
        )
        made.append(
            f"# {join.found} of {join.looked} sampled values are keys of {join.right}\n"
            f'{join.left}.left_join({join.right}, foreign_key="{_column(join.column)}", select=[{select}]).named("{join.left}_with_{join.column.lower()}")'
        )
    return made
