"""Which values of lines of a shape become which columns of events: of dialects that say of rows how they are, which values they had, and that they are gone.

``LineDialect.read`` is the definition. A dialect says here what most of its lines look like; what else a line may say is not proven.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rejoin.plan.model.plan import Column
from rejoin.plan.sql.portable import duckdb_type, quoted
from rejoin.sources.decode.line_shape import FLAG, NULL, TEXT, WHOLE, Branch, Items, Leaf, Part, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.proven_rows import MOVED, NTH, WAS
from rejoin.sources.decode.sql_values import Typed, typed
from rejoin.sources.events import EventKind, Layout

ValueOf = Callable[[Part, str, str], Typed | None]
"""What stands in a place of the shape, SQL of its value, and the declared type -> the value of a column; None if that is not told."""
EVERY = "true"
_KINDS = {"is_put": EventKind.UPSERT, "is_delete": EventKind.DELETE, "is_other": EventKind.SKIPPED}


@dataclass(frozen=True)
class RowChanges:
    """What the members of a line say.

    Attributes:
        kind: the member whose text says what happened.
        puts: its texts where ``row`` is how the row is now.
        updates: those of them where ``old`` has earlier values, of some columns at least.
        deletes: those where the row ``gone`` is no more.
        row, old, gone: members: objects, or arrays of objects, one a row, where ``gone`` is ``row``.
        partial: a column that the row of an update lacks has the value that it had.
        position: of the event; None where order is arrival.
        snapshot: SQL of the mark of the event; None: no snapshot reads rows.
        holds: a further condition of puts and deletes.
    """

    kind: str
    puts: tuple[str, ...]
    updates: tuple[str, ...]
    deletes: tuple[str, ...]
    row: str
    old: str
    gone: str
    partial: bool = False
    position: Typed | None = None
    snapshot: str | None = None
    holds: str = "true"


def judged(layout: Layout, of_table: str, shape: Shape, said: RowChanges, value: ValueOf) -> Judge | None:
    """How lines of a shape become events; None if that is not told.

    Args:
        layout: the table's columns.
        of_table: SQL of whether a line is of the table, ``EVERY`` if each is; lines that are not are skipped.
        shape: of the lines.
        said: what they say.
        value: how values are written.
    """
    if kind_at(shape.root, (said.kind,)) != TEXT:
        return None
    return _Changes(layout, shape, said, value).judge(of_table)


@dataclass(frozen=True)
class _Cell:
    """SQL of a column's value, and of the conditions that it is the right one, and that the row does not have the column."""

    value: str
    holds: str = "false"
    lacks: str = "false"


class _Changes:
    """Names in what is ``given``: ``r``, ``o`` and ``g``, a row, its earlier values, and the row that is gone; ``is_put``, ``is_update``, ``is_delete`` and
    ``is_other``, what the line is; ``pos``, its position, if ``is_placed``.
    """

    def __init__(self, layout: Layout, shape: Shape, said: RowChanges, value: ValueOf) -> None:
        self._layout, self._shape, self._said, self._value = layout, shape, said, value
        self._many = isinstance(part_at(shape.root, (said.row,)), Items)
        self._was = self._earlier()
        self._row = None if self._was is None else self._cells()
        self._alias = "r" if said.gone == said.row else "g"
        self._gone = self._keys(said.gone, self._alias)

    def judge(self, of_table: str) -> Judge | None:
        if of_table == EVERY and self._row is None and self._gone is None:
            return None
        keys, values = self._layout.key, self._layout.values
        row, gone = self._row or _untold((*keys, *values)), self._gone or _untold(keys)
        was = self._was or {}
        columns = {"_kind": f"CASE {' '.join(f'WHEN {name} THEN {quoted(kind)}' for name, kind in _KINDS.items())} END"}
        for c in keys:
            columns[c.name] = f"CASE WHEN is_put THEN {row[c.name].value} WHEN is_delete THEN {gone[c.name].value} END"
            earlier = f"{was[c.name].value}, " if c.name in was else ""
            columns[f"{WAS}{c.name}"] = f"coalesce({earlier}{row[c.name].value})"
        columns |= {c.name: f"CASE WHEN is_put THEN {row[c.name].value} END" for c in values}
        changed = _any(f"{at('o', (name,))} <> {at('r', (name,))}" for name in was)
        moved = f"coalesce(is_put AND is_update AND {changed}, false)"
        columns[MOVED] = moved
        put = [cell.holds for cell in row.values()] + [f"NOT is_update OR {cell.holds}" for cell in was.values()]
        lacking = {c.name: row[c.name].lacks for c in values if row[c.name].lacks != "false"}
        if self._said.partial and lacking:
            columns["_missing"] = _missing(lacking)
            put.append(f"NOT ({moved} AND {_any(lacking.values())})")
        deleted = [cell.holds for cell in gone.values()]
        holds = [f"CASE WHEN is_put THEN {_every(put)} WHEN is_delete THEN {_every(deleted)} ELSE is_other END"]
        if self._said.position is not None:
            columns["_position"] = "CASE WHEN NOT is_other THEN pos END"
            holds.append("is_other OR is_placed")
        if self._said.snapshot is not None:
            columns["_snapshot"] = "CASE WHEN NOT is_other THEN mark END"
        given = self._given(of_table)
        return Judge(columns | ({NTH: NTH} if NTH in given else {}), holds, given)

    def _given(self, of_table: str) -> dict[str, str]:
        said, is_other = self._said, f"coalesce(NOT ({of_table}), false)"
        row, old, gone = (at("j", (name,)) for name in (said.row, said.old, said.gone))
        mine = f"{of_table} AND {said.holds}"
        if self._many and self._was:
            mine += f" AND (NOT {self._is(said.updates)} OR {old} IS NULL OR len({old}) = len({row}))"
        given = {
            "is_put": f"coalesce({self._is(said.puts)} AND {mine}, false)" if self._row else "false",
            "is_update": self._is(said.updates),
            "is_delete": f"coalesce({self._is(said.deletes)} AND {mine}, false)" if self._gone else "false",
            "is_other": is_other,
        }
        if said.position is not None:
            given |= {"pos": said.position.value, "is_placed": said.position.holds}
        rows = ({"r": row} if self._row else {}) | ({self._alias: gone} if self._gone else {}) | ({"o": old} if self._was else {})
        if said.snapshot is not None:
            given["mark"] = said.snapshot
        if not self._many:
            return given | rows | {"line": "line"}
        if rows:
            # Of a line that is skipped one row, as nothing is said of it.
            lists = {name: f"CASE WHEN {is_other} THEN {found}[:1] ELSE {found} END" for name, found in rows.items()}
            rows = {NTH: f"unnest(range(len({next(iter(lists.values()))})))"} | {name: f"unnest({found})" for name, found in lists.items()}
        return given | rows

    def _is(self, kinds: Sequence[str]) -> str:
        return _any(f"{at('j', (self._said.kind,))} = {quoted(kind)}" for kind in kinds)

    def _element(self, member: str) -> Branch | None:
        """The shape of a row; None if it is none."""
        part = part_at(self._shape.root, (member,))
        if self._many:
            part = part.each if isinstance(part, Items) else None
        return part if isinstance(part, Branch) else None

    def _keys(self, member: str, alias: str) -> dict[str, _Cell] | None:
        """The key of a row; None if it is not told."""
        part, cells = self._element(member), {}
        for column in self._layout.key:
            written, leaf = at(alias, (column.name,)), part_at(part, (column.name,))
            found = None if leaf is None else self._value(leaf, written, str(column.type))
            if found is None:
                return None
            cells[column.name] = _Cell(found.value, f"({written} IS NOT NULL AND {found.holds})")
        return cells

    def _cells(self) -> dict[str, _Cell] | None:
        """The columns of a row; None if they are not told."""
        part, cells = self._element(self._said.row), self._keys(self._said.row, "r")
        for column in self._layout.values if part is not None and cells is not None else ():
            name, written, member = column.name, at("r", (column.name,)), part_at(part, (column.name,))
            found = typed(NULL, "", str(column.type)) if member is None else self._value(member, written, str(column.type))
            lacks = self._lacks(name)
            if found is None or (lacks == "true" and name in self._layout.required and not self._said.partial):
                return None
            holds = "true" if found.holds == "true" else f"({written} IS NULL OR {found.holds})"
            if lacks != "false" and name in self._layout.required:
                holds += f" AND ({'is_update OR ' if self._said.partial else ''}NOT {lacks})"
            cells = (cells or {}) | {name: _Cell(found.value, holds, lacks)}
        return cells

    def _lacks(self, name: str) -> str:
        """SQL condition: a row lacks a column; of elements of arrays: it may."""
        if not self._many:
            return self._shape.lacks((self._said.row, name), "r")
        member = part_at(self._element(self._said.row), (name,))
        return "true" if member is None else f"{at('r', (name,))} IS NULL" if member.optional else "false"

    def _earlier(self) -> dict[str, _Cell] | None:
        """The earlier values of key columns that may have some; None if they are not told."""
        if kind_at(self._shape.root, (self._said.old,)) == NULL or part_at(self._shape.root, (self._said.old,)) is None:
            return {}
        old, row, cells = self._element(self._said.old), self._element(self._said.row), {}
        for column in self._layout.key if old is not None else ():
            was, now = part_at(old, (column.name,)), part_at(row, (column.name,))
            if was is None:
                continue
            # Numbers with a point may be equal in other letters; and null says nothing here of what was null.
            if not isinstance(was, Leaf) or was.nullable or was.kind not in (TEXT, WHOLE, FLAG) or kind_of(now) != was.kind:
                return None
            written = at("o", (column.name,))
            found = self._value(was, written, str(column.type))
            if found is None:
                return None
            cells[column.name] = _Cell(found.value, f"({written} IS NULL OR {found.holds})")
        return None if old is None else cells


def _missing(lacking: Mapping[str, str]) -> str:
    """SQL of the columns that the row of an update lacks. ``lacking``: of columns, whether it does."""
    names = ", ".join(f"CASE WHEN {lacks} THEN {quoted(name)} END" for name, lacks in lacking.items())
    return f"CASE WHEN is_put AND is_update THEN list_filter([{names}], lambda e: e IS NOT NULL) ELSE CAST([] AS VARCHAR[]) END"


def kind_of(part: Part | None) -> str | None:
    """The kind of a value; None of what is none."""
    return part.kind if isinstance(part, Leaf) else None


def _untold(columns: Iterable[Column]) -> dict[str, _Cell]:
    return {c.name: _Cell(f"CAST(NULL AS {duckdb_type(str(c.type))})") for c in columns}


def _any(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(dict.fromkeys(conditions)) or 'false'})"


def _every(conditions: Iterable[str]) -> str:
    return " AND ".join(f"({c})" for c in dict.fromkeys(conditions) if c != "true") or "true"
