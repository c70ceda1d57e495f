"""Large files of Parquet, which several streams read: together they say what one says, and what is wrong is told as one tells it."""

import pickle
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pinning import decode_pin, pinned
from source_cases import rows
from test_every_dialect_damaged import table

from rejoin import arrival, changes, parquet, snapshot
from rejoin.errors import RejoinError, SourceFileChanged
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess, read_streams
from rejoin.sources.shapes.parquet_file import ParquetRows
from rejoin.sources.stored_files import PinnedFile

SOURCES = {
    "a snapshot": snapshot("landing"),
    "a snapshot with expressions": snapshot("landing", columns={"total": "coalesce(total, '1')"}),
    "changes": changes("landing/1", order_by="at", deleted="coalesce(name = 'gone', false)"),
    "changes in the order of arrival": changes("landing/1", order_by=arrival(), format=parquet()),
}
GROUP = 50


def orders(chance: random.Random, count: int) -> pa.Table:
    names = [chance.choice(["", "é", "gone", None, "x" * 300, f"n{n}"]) for n in range(count)]
    totals = [chance.choice([None, Decimal(n).scaleb(-2)]) for n in range(count)]
    return pa.table(
        {
            "id": pa.array([None if chance.random() < 0.05 else n for n in range(count)], pa.int64()),
            "name": names,
            "total": pa.array(totals, pa.decimal128(10, 2)),
            "at": pa.array([chance.choice([n, None]) for n in range(count)], pa.int64()),
        }
    )


def put(root: Path, seed: str, *counts: int) -> None:
    """Files of so many rows, in groups of ``GROUP``."""
    (root / "landing" / "1").mkdir(parents=True)
    for number, count in enumerate(counts):
        made = orders(random.Random(seed), count)
        pq.write_table(made, root / "landing" / "1" / f"{number}.parquet", row_group_size=GROUP, write_page_checksum=True)


def streamed(of: Table, pin: Pin, root: Path, most: int) -> list[list[dict[str, Any]]]:
    """The events of each stream; streams go to other processes."""
    streams = pickle.loads(pickle.dumps(read_streams(of, pin, SourceAccess(str(root)), most)))
    return [rows(iter(stream)) for stream in streams]


def by_arrival(streams: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return sorted((row for events in streams for row in events), key=lambda row: row["_arrival"])


@pytest.mark.parametrize("counts", [(330,), (10, 500, 20), (10,) * 9], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_streams_of_pieces_say_together_what_one_says(
    tmp_path: Path, source: str, counts: tuple[int, ...], pytestconfig: pytest.Config
) -> None:
    put(tmp_path, str(pytestconfig.option.hypothesis_seed), *counts)
    of = table(SOURCES[source])
    pin = pinned(of, tmp_path)
    expected = rows(decode_pin(of, pin, str(tmp_path)))
    for most in (1, 2, 7):
        streams = streamed(of, pin, tmp_path, most)
        assert len(streams) <= most and all(streams), "a stream without rows"
        assert by_arrival(streams) == expected


@pytest.mark.parametrize(
    ("counts", "most", "expected"),
    [
        pytest.param((300,), 3, [100, 100, 100], id="one file of six groups"),
        pytest.param((300,), 16, [50] * 6, id="more streams than groups"),
        pytest.param((50,), 4, [50], id="one group"),
        pytest.param((10, 400, 10), 2, [210, 210], id="a large file between small ones"),
        pytest.param((50,) * 4, 2, [100, 100], id="whole files"),
    ],
)
def test_streams_are_of_about_one_size(tmp_path: Path, counts: tuple[int, ...], most: int, expected: list[int]) -> None:
    put(tmp_path, "sizes", *counts)
    of = table(SOURCES["a snapshot"])
    assert [len(events) for events in streamed(of, pinned(of, tmp_path), tmp_path, most)] == expected


def refused(of: Table, pin: Pin, root: Path, most: int) -> set[str]:
    """The codes of the errors of streams, each taken by itself."""
    found = set[str]()
    try:
        streams = read_streams(of, pin, SourceAccess(str(root)), most)
    except RejoinError as error:
        return {error.code}
    for stream in streams:
        try:
            list(stream)
        except RejoinError as error:
            found.add(error.code)
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_fault_bytes_that_change_after_the_cut_are_told_as_that_by_every_stream(tmp_path: Path, source: str) -> None:
    put(tmp_path, "changed", 300)
    of, file = table(SOURCES[source]), tmp_path / "landing" / "1" / "0.parquet"
    pin, data = pinned(of, tmp_path), file.read_bytes()
    for at in (4, len(data) // 3, len(data) * 2 // 3, len(data) - 200, len(data) - 6):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        for most in (1, 6):
            assert refused(of, pin, tmp_path, most) == {"SOURCE_FILE_CHANGED"}


def test_fault_a_file_that_has_fewer_groups_by_now(tmp_path: Path) -> None:
    put(tmp_path, "fewer", 300)
    [part] = pinned(table(SOURCES["a snapshot"]), tmp_path).parts
    (tmp_path / part.id).unlink()
    pq.write_table(orders(random.Random("others"), 60), tmp_path / part.id)
    last = ParquetRows(str(tmp_path), PinnedFile(part.id, part.size, part.place["sha256"]), range(5, 6))
    with pytest.raises(SourceFileChanged):
        list(last.batches(last.opened(), ["id"]))


def test_fault_a_file_that_is_gone_or_short(tmp_path: Path) -> None:
    put(tmp_path, "gone", 300)
    of, file = table(SOURCES["a snapshot"]), tmp_path / "landing" / "1" / "0.parquet"
    pin = pinned(of, tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    assert refused(of, pin, tmp_path, 6) == {"SOURCE_FILE_CHANGED"}
    file.unlink()
    assert refused(of, pin, tmp_path, 6) == {"SOURCE_FILE_MISSING"}


@pytest.mark.parametrize("source", SOURCES)
def test_fault_a_page_that_was_damaged_before_the_cut(tmp_path: Path, source: str) -> None:
    put(tmp_path, "damaged", 300)
    of, file = table(SOURCES[source]), tmp_path / "landing" / "1" / "0.parquet"
    group = pq.ParquetFile(file).metadata.row_group(4).column(0)
    data = bytearray(file.read_bytes())
    data[group.data_page_offset + group.total_compressed_size // 2] ^= 0xFF
    file.write_bytes(data)
    pin = pinned(of, tmp_path)
    for most in (1, 2, 6):
        assert refused(of, pin, tmp_path, most) == {"SOURCE_CORRUPT"}
