"""What a query says differently in the SQL of several engines, as far as a plan writes queries; ``statements.dialect`` has the rest."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from rejoin.plan.model.plan import Projection, View

Field = tuple[str, str]
"""A name, and the SQL text of its value."""


class Spelling(ABC):
    """Of one engine."""

    @abstractmethod
    def name(self, column: str) -> str:
        """A column's name, quoted."""

    @abstractmethod
    def whole_row(self, relation: str) -> str:
        """A row of a relation as a struct; stands in a list of columns."""

    @abstractmethod
    def micros(self, instant: str) -> str:
        """The microseconds since the epoch of a TIMESTAMP."""

    @abstractmethod
    def wall_micros(self, clock: str) -> str:
        """The same of a TIMESTAMP_NTZ, as if it were UTC."""

    @abstractmethod
    def added(self, number: str, member: Sequence[str]) -> str:
        """The aggregate that adds floating point numbers, as DOUBLE, in the order of the keys ``member``; null without any."""

    @abstractmethod
    def outermost(self, value: str, by: str, member: Sequence[str], *, greatest: bool) -> str:
        """The aggregate that gives the value of the row with the smallest ``by``, of equal ones of that with the smallest key ``member``; or with the ``greatest`` of both."""

    @abstractmethod
    def struct(self, fields: Iterable[Field]) -> str:
        """A struct; at least one field."""

    @abstractmethod
    def literal(self, value: str) -> str:
        """Any text."""

    @abstractmethod
    def collected(self, element: str, order: Sequence[tuple[str, bool]], where: str | None) -> str:
        """The aggregate that makes an array of an ``element`` of every row for which ``where`` is true; without any an empty one.

        Args:
            element: SQL text of the element, which may be null.
            order: SQL texts that together differ for all rows, each with whether it descends; null is the smallest.
            where: SQL text of a BOOLEAN; None: of all rows.
        """

    @abstractmethod
    def first(self, array: str, most: int) -> str:
        """The first elements of an array."""

    def time_micros(self, time: str, *, zoned: bool) -> str:
        """The same of a TIMESTAMP (``zoned``) or a TIMESTAMP_NTZ."""
        return (self.micros if zoned else self.wall_micros)(time)

    def names(self, columns: Iterable[str], of: str = "") -> str:
        """Columns, with commas; ``of``: the relation that has them."""
        return ", ".join((f"{of}." if of else "") + self.name(c) for c in columns)


class SparkSpelling(Spelling):
    """Spark SQL's."""

    def name(self, column: str) -> str:
        return "`" + column.replace("`", "``") + "`"

    def whole_row(self, relation: str) -> str:
        return f"struct({relation}.*)"

    def micros(self, instant: str) -> str:
        return f"unix_micros({instant})"

    def wall_micros(self, clock: str) -> str:
        return f"unix_micros(CAST({clock} AS TIMESTAMP))"

    def added(self, number: str, member: Sequence[str]) -> str:
        rows = f"CASE WHEN {number} IS NOT NULL THEN named_struct({_fields(member)}, 'v', CAST({number} AS DOUBLE)) END"
        total = f"aggregate(array_sort(collect_list({rows})), CAST(0 AS DOUBLE), (total, row) -> total + row.v)"
        return f"CASE WHEN count({number}) > 0 THEN {total} END"

    def outermost(self, value: str, by: str, member: Sequence[str], *, greatest: bool) -> str:
        order = f"CASE WHEN {by} IS NOT NULL THEN named_struct('by', {by}, {_fields(member)}) END"
        return f"{'max_by' if greatest else 'min_by'}({value}, {order})"

    def struct(self, fields: Iterable[Field]) -> str:
        return f"named_struct({', '.join(f'{self.literal(n)}, {value}' for n, value in fields)})"

    def literal(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def collected(self, element: str, order: Sequence[tuple[str, bool]], where: str | None) -> str:
        row = self.struct([*((f"k{at}", part) for at, (part, _) in enumerate(order)), ("v", element)])
        rows = row if where is None else f"CASE WHEN {where} THEN {row} END"
        compared = " ".join(
            f"WHEN a.k{at} IS DISTINCT FROM b.k{at} THEN CASE WHEN a.k{at} IS NULL OR a.k{at} < b.k{at} THEN {'1 ELSE -1' if descending else '-1 ELSE 1'} END"
            for at, (_, descending) in enumerate(order)
        )
        return f"transform(array_sort(collect_list({rows}), (a, b) -> CASE {compared} ELSE 0 END), row -> row.v)"

    def first(self, array: str, most: int) -> str:
        return f"slice({array}, 1, {most})"


def _fields(parts: Sequence[str]) -> str:
    return ", ".join(f"'k{at}', {part}" for at, part in enumerate(parts))


SPARK = SparkSpelling()


def view_query(sql: Spelling, view: View, relation: Callable[[str], str]) -> str:
    """A view in parentheses, as it stands after FROM.

    Args:
        sql: whose SQL the texts of the view are in.
        view: the view.
        relation: the SQL text after FROM for a table or node.
    """
    where = f" WHERE {view.where}" if view.where is not None else ""
    return f"(SELECT {columns(sql, view.columns)} FROM {relation(view.table)} AS t{where})"


def columns(sql: Spelling, shown: Iterable[Projection]) -> str:
    """What is selected."""
    return ", ".join(f"{column.sql} AS {sql.name(column.name)}" for column in shown)
