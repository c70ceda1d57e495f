"""The second engine: DuckDB evaluates a plan's defining queries over the model's rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from model import Model
from topologies import TableSpec
from values import ARROW, same

from rejoin.plan.model.plan import Edge, Node, Plan, Projection
from rejoin.plan.sql.defining_query import topology_query

Rows = list[tuple[Any, ...]]


class Oracle:
    """What every output and every subscription table of a plan must hold, given the rows of the source tables."""

    def __init__(self, plan: Plan, specs: Mapping[str, TableSpec]) -> None:
        self._specs = specs
        self._queries = {n.name: _duckdb(topology_query(plan, n)) for n in plan.nodes}
        edges = [(n, e) for n in plan.nodes for e in n.edges]
        self._subscriptions = {(n.name, e.name): _duckdb(topology_query(plan, subscribing(n, e))) for n, e in edges}
        self._connection = duckdb.connect()

    def load(self, model: Model) -> None:
        """Takes the model's rows as they are now."""
        for name, spec in self._specs.items():
            schema = pa.schema([pa.field(c, ARROW[t]) for c, t in spec.columns.items()])
            given = pa.Table.from_pylist(list(model.rows(name).values()), schema=schema)
            self._connection.register("given", given)
            self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
            self._connection.unregister("given")

    def output(self, node: str) -> Rows:
        """The rows of an output, columns in the plan's order."""
        return self._rows(self._queries[node])

    def subscriptions(self, node: str, edge: str) -> Rows:
        """(fk_1.., pk_1..) of every left row with a foreign key (I8)."""
        return self._rows(self._subscriptions[node, edge])

    def _rows(self, query: str) -> Rows:
        return [tuple(map(same, row)) for row in self._connection.execute(query).fetchall()]


def subscribing(node: Node, edge: Edge) -> Node:
    """The node that shows who must be subscribed on an edge: foreign key and primary key of its left rows, without any join."""
    foreign = [Projection(f"fk_{i}", sql, None) for i, sql in enumerate(edge.foreign_key, start=1)]
    primary = [Projection(f"pk_{i}", f"l.`{name}`", None) for i, name in enumerate(node.left.key, start=1)]
    present = " AND ".join(f"({sql}) IS NOT NULL" for sql in edge.foreign_key)
    return replace(node, edges=(), columns=(*foreign, *primary), where=present)


def _duckdb(query: str) -> str:
    [text] = sqlglot.transpile(query, read="spark", write="duckdb")
    return text
