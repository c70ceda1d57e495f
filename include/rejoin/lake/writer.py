"""Writes of one attempt: each to a branch of its own, started from the run's base snapshot, so that nothing is visible before ``publish``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from rejoin.lake import names
from rejoin.lake.evolve import evolve
from rejoin.lake.ledger import Write
from rejoin.lake.reader import full_name
from rejoin.lake.refs import Refs

PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.delete.mode": "merge-on-read",
    "write.delete.distribution-mode": "none",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "write.parquet.compression-codec": "zstd",
    "commit.retry.num-retries": "20",
}


@dataclass(frozen=True)
class Branch:
    """Where one attempt writes one table."""

    table: str
    name: str


class Writer:
    """Writes of one attempt of one step."""

    def __init__(self, spark: SparkSession, refs: Refs, base: Mapping[str, int], run: int, attempt: str) -> None:
        self._spark, self._refs, self._base, self._run = spark, refs, base, run
        self._attempt, self._branch = attempt, names.branch(run, attempt)

    def again(self) -> "Writer":
        """A writer with branches of its own: what this one wrote stays behind as garbage."""
        return Writer(self._spark, self._refs, self._base, self._run, f"{self._attempt}_again")

    def append(self, table: str, rows: DataFrame, key: Sequence[str], *, transient: bool = False) -> Write:
        """The base state plus ``rows``. ``transient``: readable within this run only (its base is always empty)."""
        target = self._start(table, rows, key)
        self._append(target, rows)
        return self._written(table, transient=transient)

    def replace(self, table: str, rows: DataFrame, key: Sequence[str]) -> Write:
        """Only ``rows``, instead of the base state."""
        target = self._start(table, rows, key)
        _aligned(rows, self._spark.table(target.table).schema).writeTo(target.name).overwrite(F.lit(True))
        return self._written(table)

    def upsert(self, table: str, changes: str, written: Write, columns: Sequence[str], key: Sequence[str], *, only_inserts: bool) -> Write:
        """The base state of an output with a run's written changes applied: delete the changed keys, append the new rows.

        Args:
            table: the output, one row a key.
            changes: its changes table, already written by this attempt as ``written``.
            columns: the output's columns.
            key: its key columns.
            only_inserts: no changed key has a row yet, so there is nothing to delete.
        """
        namespace = self._refs.topology
        this_run = f"(SELECT * FROM {full_name(namespace, changes)} VERSION AS OF {written.snapshot_id} WHERE _run = {self._run})"
        rows = self._spark.sql(f"SELECT _run, _after FROM {this_run} WHERE _op <> 'D'")
        flat = rows.select(*(F.col(f"_after.`{c}`") for c in columns), "_run", F.col("_after._hash").alias("_hash"))
        target = self._start(table, flat, key)
        if not only_inserts:
            same = " AND ".join(f"c.`{k}` = o.`{k}`" for k in key)
            self._spark.sql(f"DELETE FROM {target.name} AS o WHERE EXISTS (SELECT 1 FROM {this_run} c WHERE c._op <> 'I' AND {same})")
        self._append(target, flat)
        return self._written(table)

    def touch(self, table: str, shape: DataFrame, key: Sequence[str]) -> Write:
        """The base state as it is; makes the table if there is none yet."""
        self._start(table, shape, key)
        return self._written(table)

    def _start(self, table: str, rows: DataFrame, key: Sequence[str]) -> Branch:
        """Makes or evolves the table, and starts this attempt's branch from the base snapshot (from nothing if there is none)."""
        name = full_name(self._refs.topology, table)
        if self._refs.table(table) is None:
            self._create(name, rows.schema, key)
        evolve(self._spark, name, rows.schema)
        base = self._base[table] if table in self._base else self._refs.empty(table)
        self._refs.start_branch(table, self._branch, base)
        return Branch(name, f"{name}.branch_{self._branch}")

    def _create(self, name: str, schema: StructType, key: Sequence[str]) -> None:
        columns = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema.fields)
        metrics = {f"write.metadata.metrics.column.{c}": "full" for c in (*key, "_run") if c in schema.names}
        properties = ", ".join(f"'{k}' = '{v}'" for k, v in {**PROPERTIES, **metrics}.items())
        with suppress(AnalysisException):  # another attempt made it in between; if not, the next statement fails with the reason
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})")

    def _append(self, target: Branch, rows: DataFrame) -> None:
        _aligned(rows, self._spark.table(target.table).schema).writeTo(target.name).append()

    def _written(self, table: str, *, transient: bool = False) -> Write:
        return Write(table, self._refs.head(table, self._branch), transient)


def _aligned(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows with exactly the table's columns in its order: what the plan no longer has is null, inside structs too."""
    return rows.select(*(_cell(rows.schema, f.name, f.dataType).alias(f.name) for f in schema.fields))


def _cell(have: StructType, name: str, wanted: DataType, path: str = "") -> Column:
    if name not in have.names:
        return F.lit(None).cast(wanted)
    column, kind = F.col(f"{path}`{name}`"), have[name].dataType
    if isinstance(wanted, StructType) and isinstance(kind, StructType) and kind.names != wanted.names:
        fields = [_cell(kind, f.name, f.dataType, f"{path}`{name}`.").alias(f.name) for f in wanted.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    return column
