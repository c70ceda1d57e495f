"""The metadata of a table is parsed only when it has changed, and a change is never missed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.snapshots import Snapshot

from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import commit, data_files
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.iceberg.sql_catalog import CachingSqlCatalog

ROWS = ("t", "rows")


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[], Catalog]:
    """Opens the catalog as another process would: nothing is known there yet."""
    settings = lake_config(str(tmp_path)).pyiceberg_settings()
    first = load_catalog("lake", **settings)
    first.create_namespace("t")
    first.create_table(ROWS, numbers().schema)
    return lambda: load_catalog("lake", **settings)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which metadata files were parsed."""
    found: list[str] = []
    parse = FromInputFile.table_metadata

    def counted(file: Any, *args: Any) -> Any:
        found.append(file.location)
        return parse(file, *args)

    monkeypatch.setattr(FromInputFile, "table_metadata", counted)
    return found


def numbers(*wanted: int) -> pa.Table:
    return pa.table({"n": pa.array(wanted, pa.int64())})


def held(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table(ROWS).scan().to_arrow()["n"].to_pylist())


def test_one_table_is_parsed_once(opened: Callable[[], Catalog], parsed: list[str]) -> None:
    catalog = opened()
    assert isinstance(catalog, CachingSqlCatalog)
    tables = [catalog.load_table(ROWS) for _ in range(5)]
    assert len(parsed) == 1
    assert {(t.name(), t.metadata_location, t.location()) for t in tables} == {(ROWS, parsed[0], tables[0].location())}


def test_what_somebody_else_commits_is_seen_at_once(opened: Callable[[], Catalog]) -> None:
    mine, other = opened(), opened()
    assert held(mine) == []
    other.load_table(ROWS).append(numbers(1))
    assert held(mine) == [1]
    mine.load_table(ROWS).append(numbers(2))
    assert held(other) == [1, 2]


def test_what_this_process_commits_is_what_is_stored(opened: Callable[[], Catalog], parsed: list[str]) -> None:
    catalog = opened()
    catalog.load_table(ROWS).append(numbers(1))
    catalog.load_table(ROWS).manage_snapshots().create_tag(catalog.load_table(ROWS).metadata.snapshots[0].snapshot_id, "one").commit()
    known, before = catalog.load_table(ROWS), len(parsed)
    stored = opened().load_table(ROWS)
    assert len(parsed) == before + 1 == 2, "only the first look and the other process have parsed anything"
    assert (known.metadata_location, known.metadata) == (stored.metadata_location, stored.metadata)


def test_a_table_that_was_made_anew_is_another_one(opened: Callable[[], Catalog]) -> None:
    mine, other = opened(), opened()
    mine.load_table(ROWS).append(numbers(1))
    other.drop_table(ROWS)
    other.create_table(ROWS, numbers().schema)
    assert held(mine) == []


def test_the_manifests_of_a_snapshot_are_listed_once(opened: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened().load_table(ROWS)
    table.append(numbers(1, 2))
    first = table.metadata.current_snapshot_id
    table.append(numbers(3))
    listed, manifests = list[int](), Snapshot.manifests

    def counted(snapshot: Snapshot, io: Any) -> Any:
        listed.append(snapshot.snapshot_id)
        return manifests(snapshot, io)

    monkeypatch.setattr(Snapshot, "manifests", counted)
    second = table.metadata.current_snapshot_id
    assert first is not None and second is not None
    assert [files_of(table, snapshot).rows for snapshot in (first, second, first, second)] == [2, 3, 2, 3]
    assert listed == [first, second]


def test_a_transaction_leaves_the_metadata_that_it_starts_from_as_it_is(opened: Callable[[], Catalog]) -> None:
    table = opened().load_table(ROWS)
    table.append(numbers(1))
    before, base = table.metadata.model_copy(deep=True), table.metadata.current_snapshot_id
    assert base is not None
    started, made = table.metadata, commit(table, "try", base, data_files(table, numbers(2)))
    assert started == before
    assert table.metadata.refs["try"].snapshot_id == made and table.metadata.current_snapshot_id == base
