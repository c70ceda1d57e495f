"""Reads on the driver: the rows of a snapshot with some keys, or of one run, by DuckDB over the snapshot's Parquet files.

DuckDB skips row groups whose statistics rule the keys out and reads other columns only where a key was found. So a lookup of k keys costs
about k row groups, whatever the size of the table; it needs no Spark job.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, bounds, files_of, holding, overlapping
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.lake.read.duckdb_scan import at_positions, by_id, relation, stored_types
from rejoin.limits import limits
from rejoin.plan.model.durations import MAX_MICROS, MIN_MICROS
from rejoin.statements.dialect import DUCKDB, Dialect, text
from rejoin.statements.own_columns import PLACE, RUN

NEIGHBOURS = 10
"""Rows of a sample that lie side by side. Their keys do, too: so few row groups of other tables are read to look them up."""
TELLING = 4
"""A column tells much of keys if it has a value of its own for every so many of them."""


@dataclass(frozen=True)
class TooLarge:
    """The driver should not do this read, and why."""

    why: str


def text_of(table: Table, snapshot_id: int, columns: Sequence[str], run: int | None = None) -> str:
    """SQL text of the rows of a snapshot (``run``: of those that a run wrote), for DuckDB to compute when it needs them: ``columns``, which may hold
    PLACE.
    """
    found = files_of(table, snapshot_id)
    data = list(found.data) if run is None else [file for file, _ in holding(table, found.data, RUN, [run])]
    if not data:
        types = {**stored_types(table), PLACE: "BIGINT"}
        return f"SELECT {', '.join(f'CAST(NULL AS {types[c]}) AS {DUCKDB.name(c)}' for c in columns)} WHERE false"
    among = found.data if PLACE in columns else ()
    source = relation(table, data, found.deletes, "" if run is None else f"WHERE {DUCKDB.name(RUN)} = {run}", among=among)
    return f"SELECT {DUCKDB.names(columns)} FROM {source.inlined()}"


def among_wanted(sql: Dialect, key: Sequence[str], *, nulls: bool) -> str:
    """SQL text: the rows of ``stored`` whose key is among ``wanted``. ``nulls``: parts of a key may be null, and null is equal to null.

    DuckDB takes a range of ``stored`` (``engines.key_ranges``) over to ``wanted`` through this join, and through no semi join.
    """
    return (
        f"SELECT stored.* FROM stored JOIN (SELECT DISTINCT {sql.names(key)} FROM wanted) AS w ON {sql.on(key, 'stored', 'w', nulls=nulls)}"
    )


def having(
    table: Table, snapshot_id: int, key: Sequence[str], keys: pa.Table, columns: Sequence[str], *, pruned: bool = True
) -> pa.Table | TooLarge:
    """The rows of a snapshot whose ``key`` columns have one of the values in ``keys``: ``columns``, which may hold PLACE.

    All stored versions; rows hidden by position deletes are left out. ``pruned``: only in files that can have them by their bounds.
    """
    if not keys.num_rows:
        return _nothing(table, columns)
    if any(isinstance(table.schema().find_field(k).field_type, FloatType | DoubleType) for k in key):
        return TooLarge("a key column is a floating point number")
    found = files_of(table, snapshot_id)
    few = keys.num_rows <= limits().listed_keys
    wanted = keys.group_by(list(key), use_threads=not few).aggregate([])  # of a composite key: many with one first column
    kept = holding(table, found.data, key[0], wanted[key[0]].to_pylist())
    touched = sum(min(file.record_count, inside * limits().row_group) for file, inside in kept)  # a row group a key at most
    if touched > limits().decoded_rows:
        return TooLarge(f"{touched:,} rows would be decoded")
    clause = _semi_join(key, wanted, _listed(table, key[0], wanted))
    return _read(table, found, [file for file, _ in kept] if pruned else found.data, columns, clause, {"wanted": wanted})


def _semi_join(key: Sequence[str], wanted: pa.Table, *conditions: str) -> str:
    """Keeps the rows whose key is among ``wanted``, null being equal to null, and that meet the conditions.

    DuckDB skips row groups by the values of one column, but not of several at once: so one is asked alone first, the first that tells much, since
    tables are in the order of their keys.
    """
    empty = [k for k in key if wanted[k].null_count == wanted.num_rows]  # asked apart, since that skips row groups
    rest = [k for k in key if k not in empty]
    where = " AND ".join(["true", *(c for c in conditions if c), *(f"stored.{DUCKDB.name(k)} IS NULL" for k in empty)])
    same = DUCKDB.same if any(wanted[k].null_count for k in rest) else "{} = {}".format
    asked = [rest] if rest else []
    values = {k: pc.count_distinct(wanted[k]).as_py() for k in rest if not wanted[k].null_count}
    if len(rest) > 1 and values:
        asked.insert(0, [next((k for k, n in values.items() if n * TELLING >= wanted.num_rows), max(values, key=values.__getitem__))])
    joins = (
        f" SEMI JOIN wanted AS w{i} ON {' AND '.join(same(f'stored.{c}', f'w{i}.{c}') for c in map(DUCKDB.name, columns))}"
        for i, columns in enumerate(asked)
    )
    return f"AS stored{''.join(joins)} WHERE {where}"


def _listed(table: Table, column: str, keys: pa.Table) -> str:
    """The keys once more as a list, which skips row groups where the join does not (``by_id``); else nothing."""
    plain = isinstance(table.schema().find_field(column).field_type, IntegerType | LongType)
    if not by_id(table) or not plain or keys.num_rows > limits().listed_keys or keys[column].null_count:
        return ""
    return f"stored.{DUCKDB.name(column)} IN ({', '.join(map(str, keys[column].to_pylist()))})"


def of_run(table: Table, snapshot_id: int, run: int, columns: Sequence[str], sample: int | None = None) -> pa.Table | TooLarge:
    """The rows of a snapshot that a run wrote; ``sample``: only about so many of them, from any places."""
    found = files_of(table, snapshot_id)
    data = [file for file, _ in holding(table, found.data, RUN, [run])]
    own = sum(file.record_count for file in data if bounds(table, file, RUN) == (run, run))
    if sample is None and own - sum(file.record_count for file in found.deletes) > limits().most:
        return TooLarge(f"{own:,} rows")
    clause = f"WHERE {DUCKDB.name(RUN)} = {run}"
    if sample is not None and own > sample:
        data = random.sample(data, min(len(data), -(-sample // NEIGHBOURS)))
        clause += f" AND {at_positions(table, _places(max(file.record_count for file in data), -(-sample // len(data))))}"
    return _read(table, found, data, columns, clause, {})


def _places(rows: int, wanted: int) -> list[int]:
    """The numbers of about so many of some rows, ``NEIGHBOURS`` one after another."""
    starts = range(0, rows, NEIGHBOURS)
    drawn = random.sample(starts, min(len(starts), -(-wanted // NEIGHBOURS)))
    return [at for start in drawn for at in range(start, start + NEIGHBOURS)]


def within(table: Table, snapshot_id: int, column: str, spans: Sequence[tuple[int, int]], columns: Sequence[str]) -> pa.Table | TooLarge:
    """The rows of a snapshot whose ``column``, a time, is within some spans of microseconds, both ends included; all stored versions."""
    found = files_of(table, snapshot_id)
    kind = arrow_schema(table).field(column).type
    clause = f"WHERE {inside(DUCKDB, column, kind, spans)}"
    return _read(table, found, overlapping(table, found.data, column, spans), columns, clause, {})


def inside(sql: Dialect, column: str, kind: pa.DataType, spans: Sequence[tuple[int, int]]) -> str:
    """The condition that a time is within some spans of microseconds."""
    ends = ((_instant(sql, low, kind), _instant(sql, high, kind)) for low, high in spans)
    return " OR ".join(f"{sql.name(column)} BETWEEN {first} AND {last}" for first, last in ends)


def _instant(sql: Dialect, micros: int, kind: pa.DataType) -> str:
    """A time as SQL text; the first and last of the years 1 to 9999 instead of those beyond."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(max(micros, MIN_MICROS), MAX_MICROS))
    written = (at if kind.tz else at.replace(tzinfo=None)).isoformat(sep=" ")
    return sql.cast(text(written), "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ")


def every(table: Table, snapshot_id: int, columns: Sequence[str]) -> pa.Table | TooLarge:
    """All rows of a snapshot."""
    found = files_of(table, snapshot_id)
    if not limits().small(found.rows):
        return TooLarge(f"{found.rows:,} rows")
    return _read(table, found, found.data, columns, "", {})


def _read(
    table: Table,
    snapshot: SnapshotFiles,
    data: Sequence[DataFile],
    columns: Sequence[str],
    clause: str,
    frames: dict[str, pa.Table],
) -> pa.Table | TooLarge:
    if not data:
        return _nothing(table, columns)
    # DuckDB takes all files to have about as many rows as the first: behind a small one it would take the keys for the larger side of a join, and read everything.
    largest_first = sorted(data, key=lambda file: -file.record_count)
    source = relation(table, largest_first, snapshot.deletes, clause, among=snapshot.data if PLACE in columns else ())
    with cursor() as database:
        for name, frame in frames.items():
            database.register(name, frame)
        sql = f"SELECT {DUCKDB.names(columns)} FROM {source.sql} LIMIT {limits().most + 1}"
        found: pa.Table = database.sql(sql, params=source.parameters).to_arrow_table()
    return TooLarge(f"more than {limits().most:,} rows were found") if found.num_rows > limits().most else found


def _nothing(table: Table, columns: Sequence[str]) -> pa.Table:
    types = {f.name: f.type for f in arrow_schema(table)} | {PLACE: pa.int64()}
    return pa.schema([(c, types[c]) for c in columns]).empty_table()
