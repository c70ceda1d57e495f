"""What outputs should be, by Spark: the defining query over the source tables of a cut. For comparisons, never for a run."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rejoin.engines.spark_engine import SparkEngine, SparkRelation, by_key
from rejoin.lake.read.reader import without
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.settled_results import with_settled
from rejoin.plan.model.match import SameKey, Window
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.sql.defining_query import node_query, upstream
from rejoin.statements.own_columns import HASH

LEFT, RIGHT = "__computable_left", "__computable_right"
"""The ends of names of views: the rows of a side of a node that can be computed."""
HELD = "__held_keys"
"""The end of the name of a view: the keys of a node that are held back."""


class Recomputation:
    """Outputs as their definition says.

    Args:
        engine: Spark.
        plan: the plan.
        reader: reads the cut.
    """

    def __init__(self, engine: SparkEngine, plan: Plan, reader: PlainReader) -> None:
        self._engine, self._plan, self._reader = engine, plan, reader

    def rows(self, node: Node) -> DataFrame:
        """What a node's output should be: its defining query over the source tables of this cut, where in this node and in those below
        the keys that are held back have their published rows. Below, what is joined as of arrival has the rows that it has: no query gives them.
        """

        def view(name: str) -> str:
            made = f"{self._plan.topology}__{name}"
            if name.endswith((LEFT, RIGHT)):  # made already
                return name
            if self._plan.is_table(name):
                current = self._engine.frame(self._reader.current(name))
                without_pushdown(current).select("_row.*").drop(HASH).createOrReplaceTempView(made)
            return made

        def rows(of: Node) -> DataFrame:
            sides = {
                f"{self._plan.topology}__{of.name}{end}": v.table for end, v in ((LEFT, of.left), *((RIGHT, e.right) for e in of.edges))
            }

            def whole(name: str) -> str:
                return view(sides.get(name, name))

            query = node_query(self._plan, self._without_pairs(self._computable(of, view)), view, whole)
            made = with_settled(self._engine, self._plan, self._reader, of, self._engine.spark.sql(query))
            return self._with_published(of, made)

        for below in upstream(self._plan, node):
            made = self._stored(below) if below.keeps_what_it_saw else rows(below)
            made.createOrReplaceTempView(f"{self._plan.topology}__{below.name}")
        return rows(node)

    def _stored(self, node: Node) -> DataFrame:
        return self._engine.frame(self._reader.current(node.name)).select(*(F.col(f"_row.`{p.name}`") for p in node.columns))

    def _computable(self, node: Node, view: Callable[[str], str]) -> Node:
        """The node, over views of its tables where the rows are null that an expression of the node has no value for."""
        left = self._sifted(node, view(node.left.table), LEFT)
        made = node if left is None else replace(node, left=replace(node.left, table=left))
        if not isinstance(node.match, Window | SameKey):
            return made
        edge = node.edges[0]
        right = self._sifted(node, view(edge.right.table), RIGHT)
        return made if right is None else replace(made, edges=(replace(edge, right=replace(edge.right, table=right)),))

    def _sifted(self, node: Node, given: str, end: str) -> str | None:
        keys = self._reader.uncomputable(node, right=end == RIGHT)
        if keys is None:
            return None
        made, rows = f"{self._plan.topology}__{node.name}{end}", SparkRelation(self._engine.spark.table(given))
        nulls = self._plan.null_keys(node.left.table if end == LEFT else node.edges[0].right.table)
        statement = without(self._engine.sql, rows.columns, keys.columns, rows.columns, nulls=nulls)
        self._engine.frame_of(statement, lefts=rows, keys=keys).createOrReplaceTempView(made)
        return made

    def _without_pairs(self, node: Node) -> Node:
        """A node whose rows have a key of both sides, with a filter that drops those that are held back before their columns are computed."""
        held = self._reader.held(node.name, None) if node.two_sided else None
        if held is None:
            return node
        made = f"{self._plan.topology}__{node.name}{HELD}"
        self._engine.frame(held).select(*node.key).createOrReplaceTempView(made)
        key = {p.name: p.sql for p in node.columns if p.name in node.key}
        same = " AND ".join(f"({key[k]}) <=> k.`{k}`" for k in node.key)
        free = f"NOT EXISTS (SELECT 1 FROM `{made}` AS k WHERE {same})"
        return replace(node, where=free if node.where is None else f"{free} AND ({node.where})")

    def _with_published(self, node: Node, rows: DataFrame) -> DataFrame:
        held = self._reader.held(node.name, None)
        if held is None:
            return rows
        together = " OR " if node.null_keys else " AND "  # every row has a part that is not null
        rows = rows.where(together.join(f"`{k}` IS NOT NULL" for k in node.key))  # no rows: see ``_computable``
        keys, nulls = self._engine.frame(held).select(*node.key), node.null_keys_aside
        current = by_key(self._engine.frame(self._reader.current(node.name)), keys, node.key, "left_semi", nulls=nulls)
        stored = current.select(*(F.col(f"_row.`{p.name}`") for p in node.columns))
        return by_key(rows, keys, node.key, "left_anti", nulls=nulls).select(*(p.name for p in node.columns)).union(stored)


def without_pushdown(rows: DataFrame) -> DataFrame:
    """The rows, so that no filter on them moves into the scan: of the parts of a condition Spark hands some to the scan, and computes those
    before the others, whatever their order. A filter could no longer protect a cast that stands behind it.
    """
    return rows.where(F.rand(0) >= 0)  # true, but nothing is moved past what is not deterministic
