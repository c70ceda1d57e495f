"""Change events in columns are what they are one by one: over random and damaged inputs, in Avro's wire format, Avro container files and Parquet."""

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from column_feed import avro_file, both_ways, event, file_both_ways, in_avro, parquet_file, wire

from rejoin.capture.row_columns import RowColumns
from rejoin.capture.tables import CapturedTable
from rejoin.plan.captured_path import CapturedPath
from rejoin.sources.formats.avro_schema import told
from rejoin.sources.transports.messages import Message


def messages(rng: random.Random, count: int, odd: float, damage: float = 0.0) -> list[Message]:
    found = []
    for i in range(count):
        key, value = event(rng, 100 + i, odd)
        written: list[bytes | None] = [
            wire(1, key),
            None if value is None else wire(rng.choice([2, 2, 2, 3]) if odd else 2, in_avro(value)),
        ]
        for at in (0, 1):
            if rng.random() < damage and (whole := written[at]) is not None:
                written[at] = damaged(whole, rng)
        headers = [("__debezium.oldkey", b'{"id":3}')] if rng.random() < odd / 5 else None
        found.append(Message(7 + 2 * i, *written, headers))
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(5, len(data)) if len(data) > 5 else 0
    return rng.choice(
        [
            data[:at],
            data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
            data[:at] + data[at + 2 :],
            data + data[at : at + 3],
        ]
    )


def bare(rng: random.Random, count: int, odd: float) -> list[dict[str, Any]]:
    found = (event(rng, 100 + i, odd)[1] for i in range(count))
    return [value for value in found if value is not None]


def test_usual_messages_are_all_told_by_columns_with_their_deletes_and_tombstones() -> None:
    assert both_ways(messages(random.Random(1), 400, 0.0)) == (0, 400)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3, 4, 5))])
def test_odd_and_damaged_messages_are_what_they_are_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    slow, count = both_ways(messages(rng, 300, rng.choice([0.01, 0.05, 0.3]), rng.choice([0.0, 0.02])), chunk=rng.choice([20, 100, 400]))
    assert 0 < slow <= count == 300


def test_a_message_that_is_cut_takes_nothing_from_its_neighbours() -> None:
    found = messages(random.Random(2), 100, 0.0)
    found[50] = found[50]._replace(value=wire(2, in_avro(bare(random.Random(3), 3, 0.0)[0]))[:-3])
    assert both_ways(found, chunk=100) == (1, 100)


@pytest.mark.parametrize("odd", [0.0, 0.002, 0.05])
@pytest.mark.parametrize("end", [".avro", ".parquet"])
def test_files_by_columns_are_what_they_are_one_by_one(tmp_path: Path, end: str, odd: float) -> None:
    found = bare(random.Random(f"{end} {odd}"), 300, odd)
    for n, data in enumerate([avro_file(found), avro_file(found, "deflate", 100)] if end == ".avro" else [parquet_file(found)]):
        read = file_both_ways(tmp_path / str(n), data, end)
        assert read is not None and read[1] == len(found) and (read[0] > 0 if odd else read[0] == 0)
        assert odd == 0.05 or read[0] < len(found) / 2


BOOLEAN, OCTETS, W, T, F, N = 16, 17, 20, 25, 701, 1700
TYPES = {
    "id": W, "price": N, "at": T, "late": T, "fine": T, "seen": T, "day": T, "paid": BOOLEAN, "tiny": W, "data": OCTETS, "x": F, "y": F, "n": N, "note": T,
}  # fmt: skip
CAPTURED: dict[str, list[Any]] = {
    "price": ["12.50", "-0.01", "0", "NaN", "1e30"],
    "at": ["2026-01-02 03:04:05.678+00", "infinity"],
    "late": ["2026-01-02 03:04:05", "0044-03-15 00:00:00 BC"],
    "fine": ["1999-12-31 23:59:59+00"],
    "seen": ["2026-01-02 03:04:05+00", "10000-01-01 00:00:00+00"],
    "day": ["2026-01-02", "-infinity"],
    "paid": [True, False],
    "tiny": [1, 0, 7],
    "data": [b"\0\xff", b"", b"__debezium_unavailable_value"],
    "x": ["1.5", "0.1", "1e-07", "-0", "NaN", "-Infinity"],
    "y": ["1.1", "16777216", "Infinity", "1e-30"],
    "n": ["7", "-2147483648", "1.00", "2147483648", "0.5"],
    "note": ["a", "", "12", "__debezium_unavailable_value"],
}


@pytest.mark.parametrize("odd", [False, True])
def test_rows_that_a_capture_landed_are_told_by_columns(tmp_path: Path, *, odd: bool) -> None:
    rng = random.Random(odd)
    rows = [{"id": i, **{c: rng.choice([None, *(found if odd else found[:1])]) for c, found in CAPTURED.items()}} for i in range(300)]
    made = RowColumns(CapturedTable(CapturedPath("shop", "public", "orders"), ("id",), {}, ""), TYPES, 100, 7)
    arrow = {W: pa.int64(), BOOLEAN: pa.bool_(), OCTETS: pa.binary()}
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, arrow.get(type_, pa.string())) for name, type_ in TYPES.items()]))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches([made.envelopes(batch, word) for word in ("first", "true", "last")]), sink)
    read = file_both_ways(tmp_path, sink.getvalue(), ".parquet")
    assert read is not None and read[1] == 900 and (read[0] > 0) is odd


@pytest.mark.parametrize(("end", "data"), [(".avro", avro_file([])), (".parquet", parquet_file([]))])
def test_files_without_records_have_no_events(tmp_path: Path, end: str, data: bytes) -> None:
    assert file_both_ways(tmp_path, data, end) == (0, 0)


@pytest.mark.parametrize("end", [pytest.param(".avro", marks=pytest.mark.slow), ".parquet"])
def test_fault_damaged_files_are_refused_or_read_alike(tmp_path: Path, end: str) -> None:
    assert mutated_files(tmp_path, end, 25) > 5


def mutated_files(root: Path, end: str, count: int) -> int:
    """How many of the files are refused."""
    rng, refused = random.Random(f"{end}{count}"), 0
    for n in range(count):
        found = bare(rng, 30, 0.05)
        data = avro_file(found, rng.choice(["null", "deflate"]), 1_000) if end == ".avro" else parquet_file(found, 10)
        refused += file_both_ways(root / str(n), damaged(data, rng), end, data, rng.choice([7, 50])) is None
    return refused


@pytest.mark.parametrize(
    "schema",
    [
        "long",
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": "1"}}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": 10**12}}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]},
    ],
    ids=["no record", "no fields", "a text as size", "too large", "itself", "an array"],
)
def test_schemas_that_columns_do_not_tell(schema: Any) -> None:
    assert told(schema) is None


@pytest.mark.parametrize(("name", "reads"), [("note", True), ("other", False)])
def test_texts_of_parquet_that_are_no_utf_8_refuse_rows_of_which_they_are_read(tmp_path: Path, name: str, reads: bool) -> None:
    found = pq.read_table(io.BytesIO(parquet_file(bare(random.Random(6), 20, 0.0))))
    after = found["after"].combine_chunks()
    parts = [pa.array([b"\xff\xfe"] * len(after)).view(pa.string()) if of.name == name else after.field(of.name) for of in after.type]
    written = pa.StructArray.from_arrays(parts, [of.name for of in after.type], mask=after.is_null())
    pq.write_table(found.set_column(1, "after", written), sink := io.BytesIO())
    read = file_both_ways(tmp_path, sink.getvalue(), ".parquet")
    assert read is not None and (read[0] > 0) == reads


def test_a_schema_of_keys_that_columns_do_not_tell_is_read_one_by_one() -> None:
    value = wire(2, in_avro(bare(random.Random(4), 3, 0.0)[0]))
    found = [Message(i, wire(4 if i % 2 else 1, {"id": 5}), value) for i in range(40)]
    assert both_ways(found) == (20, 40)


def test_json_among_avro_is_read_as_it_is() -> None:
    found = messages(random.Random(5), 60, 0.0)
    found[7:7] = [
        Message(0, b'{"id":1}', b'{"op":"c","after":{"id":1,"price":"12.50"},"source":{"connector":"postgresql","lsn":3}}'),
        Message(1, None, None),
    ]
    both_ways(found)


@pytest.mark.nightly
def test_fifty_thousand_odd_and_damaged_inputs_of_each_format_are_read_alike(tmp_path: Path) -> None:
    for seed in range(250):
        rng = random.Random(f"wire {seed}")
        both_ways(messages(rng, 200, rng.choice([0.01, 0.05, 0.3]), rng.choice([0.0, 0.05, 0.3])), chunk=rng.choice([20, 100, 400]))
    for end in (".avro", ".parquet"):
        mutated_files(tmp_path / end, end, 1_700)
