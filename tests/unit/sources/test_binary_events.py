"""Change events in Avro container files and Parquet, as Kafka Connect's sinks write them: the same events as the JSON that its converter writes."""

import base64
import io
import json
import random
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packings import zstd
from pinning import cut, decode_pin, paths, pinned, put
from source_cases import rows, table

from rejoin.errors import SourceCorrupt, SourceFileChanged
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources import SourceAccess, read_along
from rejoin.sources.formats.avro_file import avro_file
from rejoin.sources.transports.registry import transport

DDL = "id BIGINT; price DECIMAL(10,2); at TIMESTAMP_NTZ; seen TIMESTAMP; day DATE; on_ BOOLEAN; data BINARY; x DOUBLE; note STRING"
OF = table(DDL, source=DebeziumSource("src"))


def nullable(of: Any) -> list[Any]:
    return ["null", of]


# As Connect's Avro converter makes it of Debezium's: names of types beside those of Avro, ``after`` a reference to the type of ``before``.
ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": nullable({"type": "bytes", "scale": 2, "precision": 10, "connect.version": 1, "connect.parameters": {"scale": "2"},
                                            "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal"}), "default": None},
        {"name": "at", "type": nullable({"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"})},
        {"name": "seen", "type": nullable({"type": "string", "connect.version": 1, "connect.name": "io.debezium.time.ZonedTimestamp"})},
        {"name": "day", "type": nullable({"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"})},
        {"name": "on_", "type": nullable("boolean")},
        {"name": "data", "type": nullable("bytes")},
        {"name": "x", "type": nullable("double")},
        {"name": "note", "type": nullable({"type": "enum", "name": "Note", "symbols": ["LOW", "HIGH"]})},
    ],
    "connect.name": "e6.shop.orders.Value",
}  # fmt: skip
SOURCE = {"type": "record", "name": "Source", "namespace": "io.debezium.connector.postgresql",
          "fields": [{"name": "connector", "type": "string"}, {"name": "lsn", "type": nullable("long")}]}  # fmt: skip
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "e6.shop.orders",
    "fields": [
        {"name": "before", "type": nullable(ROW), "default": None},
        {"name": "after", "type": nullable("Value"), "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": nullable("long")},
    ],
    "connect.name": "e6.shop.orders.Envelope",
}


def row(i: int) -> dict[str, Any]:
    return {
        "id": i, "price": Decimal(i * 137 - 500).scaleb(-2), "at": 1_700_000_000_123_456 + i, "seen": "2024-03-10T07:30:00.5+01:00", "day": 19_700 + i,
        "on_": i % 2 == 0, "data": bytes([i, 255, 0]), "x": [1.5, float("nan"), float("-inf")][i % 3], "note": [None, "LOW", "HIGH"][i % 3],
    }  # fmt: skip


EVENTS = [
    {"before": None, "after": row(i), "source": {"connector": "postgresql", "lsn": 100 + i}, "op": "u" if i % 2 else "c", "ts_ms": 1}
    for i in range(200)
]


def expected() -> list[tuple[Any, ...]]:
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 -- wall clock
    seen = datetime(2024, 3, 10, 6, 30, 0, 500_000, UTC)
    return [
        (r["id"], r["price"], epoch + timedelta(microseconds=r["at"]), seen, date(1970, 1, 1) + timedelta(days=r["day"]), r["on_"], r["data"], repr(r["x"]), r["note"])
        for r in (event["after"] for event in EVENTS)
    ]  # fmt: skip


def seen(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = [column.name for column in OF.columns]
    return [tuple(repr(r[name]) if name == "x" else r[name] for name in names) for r in found]


def avro(events: list[Any] = EVENTS, codec: str = "null", schema: Any = ENVELOPE) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, events, codec=codec, sync_interval=2_000)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_avro_files_of_change_events_are_read_exactly(tmp_path: Path, codec: str) -> None:
    put(tmp_path, **{"src/partition=0/shop.orders+0+0000000000.avro": avro(codec=codec)})
    pin = pinned(OF, tmp_path)
    found = rows(decode_pin(OF, pin, str(tmp_path)))
    assert seen(found) == expected()
    assert {r["_kind"] for r in found} == {"upsert"} and [r["_line"] for r in found] == list(range(1, 201))
    assert [r["_position"] for r in found] == sorted({r["_position"] for r in found})
    again = dict(transport(OF, SourceAccess(str(tmp_path))).raw(pin.parts[0], [3]))
    assert json.loads(again[3])["payload"]["after"]["id"] == 2


def number(n: int) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, "long", n)
    return sink.getvalue()


def repacked(data: bytes, codec: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    """A container file of one block that is not packed, packed as ``fastavro`` does it with libraries that are not here."""
    mark = data[-16:]
    start = data.index(mark) + 16
    stream = io.BytesIO(data[start:])
    count, size = (fastavro.schemaless_reader(stream, "long", None) for _ in range(2))
    assert isinstance(count, int) and isinstance(size, int)
    packed = pack(stream.read(size))
    return data[:start].replace(b"\x08null", number(len(codec)) + codec) + number(count) + number(len(packed)) + packed + mark


def by_snappy(block: bytes) -> bytes:
    return bytes(pa.compress(block, codec="snappy", asbytes=True)) + zlib.crc32(block).to_bytes(4, "big")


@pytest.mark.parametrize(("codec", "pack"), [(b"snappy", by_snappy), (b"zstandard", zstd)], ids=["snappy", "zstandard"])
def test_snappy_and_zstandard_in_avro_are_read_with_their_checksums(tmp_path: Path, codec: bytes, pack: Callable[[bytes], bytes]) -> None:
    put(tmp_path, **{"src/1.avro": repacked(avro(EVENTS[:5]), codec, pack)})
    assert seen(rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))) == expected()[:5]
    put(tmp_path / "bad", **{"src/1.avro": repacked(avro(EVENTS[:5]), codec, lambda block: pack(block)[:-1] + b"\x00")})
    with pytest.raises(SourceCorrupt, match="block 1"):
        rows(decode_pin(OF, pinned(OF, tmp_path / "bad"), str(tmp_path / "bad")))


def parquet(events: list[Any] = EVENTS) -> pa.Table:
    of_row = pa.struct([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us")), ("seen", pa.timestamp("ms", "UTC")), ("day", pa.date32()),
                        ("on_", pa.bool_()), ("data", pa.binary()), ("x", pa.float64()), ("note", pa.dictionary(pa.int32(), pa.string()))])  # fmt: skip
    schema = pa.schema(
        [
            ("before", of_row),
            ("after", of_row),
            ("source", pa.struct([("connector", pa.string()), ("lsn", pa.int64())])),
            ("op", pa.string()),
            ("ts_ms", pa.int64()),
        ]
    )
    instant = datetime(2024, 3, 10, 6, 30, 0, 500_000, UTC)
    written = [
        e | {"after": e["after"] and e["after"] | {"seen": instant}, "before": e["before"] and e["before"] | {"seen": instant}}
        for e in events
    ]
    return pa.Table.from_pylist(written, schema)


@pytest.mark.parametrize("name", ["shop.orders+0+0000000000.snappy.parquet", "1.parquet"])
def test_parquet_files_of_change_events_are_read_exactly(tmp_path: Path, name: str) -> None:
    (tmp_path / "src").mkdir()
    pq.write_table(parquet(), tmp_path / "src" / name, row_group_size=70)
    found = rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))
    assert seen(found) == expected() and [r["_line"] for r in found] == list(range(1, 201))


def test_the_avro_schema_in_a_parquet_file_says_what_its_numbers_are(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = parquet()
    plain = pa.struct([f.with_type(pa.int64()) if f.name == "at" else f.with_type(pa.string()) if f.name == "seen" else f.with_type(pa.int32()) if f.name == "day" else f
                       for f in found.schema.field("after").type])  # fmt: skip
    after = [e["after"] for e in EVENTS]
    schema = (
        found.schema.set(0, pa.field("before", plain))
        .set(1, pa.field("after", plain))
        .with_metadata({"parquet.avro.schema": json.dumps(ENVELOPE)})
    )
    columns = [pa.nulls(len(after), plain), pa.array(after, plain), *found.columns[2:]]
    pq.write_table(pa.table(columns, schema=schema), tmp_path / "src/1.parquet")
    assert seen(rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))) == expected()


def test_keys_in_avro_beside_values_in_avro_tell_of_deletes(tmp_path: Path) -> None:
    of_key = {"type": "record", "name": "Key", "namespace": "e6.shop.orders", "fields": [{"name": "id", "type": "long"}]}
    gone = {"before": None, "after": None, "source": {"connector": "postgresql", "lsn": 900}, "op": "d", "ts_ms": 1}
    put(tmp_path, **{"src/t+0+1.avro": avro([EVENTS[0], gone]), "src/t+0+1.keys.avro": avro([{"id": 0}, {"id": 7}], schema=of_key)})
    found = rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))
    assert [(r["_kind"], r["id"]) for r in found] == [("upsert", 0), ("delete", 7)]


def test_bytes_decimals_and_times_are_those_of_the_json_converter() -> None:
    found = avro_file(avro(EVENTS[4:5]), "f")
    (event,) = found.records(found.blocks)
    assert int.from_bytes(event["after"]["price"], "big", signed=True) == 48 and base64.b64encode(event["after"]["data"]) == b"BP8A"
    assert found.schema["connect.name"] == "e6.shop.orders.Envelope"


# --- damage -----------------------------------------------------------------------------------------------------------


def damaged(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return rng.choice(
        [
            data[:at],
            data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
            data[:at] + data[at + 5 :],
            data + data[at : at + 9],
        ]
    )


def as_parquet(events: list[Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(parquet(events), sink, write_page_checksum=True)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("end", "write"),
    [(".avro", avro), (".avro", lambda e: avro(e, "deflate")), (".parquet", as_parquet)],
    ids=["Avro", "deflate", "Parquet"],
)
def test_fault_damaged_files_are_refused_or_every_record_has_a_fate(tmp_path: Path, end: str, write: Callable[[list[Any]], bytes]) -> None:
    whole, rng, refused = write(EVENTS[:40]), random.Random(end), 0
    for n in range(150):
        put(tmp_path, **{f"{n}/src/1{end}": damaged(whole, rng)})
        try:
            found = rows(decode_pin(OF, pinned(OF, tmp_path / str(n)), str(tmp_path / str(n))))
        except SourceCorrupt:
            refused += 1
            continue
        assert all(r["_kind"] in ("upsert", "delete", "quarantined", "skipped") for r in found)
        assert len(found) <= 40
    assert refused > 50


@pytest.mark.parametrize("end", [".avro", ".parquet"])
def test_fault_text_under_such_a_name_and_a_file_that_changed_are_refused(tmp_path: Path, end: str) -> None:
    put(tmp_path, **{f"src/1{end}": "{}\n"})
    with pytest.raises(SourceCorrupt, match="src/1"):
        rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))
    put(tmp_path, **{f"src/1{end}": avro() if end == ".avro" else as_parquet(EVENTS)})
    pin = pinned(OF, tmp_path)
    put(tmp_path, **{f"src/1{end}": avro(EVENTS[1:]) if end == ".avro" else as_parquet(EVENTS[1:])})
    with pytest.raises(SourceFileChanged):
        rows(read_along(OF, pin, SourceAccess(str(tmp_path))))


def test_fault_avro_under_another_name_is_told_by_its_bytes_and_refused(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.bin": avro()})
    assert paths(cut(OF, tmp_path)) == ["src/1.bin"]
    with pytest.raises(SourceCorrupt, match="Avro"):
        rows(decode_pin(OF, pinned(OF, tmp_path), str(tmp_path)))
