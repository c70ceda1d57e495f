"""Rows that DuckDB has yet to compute: statements that rest on each other become one query.

Of many rows (``DeferredRelation``) it runs within DuckDB's memory and spills the rest. Of few (``SmallDeferredRelation``) what costs is the query
itself, a millisecond or two, so one for several statements takes half the time.
"""

import gc
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from threading import RLock
from types import MappingProxyType
from typing import NoReturn

import duckdb
import pyarrow as pa
from duckdb.func import ARROW
from duckdb.sqltypes import BLOB

from rejoin.engines.duckdb_connection import memory, reading
from rejoin.engines.relation import LocalRelation, NeedsSpark, Relation
from rejoin.plan.sql import portable
from rejoin.statements.dialect import DUCKDB
from rejoin.statements.value_hash import MURMUR3, murmur3

BATCH_ROWS = 20_000
"""Rows in a batch of what is streamed."""
_NO_VALUE = (duckdb.DataError, duckdb.InvalidInputException, duckdb.NotSupportedError)
"""What DuckDB raises for a row: the second for a division by zero, and for what printed expressions refuse by ``error``."""
_NUMBERS = count(1)
IDLE = "20MB"
"""What the database may keep between two tasks."""


_STARTING = RLock()
"""Taken again by a thread that has it: Python may collect a ``KeptRelation`` in the middle of a start, and that one is dropped by the same database."""


def database() -> duckdb.DuckDBPyConnection:
    """One a process, apart from the one that reads files: its settings are those with which expressions were proven."""
    with _STARTING:  # steps run side by side, and what one keeps is in one database
        return _database()


def sized(cores: int) -> None:
    """Lets the database take so many cores (0: all of the machine) and as much memory as is stated now: its process may serve several in turn."""
    with database().cursor() as connection:
        connection.execute(f"SET memory_limit = '{memory()}'")
        connection.execute(f"SET threads = {cores}" if cores else "RESET threads")
    pa.set_cpu_count(cores or os.cpu_count() or 1)  # Spark tells its workers that there is one


def shrunk() -> None:
    """Gives memory back that the database keeps for later: its process may now wait for a long time."""
    gc.collect()
    with database().cursor() as connection, suppress(duckdb.Error):  # what is still referred to stays
        connection.execute(f"SET memory_limit = '{IDLE}'")


@cache
def _database() -> duckdb.DuckDBPyConnection:
    made = reading(memory())
    for setting in portable.SETTINGS:
        made.execute(setting)
    made.create_function(MURMUR3, murmur3, [BLOB], BLOB, type=ARROW)  # null for null
    return made


@dataclass(frozen=True)
class Range:
    """Rows whose key is within some bounds. ``columns``: those of the key; ``bounds``: of a column, by its number, what follows its name in SQL."""

    columns: Sequence[str] = ()
    bounds: Sequence[tuple[int, str]] = ()

    def over(self, columns: Sequence[str]) -> str:
        """The condition, where the columns of the key have these names; as far as it can be told, where there are only the first of them."""
        return " AND ".join(f"{DUCKDB.name(columns[at])} {bound}" for at, bound in self.bounds if at < len(columns)) or "true"


WHOLE = (Range(),)
"""The only range of rows that are asked for at once."""


@dataclass(frozen=True, eq=False)
class DeferredRelation(Relation):
    """A statement, and the relations that it names.

    Attributes:
        ranges: the ranges of keys by which its rows are asked for apart (``key_ranges``).
        key: its columns, of which a row has the same values as each row of the inputs ``keyed`` that it is made of.
        keyed: their columns with these values, by the names of the inputs: of a range by ``key``, only its rows are read of them.
    """

    statement: str
    inputs: Mapping[str, Relation] = field(default_factory=dict)
    ranges: Sequence[Range] = field(default=WHOLE, kw_only=True)
    key: Sequence[str] = field(default=(), kw_only=True)
    keyed: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)

    @property
    def schema(self) -> pa.Schema:
        with _asked(f"SELECT * FROM ({self.statement}) LIMIT 0", self.inputs, described=True) as (connection, text):
            return LocalRelation(connection.sql(text).to_arrow_table()).schema

    @property
    def columns(self) -> list[str]:
        with _asked(self.statement, self.inputs, described=True) as (connection, text):
            return list(connection.sql(text).columns)

    @property
    def settled(self) -> "DeferredRelation":
        """What stands for it in a statement that uses it."""
        return self

    def here(self) -> pa.Table:
        with bound(self.statement, self.inputs) as query:
            return query.to_arrow_table()

    def ordered(self, by: Sequence[str], within: Range) -> Iterator[pa.RecordBatch]:
        """Those of its rows that are in a range, in the order of some columns, as they come."""
        order = f" ORDER BY {DUCKDB.names(by)}" if by else ""
        with self.asked(within) as (connection, text):
            yield from connection.sql(f"{text}{order}").to_arrow_reader(BATCH_ROWS)

    def asked(self, within: Range) -> AbstractContextManager[tuple[duckdb.DuckDBPyConnection, str]]:
        """A connection, and the text of a query for it, of the rows that are in a range."""
        return _asked(f"SELECT * FROM ({self.statement}) WHERE {within.over(within.columns)}", self.inputs, within=within)

    def kept(self) -> "KeptRelation":
        """The same rows, computed now and kept by DuckDB until nobody refers to them any more."""
        name = f"kept_{next(_NUMBERS)}"
        with bound(self.statement, self.inputs) as query:
            query.create(name)
        made = KeptRelation(f"SELECT * FROM {name}", name=name)
        weakref.finalize(made, _drop, name).atexit = False
        return made


@dataclass(frozen=True, eq=False)
class KeptRelation(DeferredRelation):
    """The rows of a table of DuckDB."""

    name: str = ""

    def __reduce__(self) -> NoReturn:
        """Another process has no such table, or another one of that name."""
        raise TypeError(f"{self.name} is a table of this process's database")


def answer(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """The rows of a query that finds few."""
    return connection.sql(text).to_arrow_table()


class SmallDeferredRelation(LocalRelation):
    """Few rows: computed as a part of the only statement that uses them, else once, when somebody asks for them or a second statement uses them."""

    def __init__(self, statement: str, inputs: Mapping[str, Relation]) -> None:
        self.statement, self.inputs = statement, inputs
        self._made: pa.Table | None = None
        self._uses = 0
        use(inputs)

    @property
    def arrow(self) -> pa.Table:
        if self._made is None:
            with _asked(self.statement, self.inputs) as (connection, text):
                self._made = answer(connection, text)
            self.inputs = {}
        return self._made

    def __reduce__(self) -> tuple[type[LocalRelation], tuple[pa.Table]]:
        """Another process gets its rows."""
        return LocalRelation, (self.arrow,)

    @property
    def apart(self) -> bool:
        """Whether its rows are a table of their own to whoever uses them now."""
        return self._made is not None or self._uses > 1

    def used(self, times: int) -> None:
        """Takes note of statements that use it."""
        self._uses += times


def use(inputs: Mapping[str, Relation], times: int = 1) -> None:
    """The inputs are those of a statement that is computed at most so many times."""
    for rows in inputs.values():
        if isinstance(rows, SmallDeferredRelation):
            rows.used(times)


@contextmanager
def bound(statement: str, inputs: Mapping[str, Relation]) -> Iterator[duckdb.DuckDBPyRelation]:
    """The query of a statement with all that it rests on. DuckDB computes what several statements share once.

    Raises:
        NeedsSpark: a value cannot be computed.
    """
    with _asked(statement, inputs) as (connection, text):
        yield connection.sql(text)


@contextmanager
def _asked(
    statement: str, inputs: Mapping[str, Relation], *, within: Range = WHOLE[0], described: bool = False
) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection and the text of a query for it. ``within``: of what its rows are made of; ``described``: only to learn its columns. Raises as ``bound``."""
    with database().cursor() as connection:
        try:
            yield connection, _Text(connection, within, described=described).of(statement, inputs)
        except _NO_VALUE as error:
            # Spark says for which row, and whether that row is to be held back.
            raise NeedsSpark(f"a value cannot be computed here ({type(error).__name__})") from error


class _Text:
    """The text of one query, made of statements that rest on each other. Rows that are here are registered with the connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, within: Range, *, described: bool) -> None:
        self._connection, self._within, self._described = connection, within, described
        self._names: dict[int, str] = {}
        self._parts: list[str] = []

    def of(self, statement: str, inputs: Mapping[str, Relation]) -> str:
        """The whole text of a statement."""
        if not any(_nested(rows) for rows in inputs.values()):
            for name, rows in inputs.items():
                self._connection.register(name, rows.here())
            return statement
        text = self._framed(statement, inputs)
        return f"WITH {', '.join(self._parts)} SELECT * FROM ({text})" if self._parts else text

    def _framed(self, statement: str, inputs: Mapping[str, Relation], keyed: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
        cut = {name: f" WHERE {self._within.over(columns)}" for name, columns in keyed.items()}
        views = ", ".join(f"{name} AS ({self._body(rows, cut=name in cut)}{cut.get(name, '')})" for name, rows in inputs.items())
        return f"WITH {views} SELECT * FROM ({statement})" if views else statement

    def _body(self, rows: Relation, *, cut: bool) -> str:
        """The rows as a query. What may be used by several statements of it is named, and computed once; ``cut``: of rows of files, this use reads its own."""
        if isinstance(rows, SmallDeferredRelation) and not rows.apart:
            return self._framed(rows.statement, rows.inputs)
        if isinstance(rows, DeferredRelation) and not self._described:
            rows = rows.settled
        if isinstance(rows, KeptRelation) or (cut and isinstance(rows, DeferredRelation) and not rows.inputs):
            return rows.statement  # a table, or files: each use reads only its own rows of it
        if id(rows) not in self._names:
            body = ""
            if isinstance(rows, DeferredRelation):
                body = self._framed(rows.statement, rows.inputs, rows.keyed if rows.key == self._within.columns else {})
            self._names[id(rows)] = name = f"rows_{len(self._names)}"
            if body:
                self._parts.append(f"{name} AS ({body})")
            else:
                self._connection.register(name, rows.here())
        return f"SELECT * FROM {self._names[id(rows)]}"


def _nested(rows: Relation) -> bool:
    """Whether rows are a statement within the statement that uses them."""
    return isinstance(rows, DeferredRelation) or (isinstance(rows, SmallDeferredRelation) and not rows.apart)


def _drop(name: str) -> None:
    with database().cursor() as connection:
        connection.execute(f"DROP TABLE {name}")
