"""Files of records: what the cut pins of them, and what they hold."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pinning import DDL, RECORDS, SNAPSHOTS, cut, decode_pin, paths, pinned, put, there
from source_cases import rows, table

from rejoin import Topology, records
from rejoin.errors import (
    SchemaDrift,
    SourceCorrupt,
    SourceFileChanged,
)
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import RecordsSource
from rejoin.plan.pin import Pin


def test_every_file_of_records_is_pinned_once_in_natural_order_and_what_is_no_such_file_is_told(tmp_path: Path) -> None:
    names = ["10.csv", "9.csv", "2026-01-02/1.csv", "archive/1.csv", "README.txt", "11.csv.tmp", "_12.csv"]
    put(tmp_path, **{f"src/{name}": "id,name\n1,a" for name in names})
    first = pinned(RECORDS, tmp_path)
    assert (paths(first), first.kind, first.columns) == (["src/9.csv", "src/10.csv", "src/2026-01-02/1.csv"], "records", ("id", "name"))
    assert there(RECORDS, str(tmp_path)).ignored == ("src/README.txt", "src/archive")
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
    assert len(nothing.parts) == 1 + end.endswith(".gz") and nothing.columns == ()
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


def test_fault_a_time_that_cannot_be_computed_for_one_record_is_nobody_elses(tmp_path: Path) -> None:
    """Of a list of five texts, as a cast to BOOLEAN has it, DuckDB makes a join, outside of TRY."""
    topology = Topology("t")
    time = "CASE WHEN CAST(name AS BOOLEAN) THEN timestamp_seconds(id) END"
    topology.stream("clicks", id="id", schema=DDL.replace(";", ","), source=records("src"), event_time=time, lateness="1 hour").named("out")
    of = compile(topology).table("clicks")
    put(tmp_path, **{"src/1.csv": "id,name\n1,y\n2,perhaps\n"})
    found = rows(decode_pin(of, pinned(of, tmp_path), str(tmp_path)))
    assert [e["event_time"] for e in found] == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None]
