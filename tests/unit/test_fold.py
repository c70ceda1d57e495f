"""What a compaction rewrites on the driver, and what it leaves to Spark."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import Table

from rejoin.lake import fold
from rejoin.lake.commit import delete_file
from rejoin.lake.config import lake_config
from rejoin.lake.files import Files, files_of
from rejoin.lake.layout import BASE_ROWS, MERGE_FILES

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


def folded(table: Table) -> fold.Folded | None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return fold.fold(table, snapshot.snapshot_id, KEY, None)


def test_a_range_too_large_for_the_driver_does_not_keep_it_from_merging_what_runs_added(
    feed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "DRIVER_ROWS", BASE_ROWS - 1)
    done = folded(feed)
    assert done is not None
    assert (done.folded, done.merged) == (0, MERGE_FILES)
    assert [f.record_count for f in done.added] == [10 * MERGE_FILES]
    assert [e.data_file.record_count for e in done.kept.data] == [BASE_ROWS]


def test_a_range_that_has_to_be_folded_and_is_too_large_for_the_driver_is_left_to_spark(
    feed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.append(rows(100, BASE_ROWS // 2))
    assert (done := folded(feed)) is not None and done.folded == 1
    monkeypatch.setattr(fold, "DRIVER_ROWS", BASE_ROWS - 1)
    assert folded(feed) is None


def test_fault_look_a_table_whose_files_are_elsewhere_is_left_alone_until_a_share_of_it_has_changed(
    feed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "native", lambda _: None)
    snapshot = feed.current_snapshot()
    assert snapshot is not None
    files = files_of(feed, snapshot.snapshot_id)
    hidden = delete_file(feed, pa.table({"file_path": [f.file_path for f in files.data[:1]], "pos": [0]}))
    deletes = (ManifestEntry.from_args(data_file=hidden),)
    for rows_changed, folds in ((10, False), (BASE_ROWS // 2, True)):
        feed.append(rows(100, rows_changed))
        current = feed.current_snapshot()
        assert current is not None
        entries = files_of(feed, current.snapshot_id).data_entries
        assert bool(fold._choose(feed, Files(entries, deletes), "_run").folds) == folds
