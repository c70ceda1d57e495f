"""Single statements under test: their inputs and what they give as text tables, without a lake. A case takes some milliseconds."""

import pyarrow as pa
from duckdb import DuckDBPyConnection

from rejoin.engines.deferred_relation import database
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.sql.portable import quoted
from rejoin.statements.dialect import DUCKDB
from rejoin.testing.text import aligned, lines, read, split, written

SQL = DUCKDB


def spoken(plan: Plan, name: str) -> Node:
    """A node with its texts in DuckDB's SQL."""
    return DuckdbEngine(plan).node(plan.node(name))


def check(statement: str, expected: str, /, **inputs: str) -> None:
    """Asserts what a statement gives.

    Args:
        statement: in DuckDB's SQL.
        expected: its rows, in any order. The header names columns, or says what is computed of them (``l.name``, ``r1 IS NULL``); values are as DuckDB prints them.
        inputs: the tables that it names. The header has a type behind each name, else it is a text; the values are texts that DuckDB casts to it.
    """
    with database().cursor() as connection:
        for name, text in inputs.items():
            connection.execute(f"CREATE TEMP TABLE {name} AS {_values(text)}")
        try:
            _compare(connection, statement, expected)
        finally:
            for name in inputs:
                connection.execute(f"DROP TABLE {name}")


def check_rows(found: pa.Table, expected: str) -> None:
    """Asserts what rows there are. ``expected``: as of ``check``."""
    with database().cursor() as connection:
        connection.register("found_rows", found)
        _compare(connection, "FROM found_rows", expected)


def table_of(text: str) -> pa.Table:
    """A text table, as the inputs of ``check``, with its types."""
    with database().cursor() as connection:
        return connection.sql(_values(text)).to_arrow_table()


def _compare(connection: DuckDBPyConnection, statement: str, expected: str) -> None:
    header, *rows = map(split, lines(expected))
    shown = ", ".join(f"CAST({column} AS VARCHAR)" for column in header)
    answer = connection.execute(f"SELECT {shown} FROM ({statement})").fetchall()
    found, wanted = _text(header, [[written(cell) for cell in row] for row in answer]), _text(header, rows)
    assert found == wanted, f"found\n{found}\nexpected\n{wanted}"


def _text(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(aligned([header, *sorted([written(read(cell)) for cell in row] for row in rows)]))


def _values(text: str) -> str:
    header, *rows = map(split, lines(text))
    columns = [(name, kind or "VARCHAR") for name, _, kind in (cell.partition(" ") for cell in header)]
    shown = [
        [f"CAST({_literal(cell)} AS {kind}) AS {SQL.name(name)}" for cell, (name, kind) in zip(row, columns, strict=True)] for row in rows
    ]
    empty = [f"CAST(NULL AS {kind}) AS {SQL.name(name)}" for name, kind in columns]
    return " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in shown) or f"SELECT {', '.join(empty)} WHERE false"


def _literal(cell: str) -> str:
    value = read(cell)
    return "NULL" if value is None else quoted(value)
