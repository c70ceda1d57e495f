"""The record of a stored version is found again by its key and position; where it cannot be, that is said."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_cases import event, table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess
from rejoin.sources import record_location as locating
from rejoin.sources.record_location import locate
from rejoin.sources.shapes.debezium.positions import position
from rejoin.sources.shapes.snapshot import position_of
from rejoin.sources.stored_files import pin_file, place
from rejoin.sources.transports.listing import parts_of

FEED = table("id BIGINT; name STRING")
SNAPSHOT = table("id BIGINT; name STRING", source=SnapshotSource("orders"))


def at(lsn: int) -> str:
    return position({"connector": "postgresql", "lsn": lsn}, 1, None)


def pinned(root: Path, *names: str, kind: str = "debezium") -> Pin:
    return Pin(kind, parts_of(pin_file(place(str(root), name)) for name in names), ordinal=1)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(e) + "\n" for e in events)


def test_of_events_that_repeat_a_position_the_last_one_counts_and_blank_lines_are_counted(tmp_path: Path) -> None:
    first = lines(event(after={"id": 1, "name": "a"}, lsn=5), event(after={"id": 1, "name": "b"}, lsn=6))
    (tmp_path / "1.jsonl").write_text("\n" + first + lines(event(key={"id": 2}, after={"id": 2, "name": "b"}, lsn=6)))
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress(lines(event(after={"id": 1, "name": "a"}, lsn=5)).encode()))
    pin = pinned(tmp_path, "1.jsonl", "2.jsonl.gz")
    found = [locate(FEED, pin, SourceAccess(str(tmp_path)), {"id": key}, at(lsn)) for key, lsn in ((1, 5), (1, 6), (2, 6))]
    assert found == [("2.jsonl.gz", 1), ("1.jsonl", 3), ("1.jsonl", 4)]
    assert locate(FEED, pin, SourceAccess(str(tmp_path)), {"id": 2}, at(5)) == "its run's files have no such record"


def test_a_tombstone_and_a_truncate_are_found_though_they_have_no_position_or_no_key(tmp_path: Path) -> None:
    tombstone = {"key": json.dumps({"id": 1}), "value": None, "headers": {}}
    (tmp_path / "1.jsonl").write_text(lines(event(after={"id": 1, "name": "a"}, lsn=5), tombstone, event("t", lsn=9, key={})))
    pin = pinned(tmp_path, "1.jsonl")
    assert locate(FEED, pin, SourceAccess(str(tmp_path)), {"id": 1}, at(5) + "~") == ("1.jsonl", 2)
    assert locate(FEED, pin, SourceAccess(str(tmp_path)), {"id": 1}, at(9)) == ("1.jsonl", 3)


def test_of_equal_rows_of_a_snapshot_the_first_one_counts_and_quoted_line_ends_are_lines(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text('id,name\n1,"a\nb"\n2,c\n2,c\n')
    pin = pinned(tmp_path, "1.csv", kind="snapshot")
    found = [locate(SNAPSHOT, pin, SourceAccess(str(tmp_path)), {"id": key}, position_of(1)) for key in (1, 2)]
    assert found == [("1.csv", 2), ("1.csv", 4)]


KEYS: dict[str, tuple[str, Any, str]] = {
    "a decimal": ("DECIMAL(10,2)", Decimal("1.50"), "1.50"),
    "a date": ("DATE", date(2024, 2, 29), "2024-02-29"),
    "an instant": ("TIMESTAMP", datetime(2024, 1, 1, 12, tzinfo=UTC), "2024-01-01T12:00:00Z"),
    "a wall clock": ("TIMESTAMP_NTZ", datetime(2024, 1, 1, 12), "2024-01-01T12:00:00"),  # noqa: DTZ001
    "bytes": ("BINARY", b"\x00\xff", "AP8="),
    "a truth": ("BOOLEAN", True, "true"),
    "an odd text": ("STRING", "a, 'b' \"ø", '"a, \'b\' ""ø"'),
}


@pytest.mark.parametrize(("type_", "value", "text"), KEYS.values(), ids=KEYS)
def test_a_key_of_any_type_is_found_in_csv_and_in_parquet(tmp_path: Path, type_: str, value: object, text: str) -> None:
    of = table(f"odd key {type_}".replace("odd key", "k") + "; n INT", key="k,n", source=SnapshotSource("x"))
    (tmp_path / "1.csv").write_text(f"k,n\n{text},1\n{text},2\n")
    rows = pa.table({"k": pa.array([value] * 2, locating.arrow_type(type_)), "n": pa.array([1, 2], pa.int32())})
    pq.write_table(rows, tmp_path / "1.parquet")
    for name, line in (("1.csv", 3), ("1.parquet", 2)):
        pin = pinned(tmp_path, name, kind="snapshot")
        assert locate(of, pin, SourceAccess(str(tmp_path)), {"k": value, "n": 2}, position_of(1)) == (name, line)


def gone(file: Path) -> None:
    file.unlink()


def longer(file: Path) -> None:
    file.write_text(file.read_text() + "3,c\n")


def edited(file: Path) -> None:
    file.write_text(file.read_text().replace("a", "b"))


@pytest.mark.parametrize(("damage", "why"), [(gone, "is gone"), (longer, "another size"), (edited, "other bytes")])
def test_a_file_that_is_not_what_was_read_tells_no_line(tmp_path: Path, damage: Callable[[Path], None], why: str) -> None:
    (tmp_path / "1.csv").write_text("id,name\n1,a\n")
    pin = pinned(tmp_path, "1.csv", kind="snapshot")
    damage(tmp_path / "1.csv")
    found = locate(SNAPSHOT, pin, SourceAccess(str(tmp_path)), {"id": 1}, position_of(1))
    assert isinstance(found, str) and why in found


def test_a_large_input_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1.csv").write_text("id,name\n1,a\n")
    pin = pinned(tmp_path, "1.csv", kind="snapshot")
    monkeypatch.setattr(locating, "is_small", lambda _: False)
    assert "not read again" in str(locate(SNAPSHOT, pin, SourceAccess(str(tmp_path)), {"id": 1}, position_of(1)))


def test_a_parquet_file_that_is_damaged_tells_no_line(tmp_path: Path) -> None:
    of: Table = table("id BIGINT", source=SnapshotSource("x"))
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no such thing")
    found = locate(of, pinned(tmp_path, "1.parquet", kind="snapshot"), SourceAccess(str(tmp_path)), {"id": 1}, position_of(1))
    assert found == "source '1.parquet' cannot be read"
