"""What a test sees: rows and changes as a table that is compared with a text, and that says what differs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rejoin.errors import BadTestTable
from rejoin.plan.model.column_names import spelled
from rejoin.testing.text import NOTHING, aligned, lines, read, split, written
from rejoin.testing.values import normal, plain

OP, WAS = "op", "was"
Values = Mapping[str, Any]
Line = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A row that was inserted (``I``: no ``before``), updated (``U``) or deleted (``D``: no ``after``). A row of a table has no ``op``."""

    op: str
    before: Values | None
    after: Values | None


@dataclass(frozen=True)
class Column:
    """A column of a text: ``name`` of the rows as they are, or (``was``) as they were."""

    name: str
    was: bool = False


class Grid:
    """Rows, or the changes of a run. Equal to a text that has the same rows in the columns that its first line names; their order does not count.

    Of changes there are two columns more. ``op`` is I, U or D. ``was`` is what the column to its left had before the run. Where there is no row
    (an inserted one before, a deleted one after, but for its key) the cell has nothing in it. An empty text is equal to no rows.

    Args:
        title: what it is, for people.
        key: the key columns.
        schema: all columns.
        rows: the rows or changes.
        changed: they are changes.
    """

    __hash__ = None  # type: ignore[assignment]  # equal to texts that are not equal to each other

    def __init__(self, title: str, key: Sequence[str], schema: pa.Schema, rows: Sequence[Change], *, changed: bool) -> None:
        self.title, self.key, self.schema = title, tuple(key), schema
        self.changes = list(rows)
        self._changed = changed

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as they are, as Python values; of deleted ones as they were."""
        return [dict(c.after if c.after is not None else c.before or {}) for c in self.changes]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return NotImplemented
        columns, wanted = self._expected(other)
        return Counter(wanted) == Counter(self._lines(columns))

    def __repr__(self) -> str:
        columns = self._all_columns()
        return "\n".join([f"{self.title}:", *aligned([_header(columns), *self._lines(columns)])])

    def difference(self, text: str) -> list[str]:
        """What differs from a text, line by line: ``-`` is expected and not there, ``+`` is there and not expected."""
        columns, wanted = self._expected(text)
        found = self._lines(columns)
        missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        both = Counter(wanted) & Counter(found)
        marked = [*(("-", line) for line in missing.elements()), *(("+", line) for line in extra.elements())]
        at = [i for i, column in enumerate(columns) if column.name in self.key and not column.was]
        marked += [(" ", line) for line in both.elements()]
        keyed = sorted(marked, key=lambda m: ([m[1][i] for i in at], m[0] != "-", m[1]))
        body = aligned([_header(columns), *(line for _, line in keyed)])
        first = f"{self.title}: {_rows(len(wanted))} expected (-), {_rows(len(found))} found (+)"
        return [first, *(f"{mark} {line}" for mark, line in zip([" ", *(mark for mark, _ in keyed)], body, strict=True))]

    def _expected(self, text: str) -> tuple[list[Column], list[Line]]:
        """The columns that a text names, and its rows, each cell in its plain form."""
        found = [split(line) for line in lines(text)]
        if not found:
            return self._all_columns(), []
        columns = self._columns(found[0])
        for line in found[1:]:
            if len(line) != len(columns):
                raise BadTestTable(f"a row expected of {self.title} has {len(line)} cells: {' | '.join(line)}", expected=f"{len(columns)}")
        return columns, [tuple(self._cell(c, cell) for c, cell in zip(columns, line, strict=True)) for line in found[1:]]

    def _columns(self, header: Sequence[str]) -> list[Column]:
        known, found = {*self.schema.names, *([OP, WAS] if self._changed else [])}, list[Column]()
        for given in header:
            name = spelled(given, known)
            if name is None:
                raise BadTestTable(f"{self.title} has no column {given!r}", expected=", ".join(sorted(known)))
            if self._changed and name == WAS:
                if not found or found[-1].was or found[-1].name == OP:
                    raise BadTestTable(f"{self.title}: a column 'was' has no column to its left", expected="customer | was")
                found.append(Column(found[-1].name, was=True))
            else:
                found.append(Column(name))
        return found

    def _all_columns(self) -> list[Column]:
        """Every column, and of changes what it was where an update changed it."""
        if not self._changed:
            return [Column(name) for name in self.schema.names]
        updates = [(c.before, c.after) for c in self.changes if c.before is not None and c.after is not None]
        found = [Column(OP)]
        for name in self.schema.names:
            moved = any(before.get(name) != after.get(name) for before, after in updates)
            found += [Column(name), *([Column(name, was=True)] if moved else [])]
        return found

    def _cell(self, column: Column, cell: str) -> str:
        if cell == NOTHING or (self._changed and column.name == OP):
            return cell
        return written(normal(read(cell), self.schema.field(column.name).type))

    def _lines(self, columns: Sequence[Column]) -> list[Line]:
        """The rows in the order of their keys."""
        found = [
            (tuple(self._shown(c, Column(k)) for k in self.key), tuple(self._shown(c, column) for column in columns)) for c in self.changes
        ]
        return [line for _, line in sorted(found)]

    def _shown(self, change: Change, column: Column) -> str:
        if self._changed and column.name == OP:
            return change.op
        row = change.before if column.was else change.after
        if row is None and column.name in self.key and not column.was:
            row = change.before
        if row is None:
            return NOTHING
        value, kind = row.get(column.name), self.schema.field(column.name).type
        return written(None if value is None else plain(value, kind))


def _header(columns: Sequence[Column]) -> Line:
    return tuple(WAS if column.was else column.name for column in columns)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
