"""Many writers of one table at once: each has a branch of its own, and every branch holds its base and what its writer added."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from rejoin.errors import NotComputable
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg import snapshot_files
from rejoin.lake.iceberg.commits import SnapshotContents, data_files, delete_file, refs_of
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.schema_evolution import evolve
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, files_of

WRITERS = 6


@pytest.fixture
def refs(tmp_path: Path) -> Refs:
    made = Refs(lake_config(str(tmp_path)), "t")
    made.ensure_namespace()
    made.create("rows", numbers().schema, {})
    return made


def numbers(*wanted: int) -> pa.Table:
    return pa.table({"n": pa.array(wanted, pa.int64())})


def held(refs: Refs, snapshot: int) -> list[int]:
    return sorted(refs.require("rows", snapshot).scan(snapshot_id=snapshot).to_arrow()["n"].to_pylist())


def base(refs: Refs) -> int:
    empty = refs.empty("rows")
    return refs.commit_files("rows", "base", empty, data_files(refs.require("rows", empty), numbers(1, 2, 3)))


def test_writers_at_once_lose_nothing_of_their_base(refs: Refs) -> None:
    start = base(refs)

    def write(number: int) -> int:
        return refs.commit_files("rows", f"writer_{number}", start, data_files(refs.require("rows", start), numbers(number)))

    with ThreadPoolExecutor(WRITERS) as pool:
        snapshots = list(pool.map(write, range(10, 10 + WRITERS)))
    assert [held(refs, s) for s in snapshots] == [[1, 2, 3, n] for n in range(10, 10 + WRITERS)]


@pytest.mark.parametrize("how", ["append", "rewrite"])
def test_a_commit_that_another_one_overtakes_at_the_last_moment_is_done_again_from_its_base(
    refs: Refs, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = base(refs)
    table = refs.require("rows", start)
    slow, fast = data_files(table, numbers(5)), data_files(table, numbers(4))
    commit_table, calls = type(table.catalog).commit_table, []

    def overtaken(catalog: Any, *args: Any) -> object:
        calls.append(args)
        if len(calls) == 1:
            refs.commit_files("rows", "faster", start, fast)
            raise CommitFailedException("what the SQL catalog says if the table's row has changed since it was read")
        return commit_table(catalog, *args)

    monkeypatch.setattr(type(table.catalog), "commit_table", overtaken)
    if how == "append":
        made = refs.commit_files("rows", "slower", start, slow)
    else:
        made = refs.commit_rewrite("rows", "slower", start, SnapshotContents(SnapshotFiles(files_of(table, start).data_entries, ()), slow))
    assert held(refs, made) == [1, 2, 3, 5]
    assert refs.head("rows", "slower") == made
    assert len(calls) == 3


def test_what_a_commit_keeps_is_what_others_read(refs: Refs) -> None:
    """Manifests that this process has written are not read again; whoever reads them finds the same."""
    start = base(refs)
    table = refs.require("rows", start)
    place = pa.table({"file_path": [files_of(table, start).data[0].file_path], "pos": pa.array([1], pa.int64())})
    made = refs.commit_files("rows", "more", start, data_files(table, numbers(4)), [delete_file(table, place)])
    table = refs.require("rows", made)
    known = contents(table, made)
    snapshot_files._LISTS.clear(), snapshot_files._FILES.clear(), snapshot_files._MANIFESTS.clear()
    clear_manifest_cache()
    assert contents(table, made) == known
    assert held(refs, made) == [1, 3, 4]


def test_a_table_is_begun_in_one_commit(refs: Refs) -> None:
    first = refs.empty("rows")
    begun = refs.require("rows", first)
    assert [e.metadata_file for e in begun.metadata.metadata_log] == [begun.metadata.metadata_log[0].metadata_file]
    assert {name: ref.snapshot_id for name, ref in begun.refs().items()} == {"main": first, "empty": first}
    assert held(refs, first) == []


def test_who_is_late_does_not_show_a_snapshot_that_was_expired_meanwhile(refs: Refs) -> None:
    old = base(refs)
    refs.roll_forward("rows", 1, old, tagged=False)
    new = refs.commit_files("rows", "newer", old, data_files(refs.require("rows", old), numbers(4)))
    refs.roll_forward("rows", 2, new, tagged=True)
    for branch in ("base", "newer"):
        refs._commit("rows", lambda table, name=branch: refs_of(table).remove_branch(name).commit())  # type: ignore[misc]
    assert old in {s.snapshot_id for s in refs.forget("rows", [], lambda: None)}
    before = {name: ref.snapshot_id for name, ref in refs.require("rows", new).refs().items()}
    refs.roll_forward("rows", 1, old, tagged=True)
    assert {name: ref.snapshot_id for name, ref in refs.require("rows", new).refs().items()} == before
    assert before["main"] == new


@pytest.mark.parametrize("day", [2_932_897, -719_163])  # 1 January 10000, 31 December of the year before 1
def test_dates_that_no_bounds_can_tell_of_are_refused_with_the_name_of_their_column(refs: Refs, day: int) -> None:
    days = {"day": pa.array([day, None], pa.int32()).cast(pa.date32()), "good": pa.array([0, 2_932_896], pa.int32()).cast(pa.date32())}
    refs.create("days", pa.table(days).schema, {})
    with pytest.raises(NotComputable, match=r"column day of table t\.days "):
        data_files(refs.require("days", refs.empty("days")), pa.table(days))


def contents(table: Table, snapshot_id: int) -> list[object]:
    """All that the manifests of a snapshot hold."""
    found, snapshot = files_of(table, snapshot_id), table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    entries = [(e.data_file.spec_id, listed(e)) for e in (*found.data_entries, *found.delete_entries)]
    return [*entries, *map(listed, snapshot_files.manifests_of(snapshot, table.io))]


def listed(record: Record) -> list[object]:
    """All that a record of Iceberg holds; numbers of columns in an order of their own."""
    values = [record[i] for i in range(len(record))]
    return [listed(v) if isinstance(v, Record) else dict(sorted(v.items())) if isinstance(v, dict) else v for v in values]


def test_a_table_that_another_attempt_has_evolved_at_the_last_moment_is_evolved_no_more(
    refs: Refs, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, wanted = refs.require("rows", base(refs)), pa.schema([("n", pa.int64()), ("text", pa.string())])
    commit_table, calls = type(table.catalog).commit_table, []

    def overtaken(catalog: Any, *args: Any) -> object:
        calls.append(args)
        if len(calls) == 1:
            evolve(refs, "rows", wanted, 1)
            raise CommitFailedException("what the SQL catalog says if the table's row has changed since it was read")
        return commit_table(catalog, *args)

    monkeypatch.setattr(type(table.catalog), "commit_table", overtaken)
    evolve(refs, "rows", wanted, 1)
    evolved = refs.table("rows")
    assert evolved is not None
    assert evolved.schema().column_names == ["n", "text"]
    assert len(calls) == 2
