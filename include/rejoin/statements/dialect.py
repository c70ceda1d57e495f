"""What the statements of the stages say differently in Spark SQL and in DuckDB. Everything else in them means the same to both.

Statements name their inputs as tables; users' expressions come in the dialect of the engine that runs the statement (``Engine.node``).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rejoin.plan.sql.portable import duckdb_type, quoted
from rejoin.plan.sql.spelling import Field, SparkSpelling, Spelling


class Dialect(Spelling):
    """SQL text of one engine."""

    @abstractmethod
    def type(self, name: str) -> str:
        """A type that Spark SQL names so (``STRING``, ``DECIMAL(10,2)``)."""

    @abstractmethod
    def struct_type(self, fields: Iterable[Field]) -> str:
        """The type of a struct of fields with a name and a type as ``type`` takes it."""

    @abstractmethod
    def get(self, struct: str, field: str) -> str:
        """A field of a struct; null where the struct is null."""

    @abstractmethod
    def array(self, elements: Sequence[str]) -> str:
        """An array of texts."""

    @abstractmethod
    def has(self, array: str, element: str) -> str:
        """Whether an array of texts has an element."""

    @abstractmethod
    def size(self, array: str) -> str:
        """How many elements an array has; the array is never null."""

    @abstractmethod
    def compact(self, array: str) -> str:
        """An array without its nulls."""

    @abstractmethod
    def joined(self, array: str) -> str:
        """The elements of an array of texts as one text, with ``, `` between them."""

    @abstractmethod
    def transformed(self, array: str, variable: str, value: str) -> str:
        """An array of what ``value`` says of each element, which it calls ``variable``."""

    @abstractmethod
    def each(self, array: str) -> str:
        """One row for each element of an array; stands in a list of columns."""

    @abstractmethod
    def first_known(self, value: str) -> str:
        """The window function that gives the first value that is not null."""

    @abstractmethod
    def last_known(self, value: str) -> str:
        """The window function that gives the last value that is not null."""

    @abstractmethod
    def json(self, struct: str) -> str:
        """A struct as JSON, nulls included."""

    @abstractmethod
    def bytes_of(self, text: str) -> str:
        """The UTF-8 bytes of a text."""

    @abstractmethod
    def texts(self, texts: Sequence[str]) -> str:
        """Texts one behind the other, of which null is nothing."""

    @abstractmethod
    def bytes_in(self, value: str, *, binary: bool) -> str:
        """The length in bytes of a text, or of a ``binary``, as a text."""

    @abstractmethod
    def days(self, date: str) -> str:
        """The days since the epoch of a DATE."""

    def cast(self, value: str, type_: str) -> str:
        """A value as another type."""
        return f"CAST({value} AS {self.type(type_)})"

    def null(self, type_: str) -> str:
        """A null of a type."""
        return self.cast("NULL", type_)

    def renamed(self, old: Sequence[str], new: Sequence[str], of: str = "") -> str:
        """Columns under other names, with commas."""
        return ", ".join(f"{f'{of}.' if of else ''}{self.name(o)} AS {self.name(n)}" for o, n in zip(old, new, strict=True))

    def on(self, columns: Iterable[str], left: str, right: str, *, nulls: bool = False) -> str:
        """The condition that two relations have the same values in some columns, none of them null; ``nulls``: null being equal to null."""
        pairs = ((f"{left}.{self.name(c)}", f"{right}.{self.name(c)}") for c in columns)
        return " AND ".join(self.same(a, b) if nulls else f"{a} = {b}" for a, b in pairs)

    @staticmethod
    def same(one: str, other: str) -> str:
        """Whether two values are equal, null being equal to null."""
        return f"{one} IS NOT DISTINCT FROM {other}"


def text(value: str) -> str:
    """A text of ours, which has no quote and no backslash, as every dialect writes it. For any other there is ``Dialect.literal``.

    Raises:
        ValueError: it has.
    """
    if "'" in value or "\\" in value:
        raise ValueError("a text with a quote or a backslash is written by Dialect.literal")
    return f"'{value}'"


def aggregated(sql: Dialect, counts: Mapping[str, str], rows: str) -> str:
    """What aggregates over the rows (name -> SQL text) come to, in one row."""
    return f"SELECT {', '.join(f'{text} AS {sql.name(name)}' for name, text in counts.items())} FROM {rows}"


def picked(sql: Dialect, columns: Iterable[str], rows: str, where: str) -> str:
    """Some columns of the rows for which a condition holds."""
    return f"SELECT {sql.names(columns)} FROM {rows} WHERE {where}"


def equal(pairs: Iterable[tuple[str, str]]) -> str:
    """Whether the SQL texts of each pair have equal values, null being equal to null. True without pairs."""
    return " AND ".join(["true", *(Dialect.same(one, other) for one, other in pairs)])


def counted(conditions: Mapping[str, str]) -> dict[str, str]:
    """Aggregates that count the rows that meet each condition."""
    return {name: f"count(CASE WHEN {condition} THEN 1 END)" for name, condition in conditions.items()}


class SparkSql(SparkSpelling, Dialect):
    """Spark SQL, as sessions of rejoin are set (ANSI, UTC)."""

    def type(self, name: str) -> str:
        return name

    def struct_type(self, fields: Iterable[Field]) -> str:
        return f"STRUCT<{', '.join(f'{self.name(n)}: {of}' for n, of in fields)}>"

    def get(self, struct: str, field: str) -> str:
        return f"{struct}.{self.name(field)}"

    def array(self, elements: Sequence[str]) -> str:
        return f"CAST(array({', '.join(elements)}) AS ARRAY<STRING>)"

    def has(self, array: str, element: str) -> str:
        return f"array_contains({array}, {element})"

    def size(self, array: str) -> str:
        return f"size({array})"

    def compact(self, array: str) -> str:
        return f"array_compact({array})"

    def joined(self, array: str) -> str:
        return f"array_join({array}, ', ')"

    def transformed(self, array: str, variable: str, value: str) -> str:
        return f"transform({array}, {variable} -> {value})"

    def each(self, array: str) -> str:
        return f"explode({array})"

    def first_known(self, value: str) -> str:
        return f"first_value({value}) IGNORE NULLS"

    def last_known(self, value: str) -> str:
        return f"last_value({value}) IGNORE NULLS"

    def json(self, struct: str) -> str:
        return f"to_json({struct}, map('ignoreNullFields', 'false'))"

    def bytes_of(self, text: str) -> str:
        return f"CAST({text} AS BINARY)"

    def texts(self, texts: Sequence[str]) -> str:
        return f"concat_ws('', {', '.join(texts)})"

    def bytes_in(self, value: str, *, binary: bool) -> str:  # noqa: ARG002 -- it is one function for both
        return self.cast(f"octet_length({value})", "STRING")

    def days(self, date: str) -> str:
        return f"unix_date({date})"


class DuckSql(Dialect):
    """DuckDB's SQL, as its connections are set (``lake.read.duckdb_scan``: UTC)."""

    def name(self, column: str) -> str:
        return '"' + column.replace('"', '""') + '"'

    def type(self, name: str) -> str:
        return duckdb_type(name)

    def struct(self, fields: Iterable[Field]) -> str:
        return "{" + ", ".join(f"{self.literal(n)}: {value}" for n, value in fields) + "}"

    def whole_row(self, relation: str) -> str:
        return relation

    def struct_type(self, fields: Iterable[Field]) -> str:
        return f"STRUCT({', '.join(f'{self.name(n)} {self.type(of)}' for n, of in fields)})"

    def literal(self, value: str) -> str:
        return quoted(value)

    def get(self, struct: str, field: str) -> str:
        return f"struct_extract({struct}, {self.literal(field)})"

    def array(self, elements: Sequence[str]) -> str:
        return f"CAST([{', '.join(elements)}] AS VARCHAR[])"

    def has(self, array: str, element: str) -> str:
        return f"list_contains({array}, {element})"

    def size(self, array: str) -> str:
        return f"len({array})"

    def compact(self, array: str) -> str:
        return f"list_filter({array}, lambda x: x IS NOT NULL)"

    def joined(self, array: str) -> str:
        return f"array_to_string({array}, ', ')"

    def transformed(self, array: str, variable: str, value: str) -> str:
        return f"list_transform({array}, lambda {variable}: {value})"

    def each(self, array: str) -> str:
        return f"unnest({array})"

    def first_known(self, value: str) -> str:
        return f"first_value({value} IGNORE NULLS)"

    def last_known(self, value: str) -> str:
        return f"last_value({value} IGNORE NULLS)"

    def json(self, struct: str) -> str:
        return f"CAST(to_json({struct}) AS VARCHAR)"

    def bytes_of(self, text: str) -> str:
        return f"encode({text})"

    def texts(self, texts: Sequence[str]) -> str:
        return f"concat({', '.join(texts)})"  # twice as fast as concat_ws

    def bytes_in(self, value: str, *, binary: bool) -> str:
        return self.cast(f"{'octet_length' if binary else 'strlen'}({value})", "STRING")

    def micros(self, instant: str) -> str:
        return f"epoch_us({instant})"

    def wall_micros(self, clock: str) -> str:
        return f"epoch_us({clock})"

    def days(self, date: str) -> str:
        return f"({date} - DATE '1970-01-01')"

    def added(self, number: str, member: Sequence[str]) -> str:
        return f"sum(CAST({number} AS DOUBLE) ORDER BY {', '.join(f'{part} NULLS FIRST' for part in member)})"

    def outermost(self, value: str, by: str, member: Sequence[str], *, greatest: bool) -> str:
        order = ", ".join(f"{part} {'DESC NULLS LAST' if greatest else 'NULLS FIRST'}" for part in (by, *member))
        return f"first({value} ORDER BY {order}) FILTER (WHERE {by} IS NOT NULL)"

    def collected(self, element: str, order: Sequence[tuple[str, bool]], where: str | None) -> str:
        by = ", ".join(f"{part} {'DESC NULLS LAST' if descending else 'NULLS FIRST'}" for part, descending in order)
        return f"coalesce(list({element} ORDER BY {by}){'' if where is None else f' FILTER (WHERE {where})'}, [])"

    def first(self, array: str, most: int) -> str:
        return f"list_slice({array}, 1, {most})"


SPARK, DUCKDB = SparkSql(), DuckSql()
