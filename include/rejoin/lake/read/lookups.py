"""How stored rows are fetched: few of them in this process, all others by Spark. Both ways give the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType

from rejoin.engines.relation import Engine, Relation
from rejoin.lake import table_names
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of, newest, unique
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.lake.read import duckdb_lookup
from rejoin.limits import limits
from rejoin.statements.own_columns import PLACE, RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class LookupKeys:
    """Keys to look up: a relation that has their columns, and how many they are at most (duplicates do no harm). ``here``: the same in this process."""

    rows: Relation
    at_most: int
    here: pa.Table | None = None


@dataclass(frozen=True)
class _Wanted:
    """Keys that a scan looks for, how many they are at most, and whether parts of them may be null."""

    keys: Relation
    at_most: int
    nulls: bool


def scanned(columns: Sequence[str]) -> list[str]:
    """Columns of what Spark scans, as its SQL: it does not say where a row lies."""
    return [f"CAST(NULL AS BIGINT) AS {PLACE}" if c == PLACE else f"`{c}`" for c in columns]


@dataclass(frozen=True)
class TableRead:
    """How one table was read: ``local`` (fetched), ``files`` (by DuckDB, as part of a later query) or ``scan`` (by Spark), and why; rows found,
    where known.
    """

    table: str
    path: str
    why: str
    rows: int | None


class Lookups:
    """The tables of one topology, each at its snapshot.

    ``reads`` lists what was fetched and how.

    Args:
        engine: who works on what is read.
        topology: the name of the topology.
        states: table -> snapshot id. A table that is not there was never written.
        refs: the tables.
    """

    def __init__(self, engine: Engine, topology: str, states: Mapping[str, int], refs: Refs) -> None:
        self.engine, self.states, self.refs = engine, states, refs
        self._topology = topology
        self._tables: dict[str, Table] = {}
        self.reads: list[TableRead] = []

    def has(self, name: str) -> bool:
        """Whether the table was ever written."""
        return name in self.states

    def columns(self, name: str) -> list[str]:
        """The columns that the table has."""
        return [f.name for f in self._table(name).schema().fields]

    def schema(self, name: str) -> pa.Schema:
        """The same with their types."""
        return arrow_schema(self._table(name))

    def stored(self, name: str) -> int:
        """How many rows a table has, old versions and hidden ones included."""
        return files_of(self._table(name), self.states[name]).rows if self.has(name) else 0

    def live(self, name: str) -> int:
        """How many rows a table has without the deleted ones."""
        return files_of(self._table(name), self.states[name]).live if self.has(name) else 0

    def unique(self, name: str, column: str) -> bool:
        """Whether no two rows of a versioned table can have one key, ``column`` being its first."""
        return unique(self._table(name), files_of(self._table(name), self.states[name]).data, column)

    def having(self, name: str, key: Sequence[str], keys: LookupKeys | None, columns: Sequence[str], *, nulls: bool = False) -> Relation:
        """The stored rows of some keys (None: all rows).

        Args:
            name: the table.
            key: its columns that are looked at.
            keys: the values.
            columns: the columns of the result, which may hold PLACE.
            nulls: parts of a key may be null.
        """
        if keys is None:
            return self.every(name, columns)
        which = self.engine.sql.names(key)
        if not limits().worth(keys.at_most, self.stored(name)):
            wanted = self.engine.query(f"SELECT {which} FROM keys", keys=keys.rows)
            return self._scanned(name, columns, f"{keys.at_most:,} keys", _Wanted(wanted, keys.at_most, nulls))
        asked = keys.here
        if asked is None:
            asked = self.engine.query(f"SELECT DISTINCT {which} FROM keys", keys=keys.rows).here()
        found = duckdb_lookup.having(self._table(name), self.states[name], key, asked, columns)
        if isinstance(found, duckdb_lookup.TooLarge):
            return self._scanned(name, columns, found.why, _Wanted(self.engine.rows(asked), keys.at_most, nulls))
        return self._local(name, found, f"{asked.num_rows:,} keys", among=keys.at_most)

    def of_run(self, name: str, run: int) -> Relation:
        """The rows that a run wrote, all columns."""
        columns = self.columns(name)
        added = self.refs.recent.added(self.states[name])
        if added is not None and added.column_names == columns and pc.all(pc.equal(added[RUN], run)).as_py():
            return self._local(name, added, "just written")
        found = duckdb_lookup.of_run(self._table(name), self.states[name], run, columns)
        if isinstance(found, duckdb_lookup.TooLarge):
            return self._scanned(name, columns, found.why, run=run)
        return self._local(name, found, "of this run")

    def within(self, name: str, column: str, spans: Sequence[tuple[int, int]], columns: Sequence[str]) -> Relation:
        """The rows whose ``column``, a time, is within some spans of microseconds, both ends included."""
        found = duckdb_lookup.within(self._table(name), self.states[name], column, spans, columns)
        if not isinstance(found, duckdb_lookup.TooLarge):
            return self._local(name, found, f"{len(spans)} spans of time")
        spark = self.engine.by_spark(f"table {name}: {found.why}")
        self.reads.append(TableRead(name, "scan", found.why, None))
        kind = self.schema(name).field(column).type
        return spark.of(self.table(name).where(duckdb_lookup.inside(spark.sql, column, kind, spans)).select(*(f"`{c}`" for c in columns)))

    def largest_time(self, name: str, column: str) -> int | None:
        """The newest of a column of times, in microseconds; None if there is none. From metadata where that says it."""
        known = newest(self._table(name), files_of(self._table(name), self.states[name]), column)
        if known is not None:
            return known
        sql, kind = self.engine.sql, self.schema(name).field(column).type
        micros = sql.time_micros(f"max({sql.name(column)})", zoned=bool(kind.tz))
        found = self.engine.one(f"SELECT {micros} AS newest FROM found", found=self.every(name, [column]))["newest"]
        return None if found is None else int(str(found))

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows; ``columns`` may hold PLACE."""
        found = duckdb_lookup.every(self._table(name), self.states[name], columns)
        return (
            self._scanned(name, columns, found.why) if isinstance(found, duckdb_lookup.TooLarge) else self._local(name, found, "all rows")
        )

    def table(self, name: str, run: int | None = None) -> "DataFrame":
        """A table as it is stored, at its snapshot, as a frame of Spark; ``run``: only the rows that a run wrote."""
        from pyspark.sql import functions as F

        rows = self.as_others(name)
        rows = rows if run is None else rows.where(F.col(RUN) == run)  # numbers have bounds that hold, whoever wrote the files
        # Spark hands conditions to Iceberg through everything but a sample, here one of all rows.
        return rows if self._prunable(name) else rows.sample(fraction=1.0)

    def as_others(self, name: str) -> "DataFrame":
        """A table at its snapshot as any reader of Iceberg sees it, who trusts all bounds."""
        spark = self.engine.by_spark(f"table {name} is scanned")
        return spark.spark.sql(f"SELECT * FROM {table_names.full(self._topology, name)} VERSION AS OF {self.states[name]}")

    def _prunable(self, name: str) -> bool:
        """Whether Iceberg may leave out files and row groups for any condition on the table's columns.

        Not for bounds that may not hold; nor for floating point numbers: Spark's NaN is larger than all others, Iceberg's is in no bound.
        """
        table = self._table(name)
        floating = any(isinstance(f.field_type, FloatType | DoubleType) for f in table.schema().fields)
        return column_bounds.exact(table, self.states[name]) and not floating

    def _local(self, name: str, found: pa.Table, why: str, among: int = 0) -> Relation:
        """As one partition, unless there are many, or the stage has many rows of its own (``among``)."""
        self.reads.append(TableRead(name, "local", why, found.num_rows))
        return self.engine.rows(found, many=not limits().small(max(found.num_rows, among)))

    def _scanned(self, name: str, columns: Sequence[str], why: str, wanted: "_Wanted | None" = None, run: int | None = None) -> Relation:
        """The rows of the keys, to be computed where they are needed: by DuckDB over the files, or by Spark."""
        rows = self.engine.files(duckdb_lookup.text_of(self._table(name), self.states[name], columns, run))
        if rows is None:
            return self._by_spark(name, columns, why, wanted, run)
        self.reads.append(TableRead(name, "files", why, None))
        if wanted is None:
            return rows
        return self.engine.query(
            duckdb_lookup.among_wanted(self.engine.sql, wanted.keys.columns, nulls=wanted.nulls), stored=rows, wanted=wanted.keys
        )

    def _by_spark(self, name: str, columns: Sequence[str], why: str, wanted: "_Wanted | None", run: int | None) -> Relation:
        """A set of keys that is not too large goes to every task, so that the table is not moved."""
        spark = self.engine.by_spark(f"table {name}: {why}")
        self.reads.append(TableRead(name, "scan", why, None))
        table = self.table(name, run).selectExpr(*scanned(columns))
        if wanted is None:
            return spark.of(table)
        from pyspark.sql import functions as F

        from rejoin.engines.spark.engine import by_key

        asked = spark.frame(wanted.keys)
        if self.stored(name) > limits().pruned_rows:
            first = F.col(f"`{asked.columns[0]}`")
            bounds = asked.agg(F.min(first).alias("low"), F.max(first).alias("high")).first()
            assert bounds is not None
            inside = first.between(F.lit(bounds["low"]), F.lit(bounds["high"]))
            table = table.where(inside | first.isNull() if wanted.nulls else inside)
        spread = F.broadcast(asked) if wanted.at_most <= limits().broadcast_keys else asked
        return spark.of(by_key(table, spread, asked.columns, nulls=wanted.nulls), wanted.keys)

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self.refs.require(name, self.states[name])
        return self._tables[name]
