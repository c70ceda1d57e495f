"""Avro as another library reads it, and a registry that gives ids, refuses, or is away."""

import datetime as dt
import io
import json
import math
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.errors import SetupError, SinkDenied, SinkDown, SinkSchemaRefused
from rejoin.plan.model.plan import Node, View
from rejoin.plan.model.sinks import Format, KafkaSink, Value
from rejoin.sinks.kafka import avro
from rejoin.sinks.kafka.records import Record, Records
from rejoin.sinks.kafka.schema_registry import Registry, avro_encoding

TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("name", pa.string()),
        ("paid", pa.decimal128(20, 4)),
        ("share", pa.float64()),
        ("part", pa.float32()),
        ("born", pa.date32()),
        ("seen", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("photo", pa.binary()),
        ("active", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("lines", pa.list_(pa.struct([("price", pa.decimal128(10, 2)), ("at", pa.struct([("day", pa.date32())]))]))),
        ("Row", pa.struct([("name", pa.string()), ("at", pa.struct([("seen", pa.timestamp("us", "UTC"))]))])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))  # noqa: DTZ001 -- without a time zone on purpose
LINES = st.fixed_dictionaries(
    {"price": st.none() | st.decimals(-1000, 1000, places=2), "at": st.none() | st.fixed_dictionaries({"day": st.none() | st.dates()})}
)
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "small": st.none() | st.integers(-(2**31), 2**31 - 1),
        "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "paid": st.none() | st.decimals(-(10**15), 10**15, places=4),
        "share": st.none() | st.floats(allow_nan=False),
        "part": st.none() | st.floats(width=32, allow_nan=False),
        "born": st.none() | st.dates(),
        "seen": st.none() | TIMES.map(lambda t: t.replace(tzinfo=dt.UTC)),
        "local": st.none() | TIMES,
        "photo": st.none() | st.binary(),
        "active": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
        "lines": st.none() | st.lists(st.none() | LINES, max_size=3),
        "Row": st.none() | st.fixed_dictionaries({"name": st.none() | st.just("n"), "at": st.none() | st.just({"seen": None})}),
        "counts": st.none() | st.dictionaries(st.text("aé", max_size=2), st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
    }
)


def read(schema: avro.Schema, data: bytes) -> Any:
    stream = io.BytesIO(data)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), None)
    assert not stream.read(), "bytes are left over"
    return found


def output(*key: str) -> Node:
    """An output with this key."""
    return Node("orders", View("orders", (), None, key), (), (), None, key, (), published=True)


@given(ROWS)
def test_a_row_reads_back_as_it_was(row: dict[str, object]) -> None:
    schema = avro.value_schema("shop", "orders", TYPES, Value.ROW)
    assert read(schema, avro.encoder(schema)(row)) == row


@given(ROWS, st.none() | ROWS)
def test_an_envelope_reads_back_as_it_was(after: dict[str, object], before: dict[str, object] | None) -> None:
    schema = avro.value_schema("shop", "orders", TYPES, Value.ENVELOPE)
    source = {"connector": "rejoin", "topology": "shop", "table": "orders", "run": 7, "snapshot": False}
    value = {"op": "u", "before": before, "after": after, "source": source}
    assert read(schema, avro.encoder(schema)(value)) == value


@given(st.integers(-(2**63), 2**63 - 1), st.decimals(-(10**15), 10**15, places=4))
def test_a_key_has_no_nulls_and_reads_back(number: int, paid: Decimal) -> None:
    schema = avro.key_schema("shop", output("id", "paid"), TYPES)
    assert schema["fields"][0]["type"] == "long"
    assert read(schema, avro.encoder(schema)({"id": number, "paid": paid})) == {"id": number, "paid": paid}


@given(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.decimals(-(10**15), 10**15, places=4))
def test_parts_of_a_key_that_may_be_null_read_back(number: int | None, paid: Decimal | None) -> None:
    schema = avro.key_schema("shop", replace(output("id", "paid"), null_keys=True), TYPES)
    assert read(schema, avro.encoder(schema)({"id": number, "paid": paid})) == {"id": number, "paid": paid}


def test_not_a_number_stays_one() -> None:
    schema = avro.value_schema("shop", "orders", pa.schema([("share", pa.float64())]), Value.ROW)
    assert math.isnan(read(schema, avro.encoder(schema)({"share": math.nan}))["share"])


class Answers(BaseHTTPRequestHandler):
    """A registry: an id a schema; refuses subjects by name."""

    schemas: list[str]
    seen: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        self.seen.append((self.path, self.headers["Authorization"]))
        status = next((int(s) for s in ("409", "401", "500") if s in self.path), 200)
        if body not in self.schemas:
            self.schemas.append(body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps({"id": self.schemas.index(body) + 300}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[tuple[str, type[Answers]]]:
    answers = type("Mine", (Answers,), {"schemas": [], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    thread.join()
    server.server_close()


def records(url: str, topic: str, value: Value = Value.ROW, **more: str) -> list[Record]:
    types = pa.schema([("id", pa.int64()), ("name", pa.string())])
    sink = KafkaSink("kafka", topic, value, Format.AVRO)
    registry = Registry("orders.kafka", {"schema.registry.url": url, **more})
    encoding = avro_encoding("shop", output("id"), sink, types, registry)
    image = pa.struct(types)
    schema = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_before", image), ("_after", image)])
    changes = [{"_run": 1, "_op": "I", "id": 5, "_before": None, "_after": {"id": 5, "name": "Ann"}}]
    changes.append({"_run": 2, "_op": "D", "id": 5, "_before": {"id": 5, "name": "Ann"}, "_after": None})
    return list(Records("shop", "orders", ("id",), sink, encoding).of(pa.RecordBatch.from_pylist(changes, schema)))


def test_messages_begin_with_a_zero_byte_and_the_schemas_id(registry: tuple[str, type[Answers]]) -> None:
    url, answers = registry
    inserted, deleted = records(url, "shop.orders", **{"schema.registry.basic.auth.user.info": "me:secret"})
    assert [struct.unpack(">bI", m[:5]) for m in (inserted.key, inserted.value or b"")] == [(0, 300), (0, 301)]
    key, value = (json.loads(s) for s in answers.schemas)
    assert read(key, inserted.key[5:]) == {"id": 5}
    assert read(value, (inserted.value or b"")[5:]) == {"id": 5, "name": "Ann"}
    assert deleted.value is None and deleted.key == inserted.key
    assert answers.seen == [(f"/subjects/shop.orders-{side}/versions", "Basic bWU6c2VjcmV0") for side in ("key", "value")]


def test_a_key_alone_needs_no_schema_of_a_value(registry: tuple[str, type[Answers]]) -> None:
    url, answers = registry
    assert records(url, "t", Value.KEY)[0].value == b"" and len(answers.schemas) == 1


def test_a_registry_that_refuses_or_is_away(registry: tuple[str, type[Answers]]) -> None:
    url, _ = registry
    for topic, error in (("409", SinkSchemaRefused), ("401", SinkDenied), ("500", SinkDown)):
        with pytest.raises(error):
            records(url, topic)
    with pytest.raises(SinkDown, match="no answer"):
        records("http://127.0.0.1:1", "t")
    with pytest.raises(SetupError, match=r"schema\.registry\.url"):
        records("", "t")
