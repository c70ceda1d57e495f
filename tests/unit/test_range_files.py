"""Rows that are laid apart by ranges of a key: every row is in the files of one range, whatever comes and whatever the ranges are."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from rejoin.engines.deferred_relation import Range
from rejoin.operate.verify.range_files import RangeFiles

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("parts", pa.list_(pa.struct([("n", pa.int64())])))])
LOW, HIGH, NULL = [(0, "< 10")], [(0, ">= 10")], [(0, "IS NULL")]
IDS = [3, None, 12, 10, 9, -1, None, 30]


def batch(ids: Sequence[int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": i, "name": f"n{i}", "parts": [{"n": i}] if i else None} for i in ids], SCHEMA)


def laid(folder: Path, bounds: Sequence[list[tuple[int, str]]], *streams: Sequence[pa.RecordBatch]) -> list[list[int | None]]:
    files = RangeFiles(folder, [Range(("key",), of) for of in bounds])
    files.lay("t", ["id"], SCHEMA, lambda _: streams)
    found = [files.rows("t", number, ["parts", "id"]) for number in range(len(files))]
    assert all(rows.schema.names == ["parts", "id"] for rows in found)
    assert all((row["parts"] or [{"n": row["id"]}])[0]["n"] == row["id"] for rows in found for row in rows.to_pylist())
    return [rows["id"].to_pylist() for rows in found]


def test_every_row_is_in_its_range(tmp_path: Path) -> None:
    assert laid(tmp_path, [LOW, HIGH, NULL], [batch(IDS)]) == [[3, 9, -1], [12, 10, 30], [None, None]]


def test_several_streams_have_files_of_their_own(tmp_path: Path) -> None:
    found = laid(tmp_path, [LOW, HIGH], [batch([1, 20]), batch([2])], [batch([3, 30])])
    assert [sorted(rows, key=str) for rows in found] == [[1, 2, 3], [20, 30]]


def test_a_row_of_no_range_is_in_the_last_one(tmp_path: Path) -> None:
    assert laid(tmp_path, [LOW, [(0, "BETWEEN 10 AND 12")]], [batch(IDS)]) == [[3, 9, -1], [None, 12, 10, None, 30]]


def test_a_range_without_rows_is_empty(tmp_path: Path) -> None:
    assert laid(tmp_path, [LOW, HIGH], [batch([3])], []) == [[3], []]


def test_a_table_is_read_once_unless_other_columns_are_asked_for(tmp_path: Path) -> None:
    files, read = RangeFiles(tmp_path, [Range(("key",), LOW), Range(("key",), HIGH)]), list[list[str]]()

    def streams(schema: pa.Schema) -> list[list[pa.RecordBatch]]:
        read.append(schema.names)
        return [[batch(IDS).select(schema.names)]]

    some = pa.schema([SCHEMA.field("id")])
    for schema in (some, some, SCHEMA, some):
        files.lay("t", ["id"], schema, streams)
    assert read == [["id"], SCHEMA.names]
    assert files.rows("t", 0, ["name"])["name"].to_pylist() == ["n3", "n9", "n-1"]
    with pytest.raises(KeyError):
        files.rows("u", 0, ["id"])
