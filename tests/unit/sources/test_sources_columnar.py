"""Parquet files as events: every type, and every row that cannot be applied."""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_cases import table

from rejoin.errors import SourceCorrupt
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.sources.events import events_schema
from rejoin.sources.shapes.parquet_file import ParquetRows
from rejoin.sources.shapes.parquet_rows import decode_parquet, raw_rows
from rejoin.sources.stored_files import PinnedFile

NO_TEXT = b"Z\xfcrich"


def pinned(folder: Path, rows: pa.Table, **options: Any) -> PinnedFile:
    file = folder / "a.parquet"
    pq.write_table(rows, file, **options)
    return of_bytes(file)


def of_bytes(file: Path) -> PinnedFile:
    return PinnedFile(file.name, file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest())


def events(of: Table, file: PinnedFile, folder: Path) -> list[dict[str, Any]]:
    batches = list(decode_parquet(of, 7, ParquetRows(str(folder), file), 3))
    assert all(batch.schema == events_schema(of) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def texts(*values: bytes | None) -> pa.Array:
    """Texts of any bytes."""
    made = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(made), made.buffers())


VALUES: list[tuple[str, pa.Array, list[Any]]] = [
    ("BOOLEAN", pa.array([True, None]), [True, None]),
    ("INT", pa.array([-128, None], pa.int8()), [-128, None]),
    ("BIGINT", pa.array([2**31 - 1, None], pa.int32()), [2**31 - 1, None]),
    ("FLOAT", pa.array([1.5, None], pa.float32()), [1.5, None]),
    ("DOUBLE", pa.array([float("inf"), None], pa.float32()), [float("inf"), None]),
    ("DECIMAL(38,4)", pa.array([Decimal("-0.5"), None], pa.decimal128(3, 1)), [Decimal("-0.5000"), None]),
    ("DECIMAL(38,38)", pa.array([Decimal(10) ** -38, None], pa.decimal128(38, 38)), [Decimal(10) ** -38, None]),
    ("STRING", pa.array(["\U0001f600" * 3_000, None], pa.large_string()), ["\U0001f600" * 3_000, None]),
    ("STRING", pa.array(["a", None]).dictionary_encode(), ["a", None]),
    ("BINARY", pa.array([b"\x00\xff", None], pa.binary(2)), [b"\x00\xff", None]),
    ("BINARY", pa.array([b"", None], pa.large_binary()), [b"", None]),
    ("DATE", pa.array([date(1, 1, 1), date(9999, 12, 31)]), [date(1, 1, 1), date(9999, 12, 31)]),
    (
        "TIMESTAMP",
        pa.array([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_000)], pa.timestamp("ms", "America/New_York")),  # noqa: DTZ001
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)],
    ),
    ("TIMESTAMP_NTZ", pa.array([datetime(1970, 1, 1, microsecond=1), None]), [datetime(1970, 1, 1, microsecond=1), None]),  # noqa: DTZ001
]


@pytest.mark.parametrize(("declared", "values", "expected"), VALUES, ids=[f"{d} from {v.type}" for d, v, _ in VALUES])
def test_every_type_keeps_its_value(tmp_path: Path, declared: str, values: pa.Array, expected: list[Any]) -> None:
    of = table(f"id BIGINT; v {declared}", source=SnapshotSource("x"))
    file = pinned(tmp_path, pa.table({"v": values, "more": [1, 2], "id": pa.array([1, 2], pa.int16())}))
    rows = events(of, file, tmp_path)
    assert [(r["_kind"], r["id"], r["v"], r["_line"], r["_arrival"], r["_position"], r["_code"]) for r in rows] == [
        ("upsert", n, value, n, (3 << 43) + (n << 13), "00000000000000000007", None) for n, value in enumerate(expected, 1)
    ]


def test_int96_is_a_time_without_zone_in_utc(tmp_path: Path) -> None:
    of = table("id BIGINT; v TIMESTAMP", source=SnapshotSource("x"))
    at = datetime(2026, 1, 1, 12, 0, 0, 5)  # noqa: DTZ001
    file = pinned(tmp_path, pa.table({"id": [1], "v": pa.array([at], pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
    assert [r["v"] for r in events(of, file, tmp_path)] == [at.replace(tzinfo=UTC)]


def test_rows_that_cannot_be_applied_are_quarantined_with_their_reason(tmp_path: Path) -> None:
    of = table("id STRING; name STRING; born DATE; at TIMESTAMP_NTZ", source=SnapshotSource("x"))
    days = pa.array([0, -719_163, 2_932_897, None, 0], pa.int32()).view(pa.date32())
    millis = pa.array([253_402_300_800_000, 0, 0, 0, 2**62], pa.int64()).view(pa.timestamp("ms"))
    rows = pa.table(
        {"id": texts(b"a", b"b", None, NO_TEXT, b"e"), "name": texts(b"A", NO_TEXT, b"C", b"D", b"E"), "born": days, "at": millis}
    )
    found = events(of, pinned(tmp_path, rows), tmp_path)
    assert [(r["id"], r["_kind"], r["_code"], r["_reason"]) for r in found] == [
        ("a", "quarantined", "VALUE_RANGE", "column 'at': the date lies outside the years 0001 to 9999"),
        ("b", "quarantined", "VALUE_TYPE", "column 'name': no UTF-8"),
        (None, "quarantined", "MISSING_KEY", "key column id is null"),
        (None, "quarantined", "VALUE_TYPE", "column 'id': no UTF-8"),
        ("e", "quarantined", "VALUE_RANGE", "column 'at': the date lies outside the years 0001 to 9999"),
    ]
    assert all((r["name"], r["born"], r["at"], r["_position"]) == (None,) * 4 for r in found)
    assert [json.loads(r["_raw"])["name"] for r in found] == ["A", "Z\ufffdrich", "C", "D", "E"]


def test_one_bad_row_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    of = table("id BIGINT; n INT", source=SnapshotSource("x"))
    count = 70_000  # more than a batch
    keys = [None if n == 65_999 else n for n in range(count)]
    found = events(of, pinned(tmp_path, pa.table({"id": keys, "n": pa.array(range(count), pa.int32())})), tmp_path)
    assert [(r["_line"], r["_code"], r["_raw"]) for r in found if r["_kind"] != "upsert"] == [
        (66_000, "MISSING_KEY", '{"id":null,"n":65999}')
    ]
    assert [r["id"] for r in found] == keys
    assert [r["n"] for r in found] == [None if n == 65_999 else n for n in range(count)]


def test_rows_are_read_again_as_quarantine_keeps_them(tmp_path: Path) -> None:
    of = table("id BIGINT; v BINARY; at TIMESTAMP; n INT", source=SnapshotSource("x"))
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 70_000)
    file = pinned(tmp_path, pa.table({"at": at, "id": range(70_000), "v": [b"\xff"] * 70_000}))

    def lines(*wanted: int) -> Iterator[tuple[int, dict[str, Any]]]:
        return ((line, json.loads(raw)) for line, raw in raw_rows(of, str(tmp_path), file, wanted))

    row = {"v": "/w==", "at": "2026-01-01 00:00:00.000000Z", "n": None}
    assert list(lines(70_000, 1)) == [(1, {"id": 0, **row}), (70_000, {"id": 69_999, **row})]


def test_flipped_bits_in_pages_with_checksums_are_refused(tmp_path: Path) -> None:
    of = table("id BIGINT; name STRING", source=SnapshotSource("x"))
    rows = pa.table({"id": range(1_000), "name": [f"name {n}" for n in range(1_000)]})
    pinned(tmp_path, rows, write_page_checksum=True, compression="none", use_dictionary=False)
    file = tmp_path / "a.parquet"
    file.write_bytes(file.read_bytes().replace(b"name 500", b"name 5x0"))
    with pytest.raises(SourceCorrupt, match="pages are damaged"):
        events(of, of_bytes(file), tmp_path)
