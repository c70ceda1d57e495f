"""What a compaction rewrites on the driver, and what it leaves to Spark."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from limited import limited
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.lake.compact import folding
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.snapshot_files import files_of, newest
from rejoin.lake.locations import native
from rejoin.lake.table_roles import Versions
from rejoin.limits import limits

BASE_ROWS, MERGE_FILES = limits().base_rows, limits().merged_files

KEY = ["_run", "n"]


@pytest.fixture
def feed(tmp_path: Path) -> Table:
    """A feed as a first load and a few runs leave it: all rows of the first load are one key range, that of run 1."""
    catalog = load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    catalog.create_namespace("t")
    feed = catalog.create_table(("t", "feed"), rows(1, 0).schema)
    feed.append(rows(1, BASE_ROWS))
    for run in range(2, 2 + MERGE_FILES):
        feed.append(rows(run, 10))
    return feed


def rows(run: int, count: int) -> pa.Table:
    return pa.table({"_run": pa.array([run] * count, pa.int64()), "n": pa.array(range(count), pa.int64())})


def folded(table: Table) -> folding.Folded | None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return folding.fold(table, snapshot.snapshot_id, KEY, None)


def test_a_range_too_large_for_the_driver_does_not_keep_it_from_merging_what_runs_added(
    feed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, folded_rows=BASE_ROWS - 1)
    done = folded(feed)
    assert done is not None
    assert (done.folded, done.merged) == (0, MERGE_FILES)
    assert [f.record_count for f in done.added] == [10 * MERGE_FILES]
    assert [f.record_count for f in done.kept.data] == [BASE_ROWS]


def test_a_range_that_has_to_be_folded_and_is_too_large_for_the_driver_is_left_to_spark(
    feed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.append(rows(100, BASE_ROWS // 2))
    assert (done := folded(feed)) is not None and done.folded == 1
    limited(monkeypatch, folded_rows=BASE_ROWS - 1)
    assert folded(feed) is None


@pytest.mark.parametrize("at_once", [1, 3])
def test_ranges_are_folded_side_by_side(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, base_rows=100)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 2 * at_once)
    catalog = load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    catalog.create_namespace("t")
    table, runs = catalog.create_table(("t", "feed"), rows(1, 0).schema), (1, 2, 3)
    for run in runs:
        table.append(rows(run, 100))
    table.append(pa.concat_tables([rows(run, 25) for run in runs]))
    together, original = threading.Barrier(at_once, timeout=30), folding.commits.data_files

    def data_files(table: Table, found: Sequence[pa.RecordBatchReader]) -> list[DataFile]:
        together.wait()
        return original(table, found)

    monkeypatch.setattr(folding.commits, "data_files", data_files)
    done = folded(table)
    assert done is not None
    assert (done.folded, done.merged, len(done.kept.data)) == (3, 1, 0)
    found = [pq.read_table(native(file.file_path)) for file in done.added]
    wanted = [pa.concat_tables([rows(run, 100), rows(run, 25)]).sort_by([("_run", "ascending"), ("n", "ascending")]) for run in runs]
    assert [some.to_pylist() for some in found] == [some.to_pylist() for some in wanted]


def test_files_of_few_wide_rows_are_left_as_they_are_once_they_lie_side_by_side(feed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, base_rows=BASE_ROWS + 1, base_bytes=1 << 30)
    snapshot = feed.current_snapshot()
    assert snapshot is not None and folding.todo(feed, snapshot.snapshot_id, KEY)
    limited(monkeypatch, base_rows=BASE_ROWS + 1, base_bytes=min(f.file_size_in_bytes for f in files_of(feed, snapshot.snapshot_id).data))
    done = folded(feed)
    assert done is not None and (done.folded, done.merged, done.added) == (0, 0, [])


VERSIONS = Versions(alive="_op = 'Q'")


def versions(run: int, op: str, keys: range, nulls: int = 0) -> pa.Table:
    """Rows of a table of versions, whose first key column is null in the last of them."""
    first = [*keys, *[None] * nulls]
    count = len(first)
    second = [0] * len(keys) + list(range(nulls))
    columns = [
        pa.array(first, pa.int64()),
        pa.array(second, pa.int64()),
        pa.array([run] * count, pa.int64()),
        pa.array([op] * count, pa.string()),
    ]
    return pa.table(columns, names=["a", "b", "_run", "_op"])


@pytest.mark.parametrize("more", [range(0), range(500, 540)], ids=["nulls alone", "nulls and a range of their own"])
def test_rows_with_a_null_in_the_first_part_of_their_key_are_folded_with_each_other_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: range
) -> None:
    limited(monkeypatch, base_rows=30)
    catalog = load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    catalog.create_namespace("t")
    held = catalog.create_table(("t", "held"), versions(1, "Q", range(0)).schema)
    held.append(versions(1, "Q", range(100)))
    held.append(versions(2, "Q", more, nulls=40))
    held.append(versions(3, "R", range(3), nulls=20))
    held.append(versions(4, "Q", range(1), nulls=10))
    for _ in range(2):
        snapshot = held.current_snapshot()
        assert snapshot is not None
        done = folding.fold(held, snapshot.snapshot_id, ["a", "b"], VERSIONS)
        assert done is not None
        rows = [row for f in (*done.kept.data, *done.added) for row in rows_of(f)]
        newest = {(r["a"], r["b"]): r for r in sorted(rows, key=lambda r: r["_run"])}
        live = {key for key, row in newest.items() if row["_op"] == "Q"}
        assert live == {(n, 0) for n in (*range(100), *more) if n not in (1, 2)} | {(None, n) for n in (*range(10), *range(20, 40))}
        held.append(versions(9, "R", range(100, 200)))
        limited(monkeypatch, fold_share=0.0)


def rows_of(file: DataFile) -> list[dict[str, object]]:
    return list(pq.read_table(native(file.file_path)).to_pylist())


@pytest.fixture
def stream(tmp_path: Path) -> Table:
    """A stream in files of one hour each, the first of them with a record without time."""
    catalog = load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    catalog.create_namespace("t")
    made = catalog.create_table(("t", "stream"), hour(0, []).schema)
    for number in range(4):
        made.append(hour(number, [None] if number == 0 else []))
    return made


def hour(number: int, more: list[int | None]) -> pa.Table:
    times = [number * 3600 * 1_000_000 + minute for minute in range(60)] + more
    return pa.table({"at": pa.array(times, pa.timestamp("us")), "_run": pa.array([number + 1] * len(times), pa.int64())})


HOUR = 3600 * 1_000_000


@pytest.mark.parametrize(
    ("since", "files", "rows"), [(None, 0, 0), (0, 0, 0), (2 * HOUR, 1, 120), (2 * HOUR + 20, 1, 140), (3 * HOUR + 59, 2, 239)]
)
def test_old_records_of_a_stream_go_and_none_without_time(stream: Table, since: int | None, files: int, rows: int) -> None:
    snapshot = stream.current_snapshot()
    assert snapshot is not None
    assert len(folding.old(stream, snapshot.snapshot_id, ["at"], since)) == files
    assert since is None or folding.lets_go(stream, snapshot.snapshot_id, ["at"], since) == (rows > 0)
    done = folding.fold(stream, snapshot.snapshot_id, ["at"], None, since)
    assert done is not None and done.let_go == rows
    assert not done.kept.data  # several files that hold any time are one afterwards
    left = [t for f in done.added for t in pq.read_table(native(f.file_path))["at"].cast(pa.int64()).to_pylist()]
    every = [hour * HOUR + n for hour in range(4) for n in range(60)]
    assert sorted(t for t in left if t is not None) == [t for t in every if since is None or t >= since]
    assert left.count(None) == 1


def test_whole_files_go_where_nothing_is_rewritten(tmp_path: Path) -> None:
    catalog = load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    catalog.create_namespace("t")
    made = catalog.create_table(("t", "stream"), hour(0, []).schema)
    for number in range(2):
        made.append(hour(number, []))
    snapshot = made.current_snapshot()
    assert snapshot is not None
    done = folding.fold(made, snapshot.snapshot_id, ["at"], None, HOUR)
    assert done is not None
    assert (done.let_go, done.folded, [f.record_count for f in done.kept.data]) == (60, 0, [60])
    assert not folding.lets_go(made, snapshot.snapshot_id, ["at"], 0)


def test_a_file_of_records_without_time_does_not_hide_the_newest_time(stream: Table) -> None:
    empty = hour(9, [])
    stream.append(empty.set_column(0, "at", pa.nulls(empty.num_rows, pa.timestamp("us"))))
    snapshot = stream.current_snapshot()
    assert snapshot is not None
    assert newest(stream, files_of(stream, snapshot.snapshot_id), "at") == 3 * 3600 * 1_000_000 + 59
