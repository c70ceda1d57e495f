"""Reads of one cut: every table at the snapshot that the ledger names, never at ``main``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from rejoin.lake import names, seen
from rejoin.lake.access import Access, Keys
from rejoin.lake.local import spark_schema
from rejoin.lake.refs import Refs
from rejoin.plan.model import Edge, Node, Plan
from rejoin.plan.query import node_query, upstream
from rejoin.stages.columns import HASH, HELD_CODES, NOT_COMPUTABLE, RUN, SOURCE_FILE, numbered
from rejoin.stages.frames import quoted, renamed

LEFT = "__computable_left"
"""The end of the name of a view: the left rows of a node that can be computed."""


class Reader(Access):
    """The tables of one topology as of one run, in the shapes that stages take.

    Args:
        spark: the session.
        plan: the plan that says which columns a table has.
        states: table -> snapshot id. A table that is not there was never written.
        refs: the tables.
    """

    def __init__(self, spark: SparkSession, plan: Plan, states: Mapping[str, int], refs: Refs) -> None:
        super().__init__(spark, plan.topology, states, refs)
        self._plan = plan

    def with_writes(self, writes: Mapping[str, int]) -> "Reader":
        """A reader of the same tables, some at other snapshots."""
        return Reader(self.spark, self._plan, {**self.states, **writes}, self.refs)

    def changes(self, name: str, run: int) -> DataFrame | None:
        """``Changes`` of a source table or output that the run made to its used columns; None if it was never written."""
        if self._plan.is_table(name):
            return self._source_changes(name, run)
        table = names.changes(name)
        if not self.has(table):
            return None
        return self._sides(name, self.of_run(table, run))

    def versions(self, name: str, keys: Keys | None, *, before: bool) -> DataFrame | None:
        """``Versions`` of a source table for some keys (None: all keys); None if it was never written.

        ``before``: with the version before; else ``_before`` is not there, and is not read.
        """
        if not self.has(name):
            return None
        key = self._plan.key_of(name)
        newest = self._newest(name, key, keys, before=before)
        row = F.when(F.col("_op") != "D", self._row(name, newest))
        extra = [self._before_row(name, newest).alias("_before")] if before else []
        return newest.select(*key, "_version", row.alias("_row"), *extra)

    def newest_version(self, name: str) -> str:
        """The highest source position of a source table; empty if it was never written."""
        if not self.has(name):
            return ""
        row = self.every(name, ["_version"]).agg(F.max("_version").alias("newest")).first()
        return (row["newest"] if row else None) or ""

    def lookup(self, name: str, keys: Keys) -> DataFrame:
        """``Rows`` of a source table or output for the given keys (columns: its key columns)."""
        return self._rows(name, keys)

    def current(self, name: str, also: Sequence[StructField] = ()) -> DataFrame:
        """``Rows`` of a whole source table or output. ``also``: stored columns that the plan no longer has."""
        return self._rows(name, None, also)

    def left_behind(self, node: Node) -> list[StructField]:
        """The stored columns of an output that its plan no longer has."""
        kept = {RUN, HASH, *(p.name for p in node.columns)}
        return [f for f in spark_schema(self.refs.require(node.name, self.states[node.name])).fields if f.name not in kept]

    def subscribers(self, node: Node, edge: Edge, keys: Keys | None) -> DataFrame:
        """Live ``Subscriptions`` of an edge to the given foreign keys (columns ``fk_1``..; None: all)."""
        fks, pks = numbered("fk", len(edge.foreign_key)), numbered("pk", len(node.key))
        found = self.having(names.subscriptions(node, edge), fks, keys, [*fks, *pks, RUN, "_op", HASH])
        return self._latest(names.subscriptions(node, edge), found, [*fks, *pks]).where("_op = 'S'").select(*fks, *pks, RUN, "_op", HASH)

    def sent(self, node: Node, edge: Edge, run: int) -> DataFrame | None:
        """The ``Subscriptions`` that a run sent; None if there are none."""
        name = names.subscriptions(node, edge)
        return self.of_run(name, run) if self.has(name) else None

    def responses(self, node: Node, edge: Edge) -> DataFrame | None:
        """The ``Responses`` of an edge in the open run; None if the edge had nothing to respond to."""
        name = names.responses(node, edge)
        if not self.has(name):
            return None
        found = self.every(name, self.columns(name))
        right = seen.struct(found, "right", [(p.name, p.type) for p in edge.right.columns])
        return found.select(*numbered("pk", len(node.key)), "left_hash", right.alias("right"))

    def candidates(self, node: Node) -> DataFrame | None:
        """The ``Candidates`` of a node in the open run; None if it has none."""
        name = names.candidates(node.name)
        return self.every(name, self.columns(name)) if self.has(name) else None

    def held(self, name: str, keys: Keys | None) -> DataFrame | None:
        """The rows of a table or node that are held back, as its quarantine table has them, for some keys (None: all)."""
        table = names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self.columns(table)):
            return None
        key = self._plan.key_of(name)
        entries = self.having(table, key, keys, columns).where(F.col("_code").isin(*HELD_CODES))
        return latest(entries, key).where("_op = 'Q'")

    def lefts(self, node: Node) -> DataFrame:
        """``Rows`` of a node's left table, null where an expression of the node has no value for the row and it is held back for that."""
        rows, keys = self.current(node.left.table), self._uncomputable(node)
        return rows if keys is None else _without(rows, keys, ["_row"])

    def refused(self, name: str) -> DataFrame | None:
        """The records of a source table that could not be applied and were neither replayed nor dropped; None if there were never any."""
        table = names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self.columns(table)):
            return None
        records = self.every(table, columns).where(~F.col("_code").isin(*HELD_CODES))
        return latest(records, [SOURCE_FILE, "_line"]).where("_op IS DISTINCT FROM 'R'")

    def recomputed(self, node: Node) -> DataFrame:
        """What a node's output should be: its defining query over the source tables of this cut, where in this node and in those below
        the keys that are held back have their published rows.
        """

        def view(name: str) -> str:
            made = f"{self._plan.topology}__{name}"
            if name.endswith(LEFT):  # made already
                return name
            if self._plan.is_table(name):
                without_pushdown(self.current(name)).select("_row.*").drop(HASH).createOrReplaceTempView(made)
            return made

        def rows(of: Node) -> DataFrame:
            return self._with_published(of, self.spark.sql(node_query(self._plan, self._computable(of, view), view)))

        for below in upstream(self._plan, node):
            rows(below).createOrReplaceTempView(f"{self._plan.topology}__{below.name}")
        return rows(node)

    def _computable(self, node: Node, view: Callable[[str], str]) -> Node:
        """The node, over a view of its left table where the rows are null that an expression of the node has no value for."""
        keys = self._uncomputable(node)
        if keys is None:
            return node
        made = f"{self._plan.topology}__{node.name}{LEFT}"
        rows = self.spark.table(view(node.left.table))
        _without(rows, keys, rows.columns).createOrReplaceTempView(made)
        return replace(node, left=replace(node.left, table=made))

    def _uncomputable(self, node: Node) -> DataFrame | None:
        """The keys, named as those of the left table, that are held back because no expression has a value for them."""
        held, key = self.held(node.name, None), self._plan.key_of(node.left.table)
        return None if held is None else renamed(held.where(F.col("_code") == NOT_COMPUTABLE), node.key, key)

    def _with_published(self, node: Node, rows: DataFrame) -> DataFrame:
        held = self.held(node.name, None)
        if held is None:
            return rows
        rows = rows.where(" AND ".join(f"{quoted(k)} IS NOT NULL" for k in node.key))  # no rows: see ``_computable``
        keys, key = held.select(*node.key), list(node.key)
        stored = (
            self.current(node.name).join(keys, on=key, how="left_semi").select(*(F.col(f"_row.{quoted(p.name)}") for p in node.columns))
        )
        return rows.join(keys, on=key, how="left_anti").select(*(p.name for p in node.columns)).union(stored)

    def _source_changes(self, name: str, run: int) -> DataFrame | None:
        if not self.has(name):
            return None
        rows = self.of_run(name, run).where("_op <> 'N'")
        after = F.when(F.col("_op") != "D", self._row(name, rows))
        framed = rows.select(*self._plan.key_of(name), "_op", self._before_row(name, rows).alias("_before"), after.alias("_after"))
        return framed.where("_before IS NOT NULL OR _after IS NOT NULL")

    def _before_row(self, name: str, rows: DataFrame) -> Column:
        """The version before, as all columns of the plan and the hash; the key columns are those of the row."""
        return seen.struct(rows, "_before", self._fields(name), self._plan.key_of(name))

    def _sides(self, name: str, changes: DataFrame) -> DataFrame:
        """Stored changes of an output, the rows before and after as the plan has them."""
        rows = [seen.struct(changes, side, self._fields(name)).alias(side) for side in ("_before", "_after")]
        return changes.select(*self._plan.key_of(name), "_op", *rows)

    def _rows(self, name: str, keys: Keys | None, also: Sequence[StructField] = ()) -> DataFrame:
        key = self._plan.key_of(name)
        if self._plan.is_table(name):
            found = self._newest(name, key, keys, before=False).where("_op <> 'D'")
        else:
            found = self.having(name, key, keys, self.columns(name), located=True)
        return found.select(*key, self._row(name, found, also).alias("_row"))

    def _newest(self, name: str, key: tuple[str, ...], keys: Keys | None, *, before: bool) -> DataFrame:
        columns = [c for c in self.columns(name) if before or c != "_before"]
        return self._latest(name, self.having(name, key, keys, columns), key)

    def _latest(self, name: str, rows: DataFrame, key: Sequence[str]) -> DataFrame:
        """The newest version of each key, without a shuffle where each key has one version only."""
        return rows if self.unique(name, key[0]) else latest(rows, key)

    def _row(self, name: str, frame: DataFrame, also: Sequence[StructField] = ()) -> Column:
        """All columns of the plan and the hash as one struct; a column that the stored rows do not have yet is null."""
        return seen.row(frame, [*self._fields(name), *((f.name, None) for f in also)])

    def _fields(self, name: str) -> seen.Fields:
        """The columns of a source table or output."""
        if self._plan.is_table(name):
            return [(c.name, c.type) for c in self._plan.table(name).columns]
        return [(p.name, p.type) for p in self._plan.node(name).columns]


def without_pushdown(rows: DataFrame) -> DataFrame:
    """The rows, so that no filter on them moves into the scan: of the parts of a condition Spark hands some to the scan, and computes those
    before the others, whatever their order. A filter could no longer protect a cast that stands behind it.
    """
    return rows.where(F.rand(0) >= 0)  # true, but nothing is moved past what is not deterministic


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest version of each key of a versioned table: a run writes at most one."""
    newest = Window.partitionBy(*key).orderBy(F.col("_run").desc())
    return rows.withColumn("_nth", F.row_number().over(newest)).where("_nth = 1").drop("_nth")


def _without(rows: DataFrame, keys: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows with nulls in ``columns`` where the key is among ``keys``.

    No filter: Spark moves conditions of later joins and filters below it, and computes them for the rows that are to be left out.
    """
    marked = rows.join(keys.withColumn("_out", F.lit(True)), on=keys.columns, how="left")
    return marked.select(
        *(F.when(F.col("_out").isNull(), F.col(quoted(c))).alias(c) if c in columns else F.col(quoted(c)) for c in rows.columns)
    )
