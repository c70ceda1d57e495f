"""Reads of one cut: every table at the snapshot that the ledger names, never at ``main``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rejoin.lake import names
from rejoin.lake.config import CATALOG
from rejoin.plan.model import Edge, Node, Plan
from rejoin.plan.query import topology_query
from rejoin.stages.frames import HASH, numbered, quoted

BROADCAST_KEYS = 1_000_000
"""Key sets up to this size are sent to every task of a lookup; larger ones are joined by a shuffle."""


@dataclass(frozen=True)
class Keys:
    """Keys to look up: a frame that has their columns, and how many they are at most (duplicates do no harm)."""

    frame: DataFrame
    at_most: int


class Reader:
    """The tables of one topology as of one run.

    Args:
        spark: the session.
        plan: the plan that says which columns a table has.
        states: table -> snapshot id. A table that is not there was never written.
    """

    def __init__(self, spark: SparkSession, plan: Plan, states: Mapping[str, int]) -> None:
        self._spark, self._plan, self._states = spark, plan, states

    def has(self, table: str) -> bool:
        """Whether the table was ever written."""
        return table in self._states

    def changes(self, name: str, run: int) -> DataFrame | None:
        """``Changes`` of a source table or output that the run made to its used columns; None if it was never written."""
        if self._plan.is_table(name):
            return self._source_changes(name, run)
        table = names.changes(name)
        if not self.has(table):
            return None
        key = self._plan.key_of(name)
        return self.table(table).where(F.col("_run") == run).select(*key, "_op", "_before", "_after")

    def versions(self, name: str, keys: Keys | None) -> DataFrame | None:
        """``Versions`` of a source table for some keys (None: all keys); None if it was never written."""
        if not self.has(name):
            return None
        key = self._plan.key_of(name)
        newest = self._newest(name, key, keys)
        row = F.when(F.col("_op") != "D", self._row(name, newest))
        return newest.select(*key, "_version", row.alias("_row"), self._before_row(name, newest).alias("_before"))

    def lookup(self, name: str, keys: Keys) -> DataFrame:
        """``Rows`` of a source table or output for the given keys (columns: its key columns)."""
        return self._rows(name, keys)

    def current(self, name: str) -> DataFrame:
        """``Rows`` of a whole source table or output."""
        return self._rows(name, None)

    def subscribers(self, node: Node, edge: Edge, keys: Keys | None) -> DataFrame:
        """Live ``Subscriptions`` of an edge to the given foreign keys (columns ``fk_1``..; None: all)."""
        fks, pks = numbered("fk", len(edge.foreign_key)), numbered("pk", len(node.key))
        table = self.table(names.subscriptions(node, edge))
        found = table if keys is None else _only(table, keys, fks)
        return latest(found, [*fks, *pks]).where("_op = 'S'").select(*fks, *pks, "_run", "_op", HASH)

    def sent(self, node: Node, edge: Edge, run: int) -> DataFrame | None:
        """The ``Subscriptions`` that a run sent; None if there are none."""
        name = names.subscriptions(node, edge)
        return self.table(name).where(F.col("_run") == run) if self.has(name) else None

    def responses(self, node: Node, edge: Edge) -> DataFrame | None:
        """The ``Responses`` of an edge in the open run; None if the edge had nothing to respond to."""
        name = names.responses(node, edge)
        return self.table(name) if self.has(name) else None

    def recomputed(self, node: Node) -> DataFrame:
        """What a node's output should be: its defining query over the source tables of this cut."""

        def view(name: str) -> str:
            made = f"{self._plan.topology}__{name}"
            self.current(name).select("_row.*").drop(HASH).createOrReplaceTempView(made)
            return made

        return self._spark.sql(topology_query(self._plan, node, view))

    def table(self, name: str) -> DataFrame:
        """A table as it is stored, at its snapshot."""
        return self._spark.sql(f"SELECT * FROM {full_name(self._plan.topology, name)} VERSION AS OF {self._states[name]}")

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _source_changes(self, name: str, run: int) -> DataFrame | None:
        if not self.has(name):
            return None
        rows = self.table(name).where((F.col("_run") == run) & (F.col("_op") != "N"))
        after = F.when(F.col("_op") != "D", self._row(name, rows))
        framed = rows.select(*self._plan.key_of(name), "_op", self._before_row(name, rows).alias("_before"), after.alias("_after"))
        return framed.where("_before IS NOT NULL OR _after IS NOT NULL")

    def _before_row(self, name: str, rows: DataFrame) -> Column:
        """The version before, as all columns of the plan and the hash; a column that is not stored yet is null."""
        key, had = self._plan.key_of(name), set(_struct(rows, "_before").names)
        fields = []
        for column in self._plan.table(name).columns:
            stored = quoted(column.name) if column.name in key else f"_before.{quoted(column.name)}"
            known = column.name in key or column.name in had
            fields.append((F.col(stored) if known else F.lit(None).cast(column.type or "string")).alias(column.name))
        return F.when(F.col("_before").isNotNull(), F.struct(*fields, F.col(f"_before.{HASH}")))

    def _rows(self, name: str, keys: Keys | None) -> DataFrame:
        key = self._plan.key_of(name)
        if self._plan.is_table(name):
            found = self._newest(name, key, keys).where("_op <> 'D'")
        else:
            found = self.table(name) if keys is None else _only(self.table(name), keys, key)
        return found.select(*key, self._row(name, found).alias("_row"))

    def _newest(self, name: str, key: tuple[str, ...], keys: Keys | None) -> DataFrame:
        table = self.table(name)
        return latest(table if keys is None else _only(table, keys, key), key)

    def _row(self, name: str, frame: DataFrame) -> Column:
        """All columns of the plan and the hash as one struct; a column that the stored rows do not have yet is null."""
        if self._plan.is_table(name):
            wanted = [(c.name, c.type) for c in self._plan.table(name).columns]
        else:
            wanted = [(p.name, p.type) for p in self._plan.node(name).columns]
        have = set(frame.columns)
        return F.struct(*((F.col(quoted(n)) if n in have else F.lit(None).cast(t or "string")).alias(n) for n, t in wanted), F.col(HASH))


def full_name(topology: str, table: str) -> str:
    """A table's name in Spark SQL."""
    return f"{CATALOG}.{topology}.{table}"


def _only(table: DataFrame, keys: Keys, key: Sequence[str]) -> DataFrame:
    """The rows of a table with the given keys; a set of keys that is not too large goes to every task, so that the table is not moved."""
    wanted = keys.frame.select(*key)
    return table.join(F.broadcast(wanted) if keys.at_most <= BROADCAST_KEYS else wanted, on=list(key), how="left_semi")


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest version of each key of a versioned table: a run writes at most one."""
    newest = Window.partitionBy(*key).orderBy(F.col("_run").desc())
    return rows.withColumn("_nth", F.row_number().over(newest)).where("_nth = 1").drop("_nth")


def _struct(frame: DataFrame, column: str) -> StructType:
    kind = frame.schema[column].dataType
    assert isinstance(kind, StructType)
    return kind
