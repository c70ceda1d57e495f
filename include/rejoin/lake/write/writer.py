"""Writes of one attempt: each to a branch of its own, started from the run's base snapshot, so that nothing is visible before ``publish``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.arrow_tables import fitted
from rejoin.engines.relation import Engine, Relation
from rejoin.lake import table_names
from rejoin.lake.iceberg import column_bounds, commits
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.schema_evolution import BOUNDS, STAMP, evolve, holds, settled
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.lake.ledger.records import Write
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.write import output_changes
from rejoin.limits import limits
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import Changed
from rejoin.statements.dialect import SPARK
from rejoin.statements.own_columns import HASH, PLACE, RUN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    # Spark takes each row group for a split of its own and adds this for it and each of its delete files; with the default of 4 MB
    # every one of thousands of row groups became a task.
    "read.split.open-file-cost": str(64 << 10),
    "write.delete.mode": "merge-on-read",
    "write.delete.distribution-mode": "none",
    # A delete file a task. By data file, every task would write the older deletes of a data file again, so that no count told the live rows.
    "write.delete.granularity": "partition",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "write.parquet.compression-codec": "zstd",
    # Exactly `row_group` rows a row group, by Spark (which only looks at the size every so many rows) and by PyIceberg.
    "write.parquet.row-group-size-bytes": "1024",
    "write.parquet.row-group-check-min-record-count": str(limits().row_group),
    "write.parquet.row-group-check-max-record-count": str(limits().row_group),
    "write.target-file-size-bytes": str(128 << 20),  # PyIceberg counts bytes in memory, about a million narrow rows; Spark bytes on disk
    "write.parquet.row-group-limit": str(limits().row_group),
    # Pages of 2,048 rows, so that a lookup decompresses only those around a row (PyIceberg looks at the bytes after every so many rows): what DuckDB
    # takes at once. Pages of half as many rows, or that end elsewhere, take it a third longer, whether it looks for one row in a hundred or in a thousand.
    "write.parquet.page-row-limit": "2048",
    "write.parquet.page-size-bytes": str(16 << 10),
    "write.parquet.dict-size-bytes": str(8 << 10),
    "commit.retry.num-retries": "20",
}


@dataclass(frozen=True)
class LoggedChanges:
    """The changes of an output, written. ``apply`` writes the output with them applied, as many as they were counted to be.

    It raises InvariantBroken if a changed key has no row, or more than one.
    """

    write: Write
    apply: Callable[[Changed], Write]


@dataclass(frozen=True)
class Branch:
    """Where one attempt writes one table."""

    table: str
    name: str


class Writer:
    """Writes of one attempt of one step."""

    def __init__(self, engine: Engine, refs: Refs, base: Mapping[str, int], run: int, attempt: str) -> None:
        self._engine, self._refs, self._base, self._run = engine, refs, base, run
        self._attempt, self._branch = attempt, table_names.branch(run, attempt)

    def again(self) -> "Writer":
        """A writer with branches of its own: what this one wrote stays behind as garbage."""
        return Writer(self._engine, self._refs, self._base, self._run, f"{self._attempt}_again")

    def append(self, table: str, rows: Relation, key: Sequence[str], *, transient: bool = False, without: Sequence[str] = ()) -> Write:
        """The base state plus ``rows``. ``transient``: readable within this run only (its base is always empty); ``without``: columns that are not stored."""
        stored = pa.schema([field for field in rows.schema if field.name not in without])
        existing, base = self._table(table, stored, key, transient=transient)
        return replace(self._put(existing, base, rows, key), transient=transient)

    def replace(self, table: str, rows: Relation, key: Sequence[str]) -> Write:
        """Only ``rows``, instead of the base state."""
        existing, _ = self._table(table, rows.schema, key)
        return self._put(existing, self._refs.empty(table), rows, key)

    def _put(self, table: Table, base: int, rows: Relation, key: Sequence[str]) -> Write:
        """A snapshot plus ``rows``, of which only the table's columns count."""
        if (local := rows.local) is not None:
            stored = _sorted(fitted(local, arrow_schema(table)), key)
            made = self._committed(table, base, commits.data_files(table, stored))
            self._refs.recent.keep(made.snapshot_id, stored)
            return made
        if (written := self._engine.each_range(rows, key, commits.FilesOf(table))) is not None:
            return self._committed(table, base, list(chain.from_iterable(written)))
        name = table.name()[-1]
        target, frame = self._start(name, base), self._engine.by_spark(f"table {name} is written").frame(rows)
        self._append(target, frame.sortWithinPartitions(*in_order(key)), exact=column_bounds.exact(table, base))
        return self._written(name)

    def _committed(self, table: Table, base: int, added: Sequence[DataFile], deletes: Sequence[DataFile] = ()) -> Write:
        name = table.name()[-1]
        return Write(name, self._refs.commit_files(name, self._branch, base, added, deletes))

    def log(self, node: Node, rows: Relation) -> LoggedChanges:
        """Appends a run's changes of an output to its changes table.

        Args:
            node: whose output it is.
            rows: the changes (see ``rewrite``). Where a row lies that is replaced may be unknown.
        """
        columns = [p.name for p in node.columns]
        schema = output_changes.logged(rows.schema)
        table, base = self._table(table_names.changes(node.name), schema, node.key)
        if (local := rows.local) is not None:
            here = _sorted(local, node.key)
            old = output_changes.replaced(here, [*node.key, PLACE])
            if old[PLACE].null_count:  # Spark has found them, and does not say
                log = self._put(table, base, rows, node.key)
                return LoggedChanges(log, lambda made: self._upsert_found(node, here, old, log, made))
        elif not self._engine.in_process:
            log = self._put(table, base, rows, node.key)
            return LoggedChanges(log, lambda made: self._upsert_by_spark(node, log, made))
        output, start = self._table(node.name, output_changes.schema_of(schema, columns), node.key)
        work = output_changes.ChangesOf(table, output, columns)
        written = [work(iter(here.combine_chunks().to_batches()))] if local is not None else self._engine.each_range(rows, node.key, work)
        done = output_changes.together(written or [])
        log = self._committed(table, base, done.log)
        if local is not None:
            self._refs.recent.keep(log.snapshot_id, fitted(here, arrow_schema(table)))
        return LoggedChanges(log, lambda made: self._replaced(output, start, done.added, done.gone, made))

    def _upsert_found(self, node: Node, rows: pa.Table, old: pa.Table, log: Write, made: Changed) -> Write:
        """The output from changes in this process, in the order of their keys. Where the ``old`` rows lie has to be looked up."""
        flat = output_changes.rows(rows, [p.name for p in node.columns])
        existing, base = self._table(node.name, flat.schema, node.key)
        gone = self._places(existing, base, node.key, old)
        if gone is None:
            return self._upsert_by_spark(node, log, made)
        added = commits.data_files(existing, fitted(flat, arrow_schema(existing)))
        return self._replaced(existing, base, added, gone, made)

    def _replaced(self, table: Table, base: int, added: Sequence[DataFile], gone: Sequence[pa.Array], made: Changed) -> Write:
        deletes = output_changes.deletes(table, base, gone, made.updated + made.deleted, self._run)
        return self._committed(table, base, added, deletes)

    def _places(self, table: Table, base: int, key: Sequence[str], rows: pa.Table) -> Sequence[pa.Array] | None:
        """Where the rows of some keys lie; None if they cannot be found in this process."""
        found = duckdb_lookup.having(table, base, key, rows.select(list(key)), [PLACE])
        return None if isinstance(found, duckdb_lookup.TooLarge) else found[PLACE].chunks

    def _upsert_by_spark(self, node: Node, log: Write, made: Changed) -> Write:
        """The output from the stored changes."""
        table, key, columns = node.name, node.key, [p.name for p in node.columns]
        spark, stored = self._engine.by_spark(f"output {table} is written").spark, table_names.full(self._refs.topology, log.table)
        this_run = f"(SELECT * FROM {stored} VERSION AS OF {log.snapshot_id} WHERE _run = {self._run})"
        shown = ", ".join([*(f"_after.`{c}`" for c in columns), RUN, f"_after.{HASH}"])
        flat = spark.sql(f"SELECT {shown} FROM {this_run} WHERE _op <> 'D'")
        logged = arrow_schema(self._refs.require(log.table, log.snapshot_id))
        existing, base = self._table(table, output_changes.schema_of(logged, columns), key)
        count, gone = made.updated + made.deleted, None
        if count and limits().worth(count, files_of(existing, base).rows):
            old = spark.sql(f"SELECT {', '.join(f'`{k}`' for k in key)} FROM {this_run} WHERE _op <> 'I'").toArrow()
            gone = self._places(existing, base, key, old)
        if gone is not None:
            self._refs.commit_files(table, self._branch, base, [], output_changes.deletes(existing, base, gone, count, self._run))
            target = self._target(table)
        else:
            target = self._start(table, base)
        if count and gone is None:
            same = SPARK.on(key, "c", "o", nulls=node.null_keys)
            spark.sql(f"DELETE FROM {target.name} AS o WHERE EXISTS (SELECT 1 FROM {this_run} c WHERE c._op <> 'I' AND {same})")
        self._append(target, flat.sortWithinPartitions(*in_order(key)), exact=column_bounds.exact(existing, base))
        return self._written(table)

    def touch(self, table: str, schema: pa.Schema, key: Sequence[str]) -> Write:
        """The base state as it is; makes the table if there is none yet."""
        _, base = self._table(table, schema, key)
        self._start(table, base)
        return self._written(table)

    def widen(self, table: str, schema: pa.Schema) -> None:
        """Makes an existing table able to hold rows of ``schema``.

        Raises:
            SchemaRefused: a column would have to become something that its type cannot be promoted to.
        """
        if not holds(self._refs.require(table, self._base[table]), schema, anew=False):
            evolve(self._refs, table, schema, self._run)

    def _table(self, table: str, schema: pa.Schema, key: Sequence[str], *, transient: bool = False) -> tuple[Table, int]:
        """The table, made or evolved so that it can hold rows of ``schema``, and the snapshot that this attempt starts from."""
        existing = self._refs.table(table)
        if table in self._base and not transient:
            if existing is not None and not holds(existing, schema, anew=False):
                evolve(self._refs, table, schema, self._run)
        else:
            self._make(existing, table, schema, key)
        base = self._base[table] if table in self._base else self._refs.empty(table)
        existing = self._refs.require(table, base)
        return existing, base

    def _make(self, existing: Table | None, name: str, schema: pa.Schema, key: Sequence[str]) -> None:
        """Makes a table of which no committed run has rows, or makes it anew where a run that was never committed has left one."""
        wanted = {**PROPERTIES, **{f"{BOUNDS}{c}": "full" for c in (*key, RUN) if c in schema.names}}
        if existing is None:
            self._refs.create(name, schema, {**wanted, STAMP: str(self._run)})
            existing = self._refs.table(name)
        if existing is None or not (settled(existing.properties, wanted) and holds(existing, schema, anew=True)):
            evolve(self._refs, name, schema, self._run, anew=True, properties=wanted)

    def _start(self, table: str, base: int) -> Branch:
        """Starts this attempt's branch of a table."""
        self._refs.start_branch(table, self._branch, base)
        return self._target(table)

    def _target(self, table: str) -> Branch:
        name = table_names.full(self._refs.topology, table)
        return Branch(name, f"{name}.branch_{self._branch}")

    def _append(self, target: Branch, rows: "DataFrame", *, exact: bool) -> None:
        """``exact``: the bounds of all files that the branch started from hold; those that Spark writes do."""
        writer = _aligned(rows, self._engine.by_spark("it writes").spark.table(target.table).schema).writeTo(target.name)
        for name, value in column_bounds.SUMMARY.items() if exact else ():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()

    def _written(self, table: str) -> Write:
        return Write(table, self._refs.head(table, self._branch))


def in_order(key: Sequence[str]) -> "list[Column]":
    """The columns by which Spark sorts what it writes: nulls behind all values, as where this process writes."""
    from pyspark.sql import functions as F

    return [F.col(f"`{k}`").asc_nulls_last() for k in key]


def _sorted(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    return rows.sort_by([(k, "ascending") for k in key])


def _aligned(rows: "DataFrame", schema: "StructType") -> "DataFrame":
    """The rows with exactly the table's columns in its order: what the plan no longer has is null, inside structs too."""
    return rows.select(*(_cell(rows.schema, f.name, f.dataType).alias(f.name) for f in schema.fields))


def _cell(have: "StructType", name: str, wanted: "DataType", path: str = "") -> "Column":
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if name not in have.names:
        return F.lit(None).cast(wanted)
    column, kind = F.col(f"{path}`{name}`"), have[name].dataType
    if isinstance(wanted, StructType) and isinstance(kind, StructType) and kind.names != wanted.names:
        fields = [_cell(kind, f.name, f.dataType, f"{path}`{name}`.").alias(f.name) for f in wanted.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    return column
