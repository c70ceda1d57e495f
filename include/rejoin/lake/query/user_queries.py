"""Queries that users write, over the tables of a lake: read-only, each table opened only if the query names it."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from rejoin.errors import QueryFailed, QueryRefused, SetupError, UnknownTable
from rejoin.failures.engine_errors import bare, named_errors
from rejoin.lake.query.sandbox import Closed, Files, connected
from rejoin.lake.query.visible_tables import Cut
from rejoin.plan.model.column_names import folded
from rejoin.statements.dialect import DUCKDB

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""What a query and its parts are to DuckDB's parser. A part of a WITH may also be an INSERT or a COPY."""
_MISTAKES = (duckdb.ParserException, duckdb.SyntaxException, duckdb.BinderException, duckdb.CatalogException)
"""What DuckDB says of a query that it has not begun to compute. Only these words are shown: they hold names, never values of rows."""
BATCH = 10_000
"""Rows that are taken at a time."""
_TAKEN = {"information_schema", "memory", "pg_catalog", "system", "temp"}
"""Names that a topology may have, and DuckDB has."""
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_ONE_SELECT = (
    "one SELECT without parameters (also WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES; PIVOT with its values: ON column IN (...))"
)


class Rows:
    """The answer to a query. It is computed anew by each call, always from the snapshots of ``as_of`` (topology -> run)."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, as_of: dict[str, int]) -> None:
        self._relation, self.as_of = relation, as_of

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._relation.columns)

    @property
    def types(self) -> tuple[str, ...]:
        """What DuckDB calls the columns' types."""
        return tuple(map(str, self._relation.types))

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table.

        Raises:
            QueryFailed: the query cannot be computed for some row.
        """
        with _computing():
            return self._relation.to_arrow_table()

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas frame. Decimals stay decimals, and whole numbers in arrays, structs and maps whole. Raises as ``to_arrow``."""
        found = self.to_arrow()
        frame: pd.DataFrame = found.to_pandas()
        for place, column in enumerate(found.columns):
            if pa.types.is_nested(column.type):  # beside a null, pandas would round them
                frame.isetitem(place, column.to_pandas(integer_object_nulls=True))
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """All rows as a Polars frame. Raises as ``to_arrow``.

        Raises:
            SetupError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError:
            raise SetupError("Polars is not installed", next_step="`pip install polars`, or use to_arrow() or to_pandas()") from None
        frame: pl.DataFrame = pl.from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self) -> duckdb.DuckDBPyRelation:
        """The query as DuckDB's own lazy relation, to be filtered, joined and aggregated further; it reads the lake and no other file."""
        return self._relation

    def batches(self, columns: Sequence[str] = ()) -> "Batches":
        """All rows, some at a time; ``columns``: SQL texts to select from the answer instead of all its columns. Raises as ``to_arrow``."""
        with _computing():
            found = self._relation.project(", ".join(columns)) if columns else self._relation
            return Batches(found.to_arrow_reader(BATCH))

    def limit(self, most: int) -> "Rows":
        """At most so many of the rows."""
        return Rows(self._relation.limit(most), self.as_of)

    def first(self, most: int) -> list[tuple[Any, ...]]:
        """At most so many rows. Raises as ``to_arrow``."""
        with _computing():
            return self._relation.limit(most).fetchall()

    def count(self) -> int:
        """How many rows there are. Raises as ``to_arrow``."""
        with _computing():
            return int(self._relation.aggregate("count(*)").fetchall()[0][0])

    def __repr__(self) -> str:
        runs = ", ".join(f"run {run} of {topology}" for topology, run in self.as_of.items())
        columns = ", ".join(f"{n} {t}" for n, t in zip(self.columns, self.types, strict=True))
        return f"<rows as of {runs}: {columns}; .to_arrow() .to_pandas() .to_polars() .to_duckdb()>"


class Batches:
    """Rows that are computed while they are taken. Raises as ``Rows.to_arrow``."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader, self.schema = reader, reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with _computing():
            yield from self._reader


def whole(cuts: Sequence[Cut], name: str) -> Rows:
    """A whole table, named as in a query. Raises as ``query``."""
    topology, _, table = folded(name).rpartition(".")
    return query([_owner(cuts, table, topology)], f"SELECT * FROM {DUCKDB.name(table)}")


def query(cuts: Sequence[Cut], text: str) -> Rows:
    """The rows that a query asks for; nothing but what its checking needs is read yet.

    A table is named as in its topology, or behind the topology's name (``shop.orders``) where several have one of that name.

    Args:
        cuts: the topologies that the query sees.
        text: a SELECT in DuckDB's SQL.

    Raises:
        QueryRefused: it has a mistake, is no SELECT, or would read or write a file.
        UnknownTable: a table is unknown, or several topologies have it.
        SnapshotExpired: a table's state is beyond retention.
    """
    files = Files()
    db = connected(files)
    with named_errors("the query"):
        used = {}
        for topology, name in _named(db, text, cuts):
            cut = _owner(cuts, name, topology)
            used[cut.topology] = cut.run
            _make_view(db, cut, topology, name, files)
        return Rows(_bound(db, text, cuts), used or {c.topology: c.run for c in cuts})


def _make_view(db: duckdb.DuckDBPyConnection, cut: Cut, schema: str, name: str, files: Files) -> None:
    if schema in _TAKEN:
        raise QueryRefused(
            f"in a query {schema!r} is no topology: DuckDB has something of that name",
            next_step=f"choose the topology {schema!r} beside the query (--topology), and name its tables without it",
        )
    view = DUCKDB.name(name)
    if schema:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {DUCKDB.name(schema)}").fetchall()
        view = f"{DUCKDB.name(schema)}.{view}"
    db.execute(f"CREATE OR REPLACE VIEW {view} AS {cut.text(name, files)}").fetchall()


def _named(db: duckdb.DuckDBPyConnection, text: str, cuts: Sequence[Cut]) -> list[tuple[str, str]]:
    """The tables of the cuts that a query names: (topology or an empty text, table).

    Raises:
        QueryRefused: it is not one SELECT.
        UnknownTable: several topologies have a table that is named without its topology.
    """
    parts = list(_parts(_parsed(db, text)))
    if any(part["type"] not in _QUERIES for part in parts if str(part.get("type")).endswith("_NODE")):
        raise QueryRefused("a query only reads: no part of it may write", expected=_ONE_SELECT)
    if any(part.get("show_type") == "SHOW_SPECIAL" for part in parts):
        every = [t.name for c in cuts for t in c.tables()]
        return [("", name) for name in every if every.count(name) == 1]
    named = {(folded(p["schema_name"]), folded(p["table_name"])) for p in parts if p.get("type") == "BASE_TABLE" and not p["catalog_name"]}
    return sorted((s, t) for s, t in named if any(s in ("", c.topology) and c.has(t) for c in cuts))


def _parsed(db: duckdb.DuckDBPyConnection, text: str) -> Any:
    """The tree of a query, as DuckDB's parser sees it."""
    try:
        statements = db.extract_statements(text)
    except duckdb.Error as error:
        raise bare(QueryRefused(f"the query has a mistake: {error}")) from None
    if [s.type for s in statements] != [duckdb.StatementType.SELECT] or statements[0].named_parameters:
        raise QueryRefused("this is no query that only reads", expected=_ONE_SELECT)
    [(tree,)] = db.execute("SELECT json_serialize_sql($text)", {"text": text}).fetchall()
    return json.loads(tree)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _parts(part)


def _bound(db: duckdb.DuckDBPyConnection, text: str, cuts: Sequence[Cut]) -> duckdb.DuckDBPyRelation:
    """The query with all its names resolved."""
    try:
        found = db.sql(text)
        # Columns of one name would be one in most of what a result is turned into.
        return found if len(set(found.columns)) == len(found.columns) else found.project("*")
    except _MISTAKES as error:
        unknown = _NO_TABLE.search(str(error))
        refused = QueryRefused(f"the query has a mistake: {error}") if unknown is None else _unknown(cuts, unknown[1].strip('"'))
        raise bare(refused) from None
    except duckdb.Error as error:
        if not isinstance(error, duckdb.PermissionException) and f"{Closed.__name__}: " not in str(error):
            raise
        raise bare(QueryRefused("a query reads the tables of the lake only, no files", expected=_ONE_SELECT)) from None


def _owner(cuts: Sequence[Cut], name: str, topology: str) -> Cut:
    """The one topology that has the table; an empty text: any."""
    having = [c for c in cuts if topology in ("", c.topology) and c.has(name)]
    if not having:
        raise _unknown(cuts, name)
    if len(having) > 1:
        raise UnknownTable(
            f"{len(having)} topologies have a table {name!r}",
            expected=", ".join(f"{c.topology}.{name}" for c in having),
            next_step="write one of these, or choose the topology (--topology)",
        )
    return having[0]


def _unknown(cuts: Sequence[Cut], name: str) -> UnknownTable:
    known = [t.name if len(cuts) == 1 else f"{t.topology}.{t.name}" for c in cuts for t in c.tables()]
    last = next(((c, n) for c in cuts if (n := c.last_with(name)) is not None), None)
    if last is None:
        return UnknownTable(f"the lake has no table {name!r}", expected=", ".join(known))
    what = f"{name!r} is not in topology {last[0].topology!r} as of run {last[0].run}; run {last[1]} was the last that had it"
    return UnknownTable(what, expected=", ".join(known), next_step=f"ask for the state as of run {last[1]}")


@contextmanager
def _computing() -> Iterator[None]:
    """Around the work of DuckDB: its words quote values of rows."""
    with named_errors("the query"):
        try:
            yield
        except (duckdb.DataError, duckdb.InvalidInputException) as error:
            if "lake://" in str(error):  # a file, not a value
                raise
            what = f"the query cannot be computed for at least one row: DuckDB says {type(error).__name__}"
            raise QueryFailed(what, next_step="use TRY_CAST, or a condition that leaves such rows out") from error
