"""Snapshots of CSV and JSON lines: every row an upsert at the snapshot's position, every bad row quarantined with its line."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_cases import decode_snapshot, table

from rejoin.errors import InvariantBroken, SchemaDrift, SourceCorrupt
from rejoin.plan.model.sources import SnapshotSource
from rejoin.sources.decode.record_runs import batches
from rejoin.sources.shapes import csv_lines, snapshot
from rejoin.sources.shapes.parquet_file import check_parquet
from rejoin.sources.stored_files import PinnedFile

OF = table("id BIGINT; name STRING; n INT", source=SnapshotSource("x"))


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(r["_line"], r["_code"] or r["_kind"], r["id"], r["name"]) for r in rows]


def test_every_csv_row_is_an_upsert_at_the_ordinal_of_the_snapshot() -> None:
    (row,) = decode_snapshot(OF, "\ufeffid,name,n\r\n1,a,5\r\n")
    assert (row["_kind"], row["id"], row["name"], row["n"], row["_position"], row["_missing"], row["_arrival"]) == (
        "upsert", 1, "a", 5, "00000000000000000007", [], 2 << 13,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,name,n\n1,a\n2,b,3\n", [(2, "BAD_CSV", None, None), (3, "upsert", 2, "b")]),
        ('id,name,n\n1,"a\nb",2\n3,c,x\n', [(2, "upsert", 1, "a\nb"), (4, "VALUE_TYPE", 3, None)]),
        ('id,name,n\n1,"a"x,2\n2,b,3\n', [(2, "BAD_CSV", None, None), (3, "upsert", 2, "b")]),
        ('id,name,n\n1,"a,2\n2,"b",3\n3,c,4\n', [(2, "BAD_CSV", None, None), (4, "upsert", 3, "c")]),
        ('id,name,n\n1,"a,2\n2,z,",b",3\n3,c,4\n', [(2, "BAD_CSV", None, None), (4, "upsert", 3, "c")]),
        ('id,name,n\n1,5" pipe,2\r\n2,"b""\r\n",3\r\n', [(2, "upsert", 1, '5" pipe'), (3, "upsert", 2, 'b"\r\n')]),
        ("id,name,n\n,a,2\n", [(2, "MISSING_KEY", None, None)]),
        ("id,name,n\nx,a,2\n", [(2, "VALUE_TYPE", None, None)]),
        (b"id,name,n\n1,\xff,2\n2,b,3", [(2, "BAD_CSV", None, None), (3, "upsert", 2, "b")]),
        ("id,other\n1,z\n\n2,z", [(2, "upsert", 1, None), (4, "upsert", 2, None)]),
        ("", []),
    ],
    ids=[
        "fields",
        "newline in quotes",
        "quote",
        "open quote",
        "open quote and a comma",
        "quote inside",
        "null key",
        "bad key",
        "not UTF-8",
        "absent column",
        "no bytes",
    ],
)
def test_a_bad_csv_row_is_quarantined_with_the_line_where_it_starts(text: str | bytes, expected: list[Any]) -> None:
    assert brief(decode_snapshot(OF, text)) == expected


@pytest.mark.parametrize("rest", [1_000, 0], ids=["in the middle", "in the last line"])
@pytest.mark.parametrize("end", ["", "\n"], ids=["cut", "with a line end"])
def test_fault_a4_an_unclosed_quote_makes_the_file_corrupt_and_not_one_bad_record_of_all_that_follows(rest: int, end: str) -> None:
    lines = ["id,name,n", "1,a,1", '2,"b,2', *(f"{i},c,3" for i in range(3, 3 + rest))]
    with pytest.raises(SourceCorrupt, match=r"'f\.csv'.*ends inside a quoted field; the record begins on line 3"):
        decode_snapshot(OF, "\n".join(lines) + end)


def test_fault_a4_every_line_is_accounted_for_and_a_record_says_how_many_it_takes() -> None:
    text = 'id,name,n\n1,"a\n\nb",1\n\n2,"c\n3,"d",3\n4,e,4\n\n5,"f\ng",5'
    found = [(r["_line"], r["_lines"], r["_code"] or r["_kind"]) for r in decode_snapshot(OF, text)]
    assert found == [(2, 3, "upsert"), (6, 2, "BAD_CSV"), (8, 1, "upsert"), (10, 2, "upsert")]
    assert sum(lines for _, lines, _ in found) + len(["the header", "line 5", "line 9"]) == len(text.split("\n"))


@pytest.mark.parametrize(("how", "text"), [("csv", "id,name,n\n1,a,1\n2,b,2\n"), ("json", '{"id": 1}\n{"id": 2}\n')])
def test_fault_a4_a_reader_that_loses_a_record_stops_the_run(how: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot if how == "json" else csv_lines, "batches", lambda *args: (batch.slice(1) for batch in batches(*args)))
    with pytest.raises(InvariantBroken, match=r"[23] lines read, [12] accounted for"):
        decode_snapshot(OF, text, how)


def test_the_declared_null_text_is_null_and_the_empty_text_then_is_not() -> None:
    of = table("id BIGINT; name STRING", source=SnapshotSource("x", null="\\N"))
    assert [r["name"] for r in decode_snapshot(of, "id,name\n1,\\N\n2,\n")] == [None, ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": 1, "name": "a"}\n{"id": 2}', [(1, "upsert", 1, "a"), (2, "upsert", 2, None)]),
        ('{"id": 1, "na', [(1, "BAD_JSON", None, None)]),
        ("[1]", [(1, "BAD_JSON", None, None)]),
        (b'{"id": "\xff"}', [(1, "BAD_JSON", None, None)]),
        ('{"id": 1, "id": 2}', [(1, "AMBIGUOUS_JSON", None, None)]),
        ('{"name": "a"}', [(1, "MISSING_KEY", None, None)]),
        ('{"id": 1, "n": 1.5}', [(1, "VALUE_ROUNDED", 1, None)]),
        ('{"id": 1, "name": "\\ud800"}\n{"id": 2}', [(1, "VALUE_TYPE", None, None), (2, "upsert", 2, None)]),
    ],
)
def test_a_json_line_is_an_upsert_or_quarantined(text: str | bytes, expected: list[Any]) -> None:
    assert brief(decode_snapshot(OF, text, "json")) == expected


def test_decimals_in_json_files_are_numbers_and_never_base64() -> None:
    of = table("id BIGINT; v DECIMAL(10,2)", source=SnapshotSource("x"))
    rows = decode_snapshot(of, '{"id":1,"v":"1234"}\n{"id":2,"v":1.10}\n{"id":3,"v":"BNI="}', "json")
    assert [str(r["v"] or r["_code"]) for r in rows] == ["1234.00", "1.10", "VALUE_TYPE"]


@pytest.mark.parametrize(
    ("found", "declared", "fits"),
    [
        (pa.int32(), "BIGINT", True),
        (pa.int64(), "INT", False),
        (pa.float32(), "DOUBLE", True),
        (pa.float64(), "FLOAT", False),
        (pa.decimal128(5, 1), "DECIMAL(10,2)", True),
        (pa.decimal128(10, 2), "DECIMAL(10,1)", False),
        (pa.decimal128(10, 2), "DECIMAL(11,4)", False),
        (pa.string(), "BIGINT", False),
        (pa.int64(), "STRING", False),
        (pa.date32(), "DATE", True),
        (pa.timestamp("ms", "UTC"), "TIMESTAMP", True),
        (pa.timestamp("us"), "TIMESTAMP", False),
        (pa.timestamp("ns", "UTC"), "TIMESTAMP", False),
        (pa.dictionary(pa.int32(), pa.string()), "STRING", True),
    ],
    ids=str,
)
def test_parquet_types_may_only_be_widened(tmp_path: Path, found: pa.DataType, declared: str, fits: bool) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([None], found)}), tmp_path / "a.parquet")
    of = table(f"id BIGINT; v {declared}", source=SnapshotSource("x"))
    with nullcontext() if fits else pytest.raises(SchemaDrift, match=f"'v'.* declared is {re.escape(declared)}"):
        check_parquet(of, pq.ParquetFile(tmp_path / "a.parquet"), PinnedFile("a.parquet", 0, ""))
