"""Reads of one cut: every table at the snapshot that the ledger names, never at ``main``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rejoin.lake import names, probe
from rejoin.lake.config import CATALOG
from rejoin.lake.duck import FILE, POSITION
from rejoin.lake.files import files_of, unique
from rejoin.lake.local import LocalRows, spark_schema
from rejoin.lake.refs import Refs
from rejoin.plan.model import Edge, Node, Plan
from rejoin.plan.query import node_query, upstream
from rejoin.stages.columns import HASH, HELD_CODE, RUN, SOURCE_FILE
from rejoin.stages.frames import numbered, packed, quoted

BROADCAST_KEYS = 1_000_000
"""Key sets up to this size are sent to every task of a scan; larger ones are joined by a shuffle."""
PRUNED_ROWS = 5_000_000
"""A scan of a table with more rows first asks for the smallest and largest key, so that files and row groups outside are skipped."""


@dataclass(frozen=True)
class Keys:
    """Keys to look up: a frame that has their columns, and how many they are at most (duplicates do no harm). ``here``: the same on the driver."""

    frame: DataFrame
    at_most: int
    here: pa.Table | None = None


@dataclass(frozen=True)
class Read:
    """How one table was read: ``local`` (on the driver) or ``scan`` (by Spark) and why; rows found, where known."""

    table: str
    path: str
    why: str
    rows: int | None


class Reader:
    """The tables of one topology as of one run.

    Small results are read on the driver (``probe``), all others by Spark: both give the same rows. ``reads`` lists what was done,
    ``located`` has the key, file and position of the output rows that were looked up on the driver, for the writer.

    Args:
        spark: the session.
        plan: the plan that says which columns a table has.
        states: table -> snapshot id. A table that is not there was never written.
        refs: the tables.
    """

    def __init__(self, spark: SparkSession, plan: Plan, states: Mapping[str, int], refs: Refs) -> None:
        self._spark, self._plan, self._states, self._refs = spark, plan, states, refs
        self._tables: dict[str, Table] = {}
        self.reads: list[Read] = []
        self.located: dict[str, pa.Table] = {}

    def with_writes(self, writes: Mapping[str, int]) -> "Reader":
        """A reader of the same tables, some at other snapshots."""
        return Reader(self._spark, self._plan, {**self._states, **writes}, self._refs)

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
        return self._of_run(table, run).select(*self._plan.key_of(name), "_op", "_before", "_after")

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

    def lookup(self, name: str, keys: Keys) -> DataFrame:
        """``Rows`` of a source table or output for the given keys (columns: its key columns)."""
        return self._rows(name, keys)

    def current(self, name: str) -> DataFrame:
        """``Rows`` of a whole source table or output."""
        return self._rows(name, None)

    def subscribers(self, node: Node, edge: Edge, keys: Keys | None) -> DataFrame:
        """Live ``Subscriptions`` of an edge to the given foreign keys (columns ``fk_1``..; None: all)."""
        fks, pks = numbered("fk", len(edge.foreign_key)), numbered("pk", len(node.key))
        found = self._having(names.subscriptions(node, edge), fks, keys, [*fks, *pks, RUN, "_op", HASH])
        return self._latest(names.subscriptions(node, edge), found, [*fks, *pks]).where("_op = 'S'").select(*fks, *pks, RUN, "_op", HASH)

    def sent(self, node: Node, edge: Edge, run: int) -> DataFrame | None:
        """The ``Subscriptions`` that a run sent; None if there are none."""
        name = names.subscriptions(node, edge)
        return self._of_run(name, run) if self.has(name) else None

    def responses(self, node: Node, edge: Edge) -> DataFrame | None:
        """The ``Responses`` of an edge in the open run; None if the edge had nothing to respond to."""
        name = names.responses(node, edge)
        return self._all(name, self._columns(name)) if self.has(name) else None

    def candidates(self, node: Node) -> DataFrame | None:
        """The ``Candidates`` of a node in the open run; None if it has none."""
        name = names.candidates(node.name)
        return self._all(name, self._columns(name)) if self.has(name) else None

    def held(self, name: str, keys: Keys | None) -> DataFrame | None:
        """The rows of a table or node that are held back, as its quarantine table has them, for some keys (None: all)."""
        table = names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self._columns(table)):
            return None
        key = self._plan.key_of(name)
        entries = self._having(table, key, keys, columns).where(F.col("_code") == HELD_CODE)
        return latest(entries, key).where("_op = 'Q'")

    def refused(self, name: str) -> DataFrame | None:
        """The records of a source table that could not be applied and were neither replayed nor dropped; None if there were never any."""
        table = names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self._columns(table)):
            return None
        records = self._all(table, columns).where(F.col("_code") != HELD_CODE)
        return latest(records, [SOURCE_FILE, "_line"]).where("_op IS DISTINCT FROM 'R'")

    def stored(self, name: str) -> int:
        """How many rows a table has, old versions and hidden ones included."""
        return files_of(self._table(name), self._states[name]).rows if self.has(name) else 0

    def live(self, name: str) -> int:
        """How many rows an output has."""
        return files_of(self._table(name), self._states[name]).live if self.has(name) else 0

    def recomputed(self, node: Node) -> DataFrame:
        """What a node's output should be: its defining query over the source tables of this cut, where in this node and in those below
        the keys that are held back have their published rows.
        """

        def view(name: str) -> str:
            made = f"{self._plan.topology}__{name}"
            if self._plan.is_table(name):
                self.current(name).select("_row.*").drop(HASH).createOrReplaceTempView(made)
            return made

        def rows(of: Node) -> DataFrame:
            return self._with_published(of, self._spark.sql(node_query(self._plan, of, view)))

        for below in upstream(self._plan, node):
            rows(below).createOrReplaceTempView(f"{self._plan.topology}__{below.name}")
        return rows(node)

    def _with_published(self, node: Node, rows: DataFrame) -> DataFrame:
        held = self.held(node.name, None)
        if held is None:
            return rows
        keys, key = held.select(*node.key), list(node.key)
        stored = (
            self.current(node.name).join(keys, on=key, how="left_semi").select(*(F.col(f"_row.{quoted(p.name)}") for p in node.columns))
        )
        return rows.join(keys, on=key, how="left_anti").select(*(p.name for p in node.columns)).union(stored)

    def table(self, name: str) -> DataFrame:
        """A table as it is stored, at its snapshot."""
        return self._spark.sql(f"SELECT * FROM {full_name(self._plan.topology, name)} VERSION AS OF {self._states[name]}")

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _source_changes(self, name: str, run: int) -> DataFrame | None:
        if not self.has(name):
            return None
        rows = self._of_run(name, run).where("_op <> 'N'")
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
            fields.append((column.name, stored if known else f"cast(NULL AS {column.type or 'STRING'})"))
        return F.when(F.col("_before").isNotNull(), packed([*fields, (HASH, f"_before.{HASH}")]))

    def _rows(self, name: str, keys: Keys | None) -> DataFrame:
        key = self._plan.key_of(name)
        if self._plan.is_table(name):
            found = self._newest(name, key, keys, before=False).where("_op <> 'D'")
        else:
            found = self._having(name, key, keys, self._columns(name), located=True)
        return found.select(*key, self._row(name, found).alias("_row"))

    def _newest(self, name: str, key: tuple[str, ...], keys: Keys | None, *, before: bool) -> DataFrame:
        columns = [c for c in self._columns(name) if before or c != "_before"]
        return self._latest(name, self._having(name, key, keys, columns), key)

    def _latest(self, name: str, rows: DataFrame, key: Sequence[str]) -> DataFrame:
        """The newest version of each key, without a shuffle where each key has one version only."""
        files = files_of(self._table(name), self._states[name]).data
        return rows if unique(self._table(name), files, key[0]) else latest(rows, key)

    def _row(self, name: str, frame: DataFrame) -> Column:
        """All columns of the plan and the hash as one struct; a column that the stored rows do not have yet is null."""
        if self._plan.is_table(name):
            wanted = [(c.name, c.type) for c in self._plan.table(name).columns]
        else:
            wanted = [(p.name, p.type) for p in self._plan.node(name).columns]
        have = set(frame.columns)
        return packed([*((n, quoted(n) if n in have else f"cast(NULL AS {t or 'STRING'})") for n, t in wanted), (HASH, HASH)])

    # --- driver or Spark ------------------------------------------------------------------------------------------------

    def _having(self, name: str, key: Sequence[str], keys: Keys | None, columns: Sequence[str], *, located: bool = False) -> DataFrame:
        """The stored rows of some keys (None: all rows)."""
        if keys is None:
            return self._all(name, columns)
        wanted = keys.frame.select(*key)
        if keys.at_most > probe.LOCAL_ROWS:
            return self._scanned(name, columns, f"{keys.at_most:,} keys", keys, wanted)
        asked = wanted.distinct().toArrow() if keys.here is None else keys.here
        place = [FILE, POSITION] if located else []
        found = probe.having(self._table(name), self._states[name], key, asked, [*columns, *place])
        if isinstance(found, probe.TooLarge):
            here = LocalRows(asked, wanted.schema).frame(self._spark)
            return self._scanned(name, columns, found.why, keys, here)
        if located:
            self.located[name] = found.select([*key, *place])
        return self._local(name, found.select(list(columns)), f"{asked.num_rows:,} keys")

    def _of_run(self, name: str, run: int) -> DataFrame:
        columns = self._columns(name)
        found = probe.of_run(self._table(name), self._states[name], run, columns)
        if isinstance(found, probe.TooLarge):
            return self._scanned(name, columns, found.why).where(F.col(RUN) == run)
        return self._local(name, found, "of this run")

    def _all(self, name: str, columns: Sequence[str]) -> DataFrame:
        found = probe.every(self._table(name), self._states[name], columns)
        return self._scanned(name, columns, found.why) if isinstance(found, probe.TooLarge) else self._local(name, found, "all rows")

    def _local(self, name: str, found: pa.Table, why: str) -> DataFrame:
        self.reads.append(Read(name, "local", why, found.num_rows))
        stored = spark_schema(self._table(name))
        return LocalRows(found, StructType([stored[c] for c in found.column_names])).frame(self._spark)

    def _scanned(self, name: str, columns: Sequence[str], why: str, keys: Keys | None = None, wanted: DataFrame | None = None) -> DataFrame:
        """By Spark: the rows of the keys. A set of keys that is not too large goes to every task, so that the table is not moved."""
        self.reads.append(Read(name, "scan", why, None))
        table = self.table(name).select(*columns)
        if keys is None or wanted is None:
            return table
        if files_of(self._table(name), self._states[name]).rows > PRUNED_ROWS:
            first = F.col(quoted(wanted.columns[0]))
            bounds = wanted.agg(F.min(first).alias("low"), F.max(first).alias("high")).first()
            assert bounds is not None
            table = table.where(first.between(F.lit(bounds["low"]), F.lit(bounds["high"])))
        spread = F.broadcast(wanted) if keys.at_most <= BROADCAST_KEYS else wanted
        return table.join(spread, on=wanted.columns, how="left_semi")

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self._refs.require(name, self._states[name])
        return self._tables[name]

    def _columns(self, name: str) -> list[str]:
        return [f.name for f in self._table(name).schema().fields]


def full_name(topology: str, table: str) -> str:
    """A table's name in Spark SQL."""
    return f"{CATALOG}.{topology}.{table}"


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest version of each key of a versioned table: a run writes at most one."""
    newest = Window.partitionBy(*key).orderBy(F.col("_run").desc())
    return rows.withColumn("_nth", F.row_number().over(newest)).where("_nth = 1").drop("_nth")


def _struct(frame: DataFrame, column: str) -> StructType:
    kind = frame.schema[column].dataType
    assert isinstance(kind, StructType)
    return kind
