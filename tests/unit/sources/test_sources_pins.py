"""What the cut finds and pins, with real files."""

import bz2
import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_cases import rows, table

from rejoin.errors import (
    RejoinError,
    SchemaDrift,
    SnapshotEmpty,
    SnapshotOrder,
    SourceCorrupt,
    SourceFileChanged,
    SourceFileMissing,
    SourceMissing,
    SourceOutsideRoot,
)
from rejoin.plan.model import Table
from rejoin.plan.sources import DebeziumSource, RecordsSource, SnapshotSource
from rejoin.sources import Pin, available, ignored, pins
from rejoin.sources.decode import decode_pin
from rejoin.sources.files import Place, open_pinned

DDL = "id BIGINT; name STRING"
EVENTS, SNAPSHOTS = table(DDL, source=DebeziumSource("src")), table(DDL, source=SnapshotSource("src"))
RECORDS = table(DDL, source=RecordsSource("src"))


def put(root: Path, **files: str | bytes) -> None:
    """``put(root, **{"src/a.csv": "..."})`` writes files below root."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)


def paths(pin: Pin | None) -> list[str] | None:
    return None if pin is None else [file.path for file in pin.files]


def cut(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin | None:
    return available(of, str(root), consumed.files if consumed else (), last)


def pinned(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin:
    pin = cut(of, root, last, consumed)
    assert pin is not None
    return pin


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
    listed = pins.children

    def then_moved(root: str, directory: Place) -> list[Place]:
        found = listed(root, directory)
        (tmp_path / "src/a").unlink()
        return found

    monkeypatch.setattr(pins, "children", then_moved)
    assert paths(cut(EVENTS, tmp_path, first, first)) == ["src/b"]
    assert not (tmp_path / "src/a").exists(), "it was moved"


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


@pytest.mark.parametrize("other", ["part-1.csv.zst", "de/part-2.csv", "de.csv/part-2.csv", "README"])
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
    assert ignored(EVENTS, str(tmp_path)) == ("src/2026-01-02/more", "src/archive")
    put(tmp_path, **{"src/1.csv": "", "src/2.CSV": "", "src/README.txt": "", "src/3.csv.tmp": ""})
    assert ignored(SNAPSHOTS, str(tmp_path)) == ("src/2.CSV", "src/README.txt")


def test_columns_are_found_in_json_and_parquet_too(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.jsonl.gz": gzip.compress(b'{"id": 1}\n{"id": 2, "name": "a"}')})
    first = pinned(SNAPSHOTS, tmp_path)
    assert first.columns == ("id", "name")
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "src/2.parquet")
    assert pinned(SNAPSHOTS, tmp_path, first).columns == ("id", "name")


# --- paths and pinned bytes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc", "link"])
def test_a_path_may_not_leave_the_root(tmp_path: Path, path: str) -> None:
    (tmp_path / "root").mkdir()
    put(tmp_path, **{"out/1.csv": "id"})
    (tmp_path / "root/link").symlink_to(tmp_path / "out")
    with pytest.raises(SourceOutsideRoot):
        cut(table(DDL, source=SnapshotSource(path)), tmp_path / "root")


def test_a_link_among_the_files_may_not_leave_the_root_either(tmp_path: Path) -> None:
    put(tmp_path, **{"out.jsonl": "x", "root/src/a.jsonl": "x"})
    (tmp_path / "root/src/b.jsonl").symlink_to(tmp_path / "out.jsonl")
    with pytest.raises(SourceOutsideRoot):
        cut(EVENTS, tmp_path / "root")


def test_a_uri_is_taken_as_given(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name\n1,a"})
    of = table(DDL, source=SnapshotSource(f"file://{tmp_path}/src"))
    pin = pinned(of, tmp_path / "elsewhere")
    assert paths(pin) == [f"file://{tmp_path}/src/1.csv"] and [r["name"] for r in rows(decode_pin(of, pin, "/"))] == ["a"]
    assert cut(of, tmp_path / "elsewhere", pin) is None


def test_a_pin_survives_json(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name"})
    pin = pinned(SNAPSHOTS, tmp_path)
    assert Pin.from_dict(json.loads(json.dumps(pin.to_dict()))) == pin


@pytest.mark.parametrize(
    ("name", "before", "after", "error"),
    [
        ("a", b"x", None, SourceFileMissing),
        ("a", b"x", b"y", SourceFileChanged),
        ("a.gz", gzip.compress(b"x" * 99), gzip.compress(b"x" * 99)[:-5], SourceFileChanged),
        ("a.gz", gzip.compress(b"x" * 99)[:-5], gzip.compress(b"x" * 99)[:-5], SourceCorrupt),
        ("a.gz", b"no gzip", b"no gzip", SourceCorrupt),
    ],
    ids=["gone", "changed", "changed gzip", "cut gzip", "no gzip"],
)
def test_pinned_bytes_are_verified_while_reading(
    tmp_path: Path, name: str, before: bytes, after: bytes | None, error: type[RejoinError]
) -> None:
    put(tmp_path, **{f"src/{name}": before})
    (file,) = pinned(EVENTS, tmp_path).files
    (tmp_path / "src" / name).unlink()
    if after is not None:
        put(tmp_path, **{f"src/{name}": after})
    with pytest.raises(error, match="src/a"):
        list(open_pinned(str(tmp_path), file))


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a.gz": gzip.compress(b"x" * 50_000_000) + gzip.compress(b"y")})
    (file,) = pinned(EVENTS, tmp_path).files
    assert sum(map(len, open_pinned(str(tmp_path), file))) == 50_000_001


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
        (gzip.compress(b"{}"), "gzip"),
        (bz2.compress(b"{}"), "bzip2"),
        (lzma.compress(b"{}"), "xz"),
        (b"PAR1\x15\x04\x15", "Parquet"),
        (b"Obj\x01\x04\x14avro", "Avro"),
    ],
    ids=["zstd", "gzip", "bzip2", "xz", "Parquet", "Avro"],
)
def test_fault_a_packed_or_binary_file_of_a_feed_is_not_read_as_lines(tmp_path: Path, data: bytes, kind: str) -> None:
    put(tmp_path, **{"src/1": data})
    with pytest.raises(SourceCorrupt, match=f"'src/1'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))
    (tmp_path / "src/1").unlink()
    put(tmp_path, **{"src/2.gz": gzip.compress(data)})
    with pytest.raises(SourceCorrupt, match=rf"'src/2\.gz'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))


@pytest.mark.parametrize("text", [b"", b"x", b"PAR1,PAR2\n", b"BZh1,Obj\n", b"Object\n", b"PK,id\n", "(\u00b5\n".encode()])
def test_text_that_begins_nearly_like_other_files_is_text(tmp_path: Path, text: bytes) -> None:
    put(tmp_path, **{"src/1": text})
    assert b"".join(open_pinned(str(tmp_path), pinned(EVENTS, tmp_path).files[0])) == text


# --- records ---------------------------------------------------------------------------------------------------------


def test_every_file_of_records_is_pinned_once_in_natural_order_and_what_is_no_such_file_is_told(tmp_path: Path) -> None:
    names = ["10.csv", "9.csv", "2026-01-02/1.csv", "archive/1.csv", "README.txt", "11.csv.tmp", "_12.csv"]
    put(tmp_path, **{f"src/{name}": "id,name\n1,a" for name in names})
    first = pinned(RECORDS, tmp_path)
    assert (paths(first), first.kind, first.columns) == (["src/9.csv", "src/10.csv", "src/2026-01-02/1.csv"], "records", ("id", "name"))
    assert ignored(RECORDS, str(tmp_path)) == ("src/README.txt", "src/archive")
    assert cut(RECORDS, tmp_path, first, first) is None
    put(tmp_path, **{"src/8.csv": "id,name\n1,a"})
    late = pinned(RECORDS, tmp_path, first, first)
    assert (paths(late), late.ordinal) == (["src/8.csv"], first.ordinal + 1)
    put(tmp_path, **{"src/9.csv": "id,name\n1,a\n2,b"})
    with pytest.raises(SourceFileChanged, match=r"src/9\.csv"):
        cut(RECORDS, tmp_path, first, first)


def test_records_are_decoded_as_rows_of_snapshots_are_and_a_missing_record_deletes_nothing(tmp_path: Path) -> None:
    of = table(DDL, source=RecordsSource("src", null="-"))
    put(tmp_path, **{"src/1.csv": "id,name\n1,-\nx,b\n", "src/2.csv.gz": gzip.compress(b"name,id\nc,3\n")})
    events = rows(decode_pin(of, pinned(of, tmp_path), str(tmp_path)))
    assert [(e["_kind"], e["id"], e["name"], e["_file"], e["_line"]) for e in events] == [
        ("upsert", 1, None, "src/1.csv", 2),
        ("quarantined", None, None, "src/1.csv", 3),
        ("upsert", 3, "c", "src/2.csv.gz", 2),
    ]
    put(tmp_path, **{"src/1.jsonl": '{"id": 4, "name": "d"}\n'})
    [event] = rows(decode_pin(of, pinned(of, tmp_path, None, pinned_csv(of, tmp_path)), str(tmp_path)))
    assert (event["_kind"], event["id"], event["name"]) == ("upsert", 4, "d")


def pinned_csv(of: Table, root: Path) -> Pin:
    """What a run has read before a file of another format came."""
    (root / "src/1.jsonl").rename(root / "src/1.jsonl.tmp")
    first = pinned(of, root)
    (root / "src/1.jsonl.tmp").rename(root / "src/1.jsonl")
    return first


def test_new_files_of_records_have_the_declared_columns_and_one_format_and_may_be_empty(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": ""})
    empty = pinned(RECORDS, tmp_path)
    assert (paths(empty), empty.columns) == (["src/1.csv"], ())
    put(tmp_path, **{"src/2.csv": "id,Name\n1,a"})
    with pytest.raises(SchemaDrift, match=r"a new file of table 'orders' lacks: name; it has, not declared \(renamed\?\): Name"):
        cut(RECORDS, tmp_path, empty, empty)
    put(tmp_path, **{"src/2.csv": "id,name\n1,a", "src/3.jsonl": '{"id": 1, "name": "a"}'})
    with pytest.raises(SourceCorrupt, match=r"src/3\.jsonl.*'src/2\.csv' has another format"):
        cut(RECORDS, tmp_path, empty, empty)
    put(tmp_path, other="1")
    with pytest.raises(SourceCorrupt, match=r"'other'.*no known format"):
        cut(table(DDL, source=RecordsSource("other")), tmp_path)


@pytest.mark.parametrize("end", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"])
def test_fault_a_file_of_records_with_nothing_in_it_has_no_records_whatever_its_name(tmp_path: Path, end: str) -> None:
    put(tmp_path, **{f"src/1.{end}": b""})
    if end.endswith(".gz"):
        put(tmp_path, **{f"src/2.{end}": gzip.compress(b"")})
    nothing = pinned(RECORDS, tmp_path)
    assert len(nothing.files) == 1 + end.endswith(".gz") and nothing.columns == ()
    assert rows(decode_pin(RECORDS, nothing, str(tmp_path))) == []


def test_fault_files_of_records_beside_empty_ones_are_read_and_have_all_columns(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv.gz": gzip.compress(b""), "src/2.csv.gz": gzip.compress(b"id,name\n1,a\n"), "src/3.csv.gz": b""})
    found = pinned(RECORDS, tmp_path)
    assert found.columns == ("id", "name")
    assert [event["name"] for event in rows(decode_pin(RECORDS, found, str(tmp_path)))] == ["a"]
    put(tmp_path, **{"src/1.csv.gz": gzip.compress(b"id\n1\n")})
    with pytest.raises(SchemaDrift, match="lacks: name"):
        cut(RECORDS, tmp_path)


def test_fault_a_part_of_a_snapshot_that_is_no_gzip_is_damaged_also_if_it_is_empty(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1/a.csv.gz": gzip.compress(b"id,name\n1,a\n"), "src/1/b.csv.gz": b""})
    with pytest.raises(SourceCorrupt, match=r"b\.csv\.gz"):
        rows(decode_pin(SNAPSHOTS, pinned(SNAPSHOTS, tmp_path), str(tmp_path)))
