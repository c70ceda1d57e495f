"""The text of a topology file for tables that were found. Pure."""

import json
import keyword
import re
from collections.abc import Sequence

import rejoin
from rejoin.discover.table import UNKNOWN, ForeignKey, Found, FoundTable

_LONGEST = 60


def identifier(text: str, taken: set[str]) -> str:
    """A name that Python and a topology take, unlike those that are taken."""
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_").lower()[:_LONGEST] or "table"
    name = f"t_{name}" if name[0].isdigit() or keyword.iskeyword(name) or name in rejoin.__all__ else name
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)


def topology_file(name: str, place: str, found: Found) -> str:
    """The whole file. A table that lacks what only a reader can say is a comment in it.

    Args:
        name: of the topology.
        place: what was looked at.
        found: what was found there.
    """
    used = sorted({"Topology", *(word for table in found.tables if table.runs for word in table.uses)})
    parts = [
        f'"""Proposed by `rejoin discover {place}` from samples. Look at every line: a sample proves nothing."""',
        f"from rejoin import {', '.join(used)}",
        *(["\n".join(f"# {note}" for note in found.notes)] if found.notes else []),
        f'{name} = Topology("{name}")',
        *(_table(name, table) for table in found.tables),
        *_joins([table for table in found.tables if table.runs], found.joins),
    ]
    return "\n\n".join(parts) + "\n"


def _table(topology: str, table: FoundTable) -> str:
    known = [column for column in table.columns if column.declarable]
    notes = [*table.notes, *(f"{c.name}: {c.note}" for c in table.columns if c.note)]
    notes += [
        f"{c.name}: left out, as no column of rejoin has such a name" for c in table.columns if c.type is not None and not c.declarable
    ]
    if not table.key:
        notes.append(f"{UNKNOWN}: the columns that are a key, which nothing here says")
    lines = [
        f"{table.name} = {topology}.table(",
        f"    {_text(table.name)},",
        f"    key={_listed(table.key or (UNKNOWN,))},",
        f"    schema={_text(', '.join(f'{c.name} {c.type}' for c in known))},",
        f"    source={table.source},",
        ")",
    ]
    return "\n".join([*(f"# {note}" for note in notes), *(lines if table.runs else [f"# {line}" for line in lines])])


def _joins(tables: Sequence[FoundTable], joins: Sequence[ForeignKey]) -> list[str]:
    by_name = {table.name: table for table in tables}
    made, taken = list[str](), set(by_name)
    for join in (j for j in joins if {j.left, j.right} <= by_name.keys()):
        name = identifier(f"{join.left}_with_{'_'.join(join.columns)}", taken)
        taken.add(name)
        made.append(_join(name, join, by_name[join.left], by_name[join.right]))
    if not made and tables:
        return [f'# no foreign key was found: declare joins here\n{tables[0].name}.named("{tables[0].name}_kept")']
    return made


def _join(name: str, join: ForeignKey, left: FoundTable, right: FoundTable) -> str:
    """An output with all columns of the left row, and those of the right one that are not its key."""
    select, taken = ["left.*"], {c.name.lower() for c in left.columns}
    for column in (c.name for c in right.columns if c.declarable and c.name not in right.key):
        alias = identifier(f"{'_'.join(join.columns)}_{column}", taken)
        taken.add(alias)
        select.append(f"right.{column} AS {alias}")
    lines = [
        f"# {join.because}",
        f"{join.left}.left_join(",
        f"    {join.right},",
        f"    foreign_key={_listed(join.columns)},",
        f"    select={_text(select)},",
        f").named({_text(name)})",
    ]
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    return _text(names[0] if len(names) == 1 else list(names))


def _text(value: str | list[str]) -> str:
    """A text, or texts, as Python writes them."""
    return json.dumps(value, ensure_ascii=False)
