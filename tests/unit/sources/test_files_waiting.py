"""What the cut finds and pins of change events and snapshots, with real files."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pinning import DDL, EVENTS, RECORDS, SNAPSHOTS, cut, decode_pin, paths, pinned, put, there
from source_cases import table

from rejoin.errors import (
    RejoinError,
    SchemaDrift,
    SnapshotEmpty,
    SnapshotOrder,
    SourceCorrupt,
    SourceFileChanged,
    SourceFileMissing,
    SourceMissing,
)
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.sources import SourceAccess, stored_files
from rejoin.sources.read import events_of_part
from rejoin.sources.stored_files import is_hidden

# --- change events ---------------------------------------------------------------------------------------------------


def test_all_new_event_files_are_pinned_in_path_order_and_unfinished_hidden_and_other_ones_are_not(tmp_path: Path) -> None:
    names = ["b.jsonl", "a.jsonl", "2026-01-02/a.jsonl", "dt=20260103/a.jsonl", "2026/01/04/a.jsonl", "archive/a.jsonl"]
    hidden = ["_a", ".a", "a.tmp", "a.inprogress", "a.jsonl.crc", "_2026-01-01/a.jsonl"]
    put(tmp_path, **{f"src/{name}": "x" for name in names + hidden})
    expected = ["2026-01-02/a.jsonl", "2026/01/04/a.jsonl", "a.jsonl", "b.jsonl", "dt=20260103/a.jsonl"]
    assert paths(cut(EVENTS, tmp_path)) == [f"src/{name}" for name in expected]


def test_consumed_files_are_not_read_again_and_a_late_file_with_an_old_name_is(tmp_path: Path) -> None:
    put(tmp_path, **{"src/b": "x"})
    first = pinned(EVENTS, tmp_path)
    assert cut(EVENTS, tmp_path, first, first) is None
    put(tmp_path, **{"src/a": "x"})
    late = pinned(EVENTS, tmp_path, first, first)
    assert paths(late) == ["src/a"] and late.ordinal > first.ordinal


def test_the_events_of_many_small_files_come_in_few_batches(tmp_path: Path) -> None:
    put(
        tmp_path,
        **{
            f"src/{n:03}.jsonl": json.dumps({"op": "c", "after": {"id": n}, "source": {"connector": "postgresql", "lsn": n}})
            for n in range(300)
        },
    )
    pin = pinned(EVENTS, tmp_path)
    [found] = decode_pin(EVENTS, pin, str(tmp_path))
    each = [batch for n in range(300) for batch in events_of_part(EVENTS, pin, n, SourceAccess(str(tmp_path)))]
    assert found["id"].to_pylist() == [*range(300)] and pa.Table.from_batches([found]) == pa.Table.from_batches(each)


def test_a_consumed_file_that_disappeared_is_fine_and_one_that_grew_is_not(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a": "x", "src/b": "x"})
    first = pinned(EVENTS, tmp_path)
    (tmp_path / "src/a").unlink()
    assert cut(EVENTS, tmp_path, first, first) is None
    put(tmp_path, **{"src/b": "xy"})
    with pytest.raises(SourceFileChanged, match="src/b"):
        cut(EVENTS, tmp_path, first, first)


def test_fault_a_consumed_file_that_is_moved_away_while_the_cut_looks_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, **{"src/a": "x"})
    first = pinned(EVENTS, tmp_path)
    put(tmp_path, **{"src/b": "x"})

    def then_moved(name: str) -> bool:
        (tmp_path / "src/a").unlink(missing_ok=True)
        return is_hidden(name)

    monkeypatch.setattr(stored_files, "is_hidden", then_moved)
    assert paths(cut(EVENTS, tmp_path, first, first)) == ["src/b"]
    assert not (tmp_path / "src/a").exists(), "it was moved"


def test_fault_a_link_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a": "x"})
    (tmp_path / "src/b").symlink_to(tmp_path / "gone")
    with pytest.raises(SourceFileMissing, match="src/b"):
        cut(EVENTS, tmp_path)


def test_a_source_of_events_may_be_one_file(tmp_path: Path) -> None:
    put(tmp_path, src="x")
    assert paths(cut(EVENTS, tmp_path)) == ["src"]


@pytest.mark.parametrize("of", [EVENTS, SNAPSHOTS, RECORDS], ids=["events", "snapshot", "records"])
def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path, of: Table) -> None:
    with pytest.raises(SourceMissing, match="'src'"):
        cut(of, tmp_path)


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_only_the_newest_snapshot_is_taken_and_the_skipped_ones_are_counted(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name\n1,a", "src/2.csv": "id,name\n1,b", "src/README.txt": ""})
    first = pinned(SNAPSHOTS, tmp_path)
    assert (paths(first), first.ordinal, first.superseded, first.columns) == (["src/2.csv"], 2, 1, ("id", "name"))
    assert cut(SNAPSHOTS, tmp_path, first) is None
    put(tmp_path, **{f"src/{i}.csv": "id,name\n1,b" for i in (3, 4, 5)})
    later = pinned(SNAPSHOTS, tmp_path, first)
    assert (paths(later), later.ordinal, later.superseded) == (["src/5.csv"], 5, 2)


def test_a_directory_of_files_is_one_snapshot_and_an_unfinished_one_is_not_there_yet(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1/a.csv": "id,name\n1,a", "src/1/b.csv": "id,name\n2,a", "src/1/_SUCCESS": ""})
    put(tmp_path, **{"src/2/a.csv": "id,name\n1,a", "src/2/_temporary/x": "", "src/3/a.csv": "id", "src/3/b.csv.tmp": ""})
    put(tmp_path, **{"src/4.csv._COPYING_": "id"})
    assert paths(cut(SNAPSHOTS, tmp_path)) == ["src/1/a.csv", "src/1/b.csv"]


def test_a_single_file_is_a_new_snapshot_when_its_bytes_change(tmp_path: Path) -> None:
    of = table(DDL, source=SnapshotSource("all.csv"))
    put(tmp_path, **{"all.csv": "id,name\n1,a"})
    first = pinned(of, tmp_path)
    assert cut(of, tmp_path, first) is None
    put(tmp_path, **{"all.csv": "id,name\n1,b"})
    assert pinned(of, tmp_path, first).ordinal == first.ordinal + 1


def test_the_snapshot_that_was_applied_must_not_change(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name\n1,a"})
    first = pinned(SNAPSHOTS, tmp_path)
    put(tmp_path, **{"src/1.csv": "id,name\n1,a\n2,b"})
    with pytest.raises(SourceFileChanged):
        cut(SNAPSHOTS, tmp_path, first)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"src/README.txt": ""}, SourceMissing),
        ({"src/1/readme.txt": ""}, SnapshotEmpty),
        ({"src/1.csv": ""}, SnapshotEmpty),
        ({"src/_SUCCESS": "", "src/part-0.csv": "id,name"}, SourceMissing),
        ({"src/1/a.csv": "id,name", "src/1/b.json": "{}"}, SourceCorrupt),
        ({"src/1.csv.gz": gzip.compress(b"id,name\n" * 9)[:12]}, SourceCorrupt),
        ({"src/1.csv": "id,id"}, SourceCorrupt),
        ({"src/1.csv": b"id,n\xe4me\n1,a"}, SourceCorrupt),
        ({"src/1.csv": 'id,"name\n"\n1,a'}, SourceCorrupt),
        ({"src/1.parquet": b"PAR1 cut"}, SourceCorrupt),
        ({"src/1.csv": "name"}, SchemaDrift),
        ({"src/1.jsonl": '{"name": 1}'}, SchemaDrift),
    ],
    ids=[
        "nothing",
        "no data files",
        "no bytes",
        "Spark output",
        "mixed",
        "cut gzip",
        "header",
        "not UTF-8",
        "two lines",
        "cut Parquet",
        "no key",
        "no key in JSON",
    ],
)
def test_a_snapshot_that_cannot_be_taken_whole_is_refused(tmp_path: Path, files: dict[str, str | bytes], error: type[RejoinError]) -> None:
    put(tmp_path, **files)
    with pytest.raises(error):
        cut(SNAPSHOTS, tmp_path)


def test_fault_look_a_declared_column_that_a_snapshot_lacks_is_drift_unless_it_is_declared_as_optional(tmp_path: Path) -> None:
    of = replace(table("id BIGINT; name STRING; later STRING", source=SnapshotSource("src")), optional=("later",))
    put(tmp_path, **{"src/1.csv": "id,name,extra\n1,a,x"})
    first = pinned(of, tmp_path)
    put(tmp_path, **{"src/2.csv": "id,title,extra\n1,a,x"})
    with pytest.raises(SchemaDrift, match=r"lacks: name; it has, not declared \(renamed\?\): title;"):
        cut(of, tmp_path, first)
    put(tmp_path, **{"src/3.csv": "id,name,later\n1,a,b"})
    assert pinned(of, tmp_path, first).columns == ("id", "name", "later")
    put(tmp_path, **{"src/4.csv": "id,Name\n1,a"})
    with pytest.raises(SchemaDrift, match=r"lacks: name; .*: Name;"):
        cut(of, tmp_path)


def test_fault_look_numbers_in_names_of_snapshots_are_compared_by_value(tmp_path: Path) -> None:
    put(tmp_path, **{f"src/{i}.csv": "id,name\n1,a" for i in (8, 9)})
    first = pinned(SNAPSHOTS, tmp_path)
    assert paths(first) == ["src/9.csv"]
    put(tmp_path, **{"src/10.csv": "id,name\n1,b"})
    assert paths(cut(SNAPSHOTS, tmp_path, first)) == ["src/10.csv"]
    put(tmp_path, **{"src/2026-9-1/a.csv": "id,name\n1,b", "src/2026-10-1/a.csv": "id,name\n1,b", "src/2026-10-01.csv.tmp": ""})
    assert paths(cut(SNAPSHOTS, tmp_path, first)) == ["src/2026-10-1/a.csv"]


def test_fault_after_the_path_of_a_source_changed_its_newest_snapshot_is_new(tmp_path: Path) -> None:
    moved = table(DDL, source=SnapshotSource("a"))  # all names in it sort before the name of the old folder
    put(tmp_path, **{"src/9.csv": "id,name\n1,a", "a/1.csv": "id,name\n1,a", "a/2.csv": "id,name\n1,b"})
    last = pinned(SNAPSHOTS, tmp_path)
    first = pinned(moved, tmp_path, last)
    assert paths(first) == ["a/2.csv"] and first.ordinal > last.ordinal
    assert cut(moved, tmp_path, first) is None


@pytest.mark.parametrize("applied", [True, False])
def test_fault_look_two_snapshots_of_which_none_is_newer_stop_the_run_with_both_names(tmp_path: Path, applied: bool) -> None:
    put(tmp_path, **{"src/9.csv": "id,name\n1,a"})
    first = pinned(SNAPSHOTS, tmp_path) if applied else None
    put(tmp_path, **{"src/09.csv": "id,name\n1,b"})
    with pytest.raises(SnapshotOrder, match=r"'0?9.csv' and '0?9.csv' of table 'orders'"):
        cut(SNAPSHOTS, tmp_path, first)


@pytest.mark.parametrize("other", ["part-1.csv.zip", "part-1.parquet.gz", "de/part-2.csv", "de.csv/part-2.csv", "README"])
def test_fault_a_snapshot_with_something_beside_its_files_is_refused_and_says_what(tmp_path: Path, other: str) -> None:
    put(tmp_path, **{"src/5/part-0.csv": "id,name\n1,a", "src/5/_SUCCESS": "", "src/5/.part-0.csv.crc": "", "src/5/_log/x": ""})
    assert paths(cut(SNAPSHOTS, tmp_path)) == ["src/5/part-0.csv"]
    put(tmp_path, **{f"src/5/{other}": "id,name\n2,b"})
    with pytest.raises(SourceCorrupt, match=f"'src/5'.*: {other.split('/', maxsplit=1)[0]}"):
        cut(SNAPSHOTS, tmp_path)


def test_fault_look_files_of_events_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    put(tmp_path, **{"src/9.jsonl": "x", "src/10.jsonl": "x"})
    assert paths(cut(EVENTS, tmp_path)) == ["src/9.jsonl", "src/10.jsonl"]


def test_fault_look_what_is_not_looked_into_is_named(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a.jsonl": "", "src/2026-01-02/more/a.jsonl": "", "src/archive/a.jsonl": "", "src/_x/a.jsonl": ""})
    assert there(EVENTS, str(tmp_path)).ignored == ("src/2026-01-02/more", "src/archive")
    put(tmp_path / "rows", **{"src/1.csv": "id,name\n1,a", "src/2.CSV": "", "src/README.txt": "", "src/3.csv.tmp": ""})
    assert there(SNAPSHOTS, str(tmp_path / "rows")).ignored == ("src/2.CSV", "src/README.txt")


def test_columns_are_found_in_json_and_parquet_too(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.jsonl.gz": gzip.compress(b'{"id": 1}\n{"id": 2, "name": "a"}')})
    first = pinned(SNAPSHOTS, tmp_path)
    assert first.columns == ("id", "name")
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "src/2.parquet")
    assert pinned(SNAPSHOTS, tmp_path, first).columns == ("id", "name")
