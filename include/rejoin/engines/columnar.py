"""This process runs the statements, by DuckDB over Arrow tables. No JVM."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

import duckdb
import pyarrow as pa

from rejoin.engines.engine import Counts, Engine, Here, NeedsSpark, Rows
from rejoin.lake import probe
from rejoin.lake.duck import cursor
from rejoin.plan.model import Node, Plan, Table
from rejoin.plan.rules import Expectation
from rejoin.stages.dialect import DUCKDB


class ColumnarEngine(Engine):
    """Every statement is computed at once.

    Args:
        plan: whose expressions are run.
    """

    sql = DUCKDB
    name = "process"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def query(self, statement: str, **inputs: Rows) -> Rows:
        with cursor() as database:
            for name, rows in inputs.items():
                database.register(name, rows.here())
            try:
                return Here(database.sql(statement).to_arrow_table())
            except (duckdb.DataError, duckdb.NotSupportedError) as error:
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
        with cursor() as database:
            database.register("one", pa.schema([("c", kind)]).empty_table())
            return str(database.sql("SELECT c FROM one").types[0])

    def node(self, node: Node) -> Node:
        raise NotImplementedError

    def conditions(self, of: Table | Node, expectations: Sequence[Expectation]) -> Sequence[Expectation]:
        raise NotImplementedError

    def session(self, why: str) -> NoReturn:
        raise NeedsSpark(why)
