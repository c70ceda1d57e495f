"""Bounded looks into tables, for pages: sizes from metadata, counts by DuckDB over a limited number of rows, the newest rows by PyIceberg.

A snapshot never changes, so what was counted of it is kept for the life of the process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake.iceberg.snapshot_files import bounds, files_of
from rejoin.lake.read.duckdb_scan import relation
from rejoin.limits import limits
from rejoin.statements.dialect import DUCKDB
from rejoin.statements.own_columns import RUN


@dataclass(frozen=True)
class SnapshotSize:
    """What metadata says of a snapshot. ``rows``: stored, hidden rows and old versions included; ``live``: not hidden by a delete file."""

    rows: int
    live: int
    bytes: int
    files: int
    delete_files: int


@dataclass(frozen=True)
class Skew:
    """Who has how many subscribers. ``sampled``: one in so many primary keys was counted (1: all); counts are scaled up by it.

    ``top``: (foreign key, live subscribers), most first.
    """

    live: int
    keys: int
    top: tuple[tuple[tuple[Any, ...], int], ...]
    sampled: int


@dataclass(frozen=True)
class Refused:
    """Why something was not counted."""

    why: str


@dataclass(frozen=True)
class Newest:
    """The newest rows of a table, newest first, and whether these are all it has."""

    rows: tuple[dict[str, Any], ...]
    all: bool


@dataclass(frozen=True)
class Added:
    """What a snapshot added; None where its summary does not tell."""

    rows: int | None
    files: int | None
    bytes: int | None


def size(table: Table, snapshot_id: int) -> SnapshotSize:
    """How large a snapshot is."""
    files = files_of(table, snapshot_id)
    every = (*files.data, *files.deletes)
    return SnapshotSize(files.rows, files.live, sum(f.file_size_in_bytes for f in every), len(files.data), len(files.deletes))


def added(table: Table, snapshot_id: int) -> Added | None:
    """What the snapshot added to its table; None if it is beyond retention."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        return None
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties

    def number(name: str) -> int | None:
        return int(summary[name]) if name in summary else None

    # Iceberg leaves a number out when it is zero.
    rows = number("added-records") or (0 if "total-records" in summary else None)
    files = number("added-data-files") or (0 if "total-data-files" in summary else None)
    return Added(rows, files, number("added-files-size") or (0 if "total-files-size" in summary else None))


def live_rows(table: Table, snapshot_id: int, key: Sequence[str]) -> int | Refused:
    """The keys of a versioned table whose newest version is no delete."""
    known = size(table, snapshot_id)
    if known.rows == 0:
        return 0
    if known.rows > limits().counted_rows:
        return Refused(f"more than {limits().counted_rows:,} stored versions are not counted")
    return _live_rows(_Snapshot(table, snapshot_id), tuple(key))


def skew(table: Table, snapshot_id: int, fks: Sequence[str], pks: Sequence[str], most: int = 20) -> Skew | Refused:
    """The foreign keys with most live subscribers, of a subscription table with these key columns."""
    known = size(table, snapshot_id)
    if known.rows == 0:
        return Skew(0, 0, (), 1)
    if known.rows > limits().skew_refused:
        return Refused(f"more than {limits().skew_refused:,} stored subscriptions are not looked at")
    return _skew(_Snapshot(table, snapshot_id), tuple(fks), tuple(pks), most, ceil(known.rows / limits().skew_rows))


def newest(table: Table, snapshot_id: int, most: int) -> Newest | Refused:
    """The rows of the newest runs, at most so many, of a table with a column ``_run``."""
    files = files_of(table, snapshot_id).data
    ranges = sorted(((bounds(table, f, RUN) or (0, 0), f.record_count) for f in files), key=lambda r: -r[0][1])
    low, taken = None, 0
    for (first, _last), count in ranges:
        if taken >= most:
            break
        low, taken = first if low is None else min(low, first), taken + count
    if low is None:
        return Newest((), all=True)
    if taken > limits().newest_file_rows:
        return Refused(f"its newest file has more than {limits().newest_file_rows:,} rows")
    # pydantic hides the positional form from mypy
    condition = GreaterThanOrEqual(RUN, low)  # type: ignore[call-arg, arg-type]
    rows = (
        table.scan(row_filter=condition, snapshot_id=snapshot_id, limit=limits().newest_file_rows)
        .to_arrow()
        .to_pylist(maps_as_pydicts="strict")
    )
    rows.sort(key=lambda r: -int(r[RUN]))
    return Newest(tuple(rows[:most]), all=len(rows) <= most and len(rows) == sum(f.record_count for f in files))


def of_run(table: Table, snapshot_id: int, run: int, most: int) -> list[dict[str, Any]]:
    """Some rows that a run has written, at most so many, of a table with a column ``_run``."""
    condition = EqualTo(RUN, run)  # type: ignore[call-arg, arg-type]  # as above
    rows: list[dict[str, Any]] = (
        table.scan(row_filter=condition, snapshot_id=snapshot_id, limit=most).to_arrow().to_pylist(maps_as_pydicts="strict")
    )
    return rows


class _Snapshot:
    """A snapshot as a key of a cache."""

    def __init__(self, table: Table, snapshot_id: int) -> None:
        self.table, self.id = table, snapshot_id
        self._identity = (str(table.metadata.table_uuid), snapshot_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Snapshot) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """``text`` with ``{rows}`` for the stored rows."""
        files = files_of(self.table, self.id)
        found = relation(self.table, files.data, files.deletes)
        with cursor() as db:
            return db.execute(text.format(rows=found.sql), found.parameters).fetchall()


@lru_cache(maxsize=512)
def _live_rows(snapshot: _Snapshot, key: tuple[str, ...]) -> int:
    newest_op = f"SELECT arg_max(_op, {RUN}) AS op FROM {{rows}} GROUP BY {DUCKDB.names(key)}"
    return int(snapshot.query(f"SELECT count(*) FROM ({newest_op}) WHERE op <> 'D'")[0][0])


@lru_cache(maxsize=64)
def _skew(snapshot: _Snapshot, fks: tuple[str, ...], pks: tuple[str, ...], most: int, one_in: int) -> Skew:
    keys, foreign = ", ".join((*fks, *pks)), ", ".join(fks)
    sample = f"WHERE hash({', '.join(pks)}) % {one_in} = 0"
    newest_op = f"SELECT {keys}, arg_max(_op, {RUN}) AS op FROM {{rows}} {sample} GROUP BY {keys}"
    counted = f"SELECT {foreign}, count(*) AS n FROM ({newest_op}) WHERE op = 'S' GROUP BY {foreign}"
    text = (
        f"WITH c AS ({counted}) SELECT *, (SELECT sum(n) FROM c), (SELECT count(*) FROM c) FROM c ORDER BY n DESC, {foreign} LIMIT {most}"
    )
    rows = snapshot.query(text)
    if not rows:
        return Skew(0, 0, (), one_in)
    top = tuple((tuple(r[: len(fks)]), int(r[len(fks)]) * one_in) for r in rows)
    return Skew(int(rows[0][-2]) * one_in, int(rows[0][-1]), top, one_in)
