"""This process runs the statements, by DuckDB over Arrow tables. No JVM."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import NoReturn

import duckdb
import pyarrow as pa
from duckdb.sqltypes import BLOB

from rejoin.engines.engine import Counts, Engine, Here, NeedsSpark, Rows
from rejoin.lake import probe
from rejoin.lake.duck import fresh
from rejoin.plan import portable
from rejoin.plan.model import Node, Plan, Table, View
from rejoin.plan.portable import NotPortable
from rejoin.plan.rules import Expectation
from rejoin.stages.dialect import DUCKDB
from rejoin.stages.hashing import MURMUR3
from rejoin.stages.provenance import hashed_bytes

_NO_VALUE = (duckdb.DataError, duckdb.InvalidInputException, duckdb.NotSupportedError)
"""What DuckDB raises for a row: the second for a division by zero, and for what printed expressions refuse by ``error``."""


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One a process, apart from the one that reads files: its settings are those with which expressions were proven."""
    made = fresh()
    for setting in portable.SETTINGS:
        made.execute(setting)
    made.create_function(MURMUR3, hashed_bytes, [BLOB], BLOB)  # null for null
    return made


class ColumnarEngine(Engine):
    """Every statement is computed at once.

    Args:
        plan: whose expressions are run.
    """

    sql = DUCKDB

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._spoken: dict[str, Node] = {}

    def query(self, statement: str, **inputs: Rows) -> Rows:
        with _database().cursor() as database:
            for name, rows in inputs.items():
                database.register(name, rows.here())
            try:
                return Here(database.sql(statement).to_arrow_table())
            except _NO_VALUE as error:
                # Spark says for which row, and whether that row is to be held back.
                raise NeedsSpark(f"a value cannot be computed here ({type(error).__name__})") from error

    def rows(self, arrow: pa.Table, *, many: bool = False) -> Rows:  # noqa: ARG002
        return Here(arrow)

    def everywhere(self, rows: Rows) -> Rows:
        return rows

    def together(self, rows: Rows) -> Rows:
        return rows

    def small(self, rows: Rows, at_most: int) -> Rows:
        if at_most > probe.LOCAL_ROWS:
            raise NeedsSpark(f"{at_most:,} rows may be changed")
        return rows

    def counted(self, rows: Rows, counts: Mapping[str, str]) -> tuple[Rows, Counts]:
        aggregates = ", ".join(f"{text} AS {self.sql.name(name)}" for name, text in counts.items())
        found = self.one(f"SELECT {aggregates} FROM counted", counted=rows)
        return rows, lambda: found

    @contextmanager
    def kept(self, rows: Rows) -> Iterator[Rows]:
        yield rows

    def type(self, kind: pa.DataType) -> str:
        with _database().cursor() as database:
            database.register("one", pa.schema([("c", kind)]).empty_table())
            return str(database.sql("SELECT c FROM one").types[0])

    def node(self, node: Node) -> Node:
        if node.name not in self._spoken:
            if why := portable.why_not(self._plan, node):
                raise NeedsSpark(why)
            self._spoken[node.name] = _printed(self._plan, node)
        return self._spoken[node.name]

    def conditions(self, of: Table | Node, expectations: Sequence[Expectation]) -> Sequence[Expectation]:
        try:
            types = {"t": portable.types_of(self._plan, of.name)}
            return [_asked(one, types) for one in expectations]
        except NotPortable as error:
            raise NeedsSpark(str(error)) from error

    def by_spark(self, why: str) -> NoReturn:
        raise NeedsSpark(why)


def _printed(plan: Plan, node: Node) -> Node:
    """The node with its texts in DuckDB's SQL."""
    columns = portable.node_columns(plan, node)

    def text(given: str) -> str:
        return portable.printed(given, columns).text

    edges = tuple(replace(e, right=_view(plan, e.right), foreign_key=tuple(text(part) for part in e.foreign_key)) for e in node.edges)
    shown = tuple(replace(p, sql=text(p.sql)) for p in node.columns)
    where = None if node.where is None else text(node.where)
    return replace(node, left=_view(plan, node.left), edges=edges, columns=shown, where=where)


def _view(plan: Plan, view: View) -> View:
    columns = portable.view_columns(plan, view)
    shown = tuple(replace(p, sql=portable.printed(p.sql, columns).text) for p in view.columns)
    return replace(view, columns=shown, where=None if view.where is None else portable.printed(view.where, columns).text)


def _asked(one: Expectation, columns: Mapping[str, Mapping[str, str]]) -> Expectation:
    if "resolved" not in one.kwargs:
        return one
    return replace(one, kwargs={**one.kwargs, "resolved": portable.printed(one.kwargs["resolved"], columns).text})
