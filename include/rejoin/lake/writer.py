"""Writes of one attempt: each to a branch of its own, started from the run's base snapshot, so that nothing is visible before ``publish``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.engine import Engine, Here, Rows
from rejoin.errors import InvariantBroken
from rejoin.lake import commit, metrics, names, probe
from rejoin.lake.duck import FILE, POSITION, opens
from rejoin.lake.evolve import evolve, holds
from rejoin.lake.files import files_of
from rejoin.lake.local import fitted, in_parts, streamed
from rejoin.lake.records import Write
from rejoin.lake.refs import Refs
from rejoin.lake.tables import arrow_schema
from rejoin.limits import limits
from rejoin.plan.model import Node
from rejoin.stages.columns import HASH, RUN
from rejoin.stages.dialect import SPARK

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
    # Pages of 1,024 rows, so that a lookup decompresses only those around a row (PyIceberg looks at the bytes after every so many rows), and
    # no dictionaries of values that hardly repeat: PyIceberg's default made one of every hash. Lookups took 0.6 of the time, files 14 % less.
    "write.parquet.page-row-limit": "1024",
    "write.parquet.page-size-bytes": str(16 << 10),
    "write.parquet.dict-size-bytes": str(8 << 10),
    "commit.retry.num-retries": "20",
}


DELETES = 500_000
"""Rows in a file of position deletes, about: each holds the name of a data file in full, in memory."""


@dataclass(frozen=True)
class Branch:
    """Where one attempt writes one table."""

    table: str
    name: str


class Writer:
    """Writes of one attempt of one step."""

    def __init__(self, engine: Engine, refs: Refs, base: Mapping[str, int], run: int, attempt: str) -> None:
        self._engine, self._refs, self._base, self._run = engine, refs, base, run
        self._attempt, self._branch = attempt, names.branch(run, attempt)

    def again(self) -> "Writer":
        """A writer with branches of its own: what this one wrote stays behind as garbage."""
        return Writer(self._engine, self._refs, self._base, self._run, f"{self._attempt}_again")

    def append(self, table: str, rows: Rows, key: Sequence[str], *, transient: bool = False) -> Write:
        """The base state plus ``rows``. ``transient``: readable within this run only (its base is always empty)."""
        existing, base = self._table(table, rows.schema, key, transient=transient)
        return self._put(existing, table, base, rows, key, transient=transient)

    def replace(self, table: str, rows: Rows, key: Sequence[str]) -> Write:
        """Only ``rows``, instead of the base state."""
        existing, _ = self._table(table, rows.schema, key)
        return self._put(existing, table, self._refs.empty(table), rows, key, transient=False)

    def _put(self, existing: Table, table: str, base: int, rows: Rows, key: Sequence[str], *, transient: bool) -> Write:
        if isinstance(rows, Here):
            files = commit.data_files(existing, _sorted(fitted(rows.arrow, arrow_schema(existing)), key))
            return Write(table, self._refs.commit_files(table, self._branch, base, files), transient)
        if (batches := self._engine.ordered(rows, key)) is not None:
            files = commit.data_files(existing, streamed(batches, arrow_schema(existing)))
            return Write(table, self._refs.commit_files(table, self._branch, base, files), transient)
        target, frame = self._start(table, base), self._engine.by_spark(f"table {table} is written").frame(rows)
        self._append(target, frame.sortWithinPartitions(*in_order(key)), exact=metrics.exact(existing, base))
        return self._written(table, transient=transient)

    def upsert(self, node: Node, rows: Rows, changes: Write, located: pa.Table | None, *, only_inserts: bool) -> Write:
        """The base state of an output with a run's changes applied: changed keys deleted, new rows appended, in as few commits as possible.

        Args:
            node: whose output it is.
            rows: the changes.
            changes: its changes table, already written by this attempt.
            located: where rows of these keys lie in the base state (``Reader.located``), if that is known; more keys do no harm.
            only_inserts: no changed key has a row yet, so there is nothing to delete.

        Raises:
            InvariantBroken: a changed key has no row, or more than one.
        """
        columns = [p.name for p in node.columns]
        if isinstance(rows, Here) and (done := self._upsert_here(node.name, rows.arrow, columns, node.key, located)) is not None:
            return done
        logged = self._refs.require(changes.table, changes.snapshot_id)
        text = probe.text_of(logged, changes.snapshot_id, [*node.key, "_op", RUN, "_after"], self._run)
        if (written := self._engine.files(text)) is not None:
            return self._upsert_files(node.name, written, columns, node.key)
        return self._upsert_by_spark(node, changes, located, only_inserts=only_inserts)

    def _upsert_by_spark(self, node: Node, changes: Write, located: pa.Table | None, *, only_inserts: bool) -> Write:
        table, key, columns = node.name, node.key, [p.name for p in node.columns]
        spark, stored = self._engine.by_spark(f"output {table} is written").spark, names.full(self._refs.topology, changes.table)
        this_run = f"(SELECT * FROM {stored} VERSION AS OF {changes.snapshot_id} WHERE _run = {self._run})"
        shown = ", ".join([*(f"_after.`{c}`" for c in columns), RUN, f"_after.{HASH}"])
        flat = spark.sql(f"SELECT {shown} FROM {this_run} WHERE _op <> 'D'")
        existing, base = self._table(table, _flat(arrow_schema(self._refs.require(changes.table, changes.snapshot_id)), columns), key)
        if only_inserts:
            target = self._start(table, base)
        elif located is None:
            target = self._start(table, base)
            same = SPARK.on(key, "c", "o", nulls=node.null_keys)
            spark.sql(f"DELETE FROM {target.name} AS o WHERE EXISTS (SELECT 1 FROM {this_run} c WHERE c._op <> 'I' AND {same})")
        else:
            gone = spark.sql(f"SELECT {', '.join(f'`{k}`' for k in key)} FROM {this_run} WHERE _op <> 'I'").toArrow()
            deletes = self._deletes(existing, base, probe.among(located, key, gone), gone.num_rows)
            self._refs.commit_files(table, self._branch, base, [], deletes)
            target = self._target(table)
        self._append(target, flat.sortWithinPartitions(*in_order(key)), exact=metrics.exact(existing, base))
        return self._written(table)

    def _upsert_files(self, table: str, changes: Rows, columns: Sequence[str], key: Sequence[str]) -> Write:
        """The same from the files of the changes. ``changes``: the key, ``_op``, ``_run`` and ``_after`` of this run's."""
        sql, query = self._engine.sql, self._engine.query
        after = ", ".join(f"{sql.get('_after', c)} AS {sql.name(c)}" for c in (*columns, HASH))
        flat = query(f"SELECT {after}, {RUN} FROM changes WHERE _op <> 'D'", changes=changes)
        existing, base = self._table(table, flat.schema, key)
        deletes, gone = [], query(f"SELECT {sql.names(key)} FROM changes WHERE _op <> 'I'", changes=changes)
        count = int(str(self._engine.one("SELECT count(*) AS rows FROM gone", gone=gone)["rows"]))
        if count:
            stored = self._engine.files(probe.text_of(existing, base, [*key, FILE, POSITION]))
            assert stored is not None  # as those of the changes
            found = query(probe.among_wanted(sql, key, f"{FILE}, {POSITION}"), stored=stored, wanted=gone)
            places = self._engine.ordered(found, [FILE, POSITION])
            assert places is not None
            deletes = self._delete_files(existing, base, places, count)
        batches = self._engine.ordered(flat, key)
        assert batches is not None
        added = commit.data_files(existing, streamed(batches, arrow_schema(existing)))
        return Write(table, self._refs.commit_files(table, self._branch, base, added, deletes))

    def _upsert_here(
        self, table: str, rows: pa.Table, columns: Sequence[str], key: Sequence[str], located: pa.Table | None
    ) -> Write | None:
        """The same without Spark; None if the rows to delete cannot be found in this process."""
        after = rows.filter(pc.not_equal(rows["_op"], "D"))
        values = {name: pc.struct_field(after["_after"], name) for name in (*columns, HASH)}
        flat = pa.table({**{c: values[c] for c in columns}, RUN: after[RUN], HASH: values[HASH]})
        existing, base = self._table(table, flat.schema, key)
        gone = rows.filter(pc.not_equal(rows["_op"], "I")).select(list(key))
        found = probe.having(existing, base, key, gone, [FILE, POSITION]) if located is None else probe.among(located, key, gone)
        if isinstance(found, probe.TooLarge):
            return None
        deletes = self._deletes(existing, base, found, gone.num_rows)
        added = commit.data_files(existing, _sorted(fitted(flat, arrow_schema(existing)), key))
        return Write(table, self._refs.commit_files(table, self._branch, base, added, deletes))

    def _deletes(self, table: Table, base: int, found: pa.Table, keys: int) -> list[DataFile]:
        """Delete files of the rows at these places, which must be one for each of so many keys; none for no keys."""
        return self._delete_files(table, base, iter(found.select([FILE, POSITION]).to_batches()), keys)

    def _delete_files(self, table: Table, base: int, places: Iterator[pa.RecordBatch], keys: int) -> list[DataFile]:
        """The same of places as they come."""
        called = opens(table)
        paths = {called(f.file_path): f.file_path for f in files_of(table, base).data}
        known, written = pa.array(list(paths), pa.string()), pa.array(list(paths.values()), pa.string())
        made, rows = list[DataFile](), 0
        for some in in_parts(places, DELETES):
            rows += some.num_rows
            files = pc.index_in(some[FILE], known)
            made.append(commit.delete_file(table, pa.table({"file_path": written.take(files), "pos": some[POSITION]})))
        if rows != keys:
            raise InvariantBroken(
                f"output {table.name()[-1]!r} has {rows} rows for {keys} changed keys in run {self._run}; nothing was committed",
                expected="exactly one row a key",
                next_step="compare with `rejoin verify`; `rejoin repair` recomputes an output that was edited by hand, unless a key has two rows",
            )
        return made

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
        if not holds(arrow_schema(self._refs.require(table, self._base[table])), schema):
            evolve(self._refs, table, schema)

    def _table(self, table: str, schema: pa.Schema, key: Sequence[str], *, transient: bool = False) -> tuple[Table, int]:
        """The table, made or evolved so that it can hold rows of ``schema``, and the snapshot that this attempt starts from."""
        existing = self._refs.table(table)
        if existing is None:
            metrics = {f"write.metadata.metrics.column.{c}": "full" for c in (*key, RUN) if c in schema.names}
            self._refs.create(table, schema, {**PROPERTIES, **metrics})
        elif not holds(arrow_schema(existing), schema):
            evolve(self._refs, table, schema, transient=transient)
        base = self._base[table] if table in self._base else self._refs.empty(table)
        existing = self._refs.require(table, base)
        return existing, base

    def _start(self, table: str, base: int) -> Branch:
        """Starts this attempt's branch of a table."""
        self._refs.start_branch(table, self._branch, base)
        return self._target(table)

    def _target(self, table: str) -> Branch:
        name = names.full(self._refs.topology, table)
        return Branch(name, f"{name}.branch_{self._branch}")

    def _append(self, target: Branch, rows: "DataFrame", *, exact: bool) -> None:
        """``exact``: the bounds of all files that the branch started from hold; those that Spark writes do."""
        writer = _aligned(rows, self._engine.by_spark("it writes").spark.table(target.table).schema).writeTo(target.name)
        for name, value in metrics.SUMMARY.items() if exact else ():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()

    def _written(self, table: str, *, transient: bool = False) -> Write:
        return Write(table, self._refs.head(table, self._branch), transient)


def in_order(key: Sequence[str]) -> "list[Column]":
    """The columns by which Spark sorts what it writes: nulls behind all values, as where this process writes."""
    from pyspark.sql import functions as F

    return [F.col(f"`{k}`").asc_nulls_last() for k in key]


def _sorted(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    return rows.sort_by([(k, "ascending") for k in key])


def _flat(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns of an output, by those of its changes table."""
    after = schema.field("_after").type
    kinds = {after.field(i).name: after.field(i).type for i in range(after.num_fields)}
    return pa.schema([*((c, kinds[c]) for c in columns), (RUN, pa.int64()), (HASH, kinds[HASH])])


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
