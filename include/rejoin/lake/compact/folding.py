"""Compaction of one table on the driver: reads the files that ``layout`` names, writes what they come to. Registers and commits nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.engines.key_ranges import side_by_side
from rejoin.lake.compact.layout import NULLS, FileBounds, Layout, layout, to_fold, to_merge
from rejoin.lake.iceberg import column_bounds, commits
from rejoin.lake.iceberg.commits import SnapshotContents
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, before, bounds, exact_files, files_of, overlapping
from rejoin.lake.read.duckdb_scan import listed, opens, relation, scan
from rejoin.lake.table_roles import Versions
from rejoin.limits import limits
from rejoin.plan.model.durations import FOREVER
from rejoin.statements.dialect import DUCKDB
from rejoin.statements.own_columns import RUN


@dataclass(frozen=True)
class Folded(SnapshotContents):
    """What a compaction of a table wrote and what stays; ``folded`` units, ``merged`` deltas, ``let_go`` rows."""

    folded: int = 0
    merged: int = 0
    let_go: int = 0


@dataclass(frozen=True)
class _Choice:
    lay: Layout
    folds: list[int]
    merges: list[int]


def todo(table: Table, snapshot_id: int, key: Sequence[str] | None) -> bool:
    """Whether there is something to compact, or a bound that may not hold. ``key``: as ``fold`` takes it; None for a table that it leaves."""
    if not column_bounds.exact(table, snapshot_id):
        return True
    if key is None:
        return False
    choice = _choose(table, files_of(table, snapshot_id), key[0])
    return bool(choice.folds or choice.merges)


def old(table: Table, snapshot_id: int, key: Sequence[str], since: int | None) -> list[DataFile]:
    """The files of a stream, sorted by time first, whose records are all from before ``since``: these go whole."""
    files = files_of(table, snapshot_id)
    return [] if since is None or files.deletes else before(table, files.data, key[0], since)


def lets_go(table: Table, snapshot_id: int, key: Sequence[str], since: int) -> bool:
    """Whether a compaction drops records from before ``since``: whole files, or single records where it rewrites files in any case."""
    if old(table, snapshot_id, key, since):
        return True
    oldest = overlapping(table, files_of(table, snapshot_id).data, key[0], [(-FOREVER, since - 1)])
    return bool(oldest) and todo(table, snapshot_id, key)


def fold(table: Table, snapshot_id: int, key: Sequence[str], versions: Versions | None, since: int | None = None) -> Folded | None:
    """Rewrites what has to be rewritten; None if that is too much for one process.

    Args:
        table: the table.
        snapshot_id: the state to compact.
        key: the columns by which the rows are sorted; of a versioned table also its key.
        versions: how versions fold; None if every row stays.
        since: of a stream, the time from which on its records stay, in microseconds; None: all do. Older ones go with whole files, and from those
            that are rewritten.
    """
    gone_by = old(table, snapshot_id, key, since)
    files, let_go = exact_files(table, snapshot_id).without(gone_by), sum(f.record_count for f in gone_by)
    choice = _choose(table, files, key[0])
    if not choice.folds and not choice.merges:
        return Folded(files, [], let_go=let_go)
    units = choice.lay.units
    starts = [u.start for u in units] or [None]
    largest = max((units[n].rows for n in choice.folds), default=0) if units else sum(f.record_count for f in files.data)
    if largest > limits().folded_rows:
        return None
    deltas = [files.data[i] for i in choice.lay.deltas]
    writing = _Writing(table, files.deletes, key, versions, since)
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    bases = {n: [files.data[i] for i in units[n].files] if units else [] for n in choice.folds}
    made = side_by_side(lambda n: writing.files([*bases[n], *deltas], [spans[n]], final=True), choice.folds)
    added = [file for some in made for file in some]
    merged = deltas if choice.folds else [files.data[i] for i in choice.merges]
    gone = {f.file_path for some in (*bases.values(), merged) for f in some}
    rest = [span for n, span in enumerate(spans) if n not in choice.folds]
    if merged and rest:
        added += writing.files(merged, rest if choice.folds else [(None, None)], final=False)
    if since is not None:
        let_go += sum(f.record_count for f in files.data if f.file_path in gone) - sum(f.record_count for f in added)
    kept = tuple(e for e in files.data_entries if e.data_file.file_path not in gone)
    deletes = _remaining(table, files, gone)
    stay = () if deletes is not None else files.delete_entries
    return Folded(SnapshotFiles(kept, stay), added, deletes or [], len(choice.folds), len(merged), let_go)


def with_exact_bounds(table: Table, snapshot_id: int) -> Folded:
    """The same files, with the bounds that hold."""
    return Folded(exact_files(table, snapshot_id), [])


def _choose(table: Table, files: SnapshotFiles, column: str) -> _Choice:
    lies = []
    for index, file in enumerate(files.data):
        lies.append(FileBounds(index, file.record_count, *_ends(table, file, column), file.file_size_in_bytes))
    lay = layout(lies)
    if not lay.units:
        return _Choice(lay, [0] if len(lies) > 1 or files.deletes else [], [])
    folds = to_fold(lay.units, _changed(table, files, lay, column)) if lay.deltas or files.deletes else []
    merges = [] if folds else to_merge(lies, lay.deltas)
    return _Choice(lay, folds, merges or ([] if len(files.deletes) < limits().merged_files else list(lay.deltas)))


def _ends(table: Table, file: DataFile, column: str) -> tuple[Any, Any]:
    """The bounds of a column in a file, nulls being behind all values; (None, None) where the metadata cannot tell."""
    known, nulls = bounds(table, file, column), (file.null_value_counts or {}).get(table.schema().find_field(column).field_id, 0)
    if not nulls:
        return known or (None, None)
    if known is None:
        return (NULLS, NULLS) if nulls == file.record_count else (None, None)
    return known[0], NULLS


def _changed(table: Table, files: SnapshotFiles, lay: Layout, column: str) -> list[int]:
    """Delta rows and hidden rows of each unit."""
    counts = [0] * len(lay.units)
    unit_of = {files.data[i].file_path: n for n, unit in enumerate(lay.units) for i in unit.files}
    deltas = relation(table, [files.data[i] for i in lay.deltas], []) if lay.deltas else None
    with cursor() as database:
        if files.deletes:
            sql = f"SELECT file_path, count(*) FROM {scan('hidden')} GROUP BY 1"
            for path, count in database.sql(sql, params={"hidden": listed(files.deletes, opens(table))}).fetchall():
                if path in unit_of:
                    counts[unit_of[path]] += count
        if deltas is not None:
            name = DUCKDB.name(column)
            kind = table.schema().as_arrow().field(column).type
            starts = [u.start for u in lay.units[1:] if u.start != NULLS]
            database.register("starts", pa.table({"start": pa.array(starts, kind), "n": pa.array(range(1, len(starts) + 1), pa.int64())}))
            at = f"ASOF LEFT JOIN starts ON deltas.{name} >= starts.start"
            unit = f"CASE WHEN deltas.{name} IS NULL THEN {len(lay.units) - 1} ELSE coalesce(starts.n, 0) END"
            sql = f"SELECT {unit}, count(*) FROM {deltas.sql} AS deltas {at} GROUP BY 1"
            for number, count in database.sql(sql, params=deltas.parameters).fetchall():
                counts[number] += count
    return counts


@dataclass(frozen=True)
class _Writing:
    """What is the same of everything that a compaction of a table writes."""

    table: Table
    deletes: Sequence[DataFile]
    key: Sequence[str]
    versions: Versions | None
    since: int | None

    def files(self, data: Sequence[DataFile], ranges: Sequence[tuple[Any, Any]], *, final: bool) -> list[DataFile]:
        """Writes the rows of some files in some ranges of the first key column, sorted by key.

        ``final``: no other file holds rows of these ranges, so deletes that nobody needs can go.
        """
        source = relation(self.table, data, self.deletes)
        first, names = DUCKDB.name(self.key[0]), [f.name for f in self.table.schema().fields]
        parameters: dict[str, Any] = dict(source.parameters)
        within = []
        for number, (start, after) in enumerate(ranges):
            parts = [_from(first, start, f"start_{number}", last=after is None), _before(first, after, f"after_{number}")]
            parameters |= {f"start_{number}": start} if start not in (None, NULLS) else {}
            parameters |= {f"after_{number}": after} if after not in (None, NULLS) else {}
            within.append(" AND ".join(filter(None, parts)) or "true")
        rows = f"SELECT * FROM {source.sql} WHERE {' OR '.join(f'({w})' for w in within)}"
        if self.since is not None:
            rows = f"SELECT * FROM ({rows}) WHERE {first} IS NULL OR epoch_us({first}) >= {self.since}"
        if self.versions is not None:
            rows += f" QUALIFY row_number() OVER (PARTITION BY {DUCKDB.names(self.key)} ORDER BY {DUCKDB.name(RUN)} DESC) = 1"
            rows = f"SELECT * FROM ({rows}) WHERE {self.versions.alive if final else 'true'}"
        shown = [_shown(name, self.versions) for name in names]
        sql = f"SELECT {', '.join(shown)} FROM ({rows}) ORDER BY {DUCKDB.names(self.key)}"
        with cursor() as database:
            reader = database.sql(sql, params=parameters).to_arrow_reader(100_000)
            fields = self.table.schema().as_arrow()
            typed = pa.RecordBatchReader.from_batches(fields, (batch.cast(fields) for batch in reader))
            return commits.FilesOf(self.table)(iter(typed), 2)


def _from(column: str, start: Any, parameter: str, *, last: bool) -> str:
    """The condition that a value is in a range that begins at ``start``, or behind it; the last range has the nulls."""
    if start is None:
        return ""
    if start == NULLS:
        return f"{column} IS NULL"
    return f"({column} >= ${parameter} OR {column} IS NULL)" if last else f"{column} >= ${parameter}"


def _before(column: str, after: Any, parameter: str) -> str:
    """The condition that a value is before a range that begins at ``after``."""
    if after is None:
        return ""
    return f"{column} IS NOT NULL" if after == NULLS else f"{column} < ${parameter}"


def _shown(name: str, versions: Versions | None) -> str:
    text = DUCKDB.name(name)
    if versions is not None and name == versions.kept_for_deletes:
        return f"CASE WHEN _op = 'D' THEN {text} END AS {text}"
    return f"NULL AS {text}" if versions is not None and name == versions.forgotten else text


def _remaining(table: Table, files: SnapshotFiles, gone: set[str]) -> list[DataFile] | None:
    """New delete files for what stays, instead of the old ones; None if the old ones can stay."""
    if not files.deletes:
        return None
    with cursor() as database:
        database.register("gone", pa.table({"file_path": pa.array(sorted(gone), pa.string())}))
        sql = f"SELECT DISTINCT file_path, pos FROM {scan('hidden')} ANTI JOIN gone USING (file_path) ORDER BY file_path, pos"
        left = database.sql(sql, params={"hidden": listed(files.deletes, opens(table))}).to_arrow_table()
    return [commits.delete_file(table, left)] if left.num_rows else []
