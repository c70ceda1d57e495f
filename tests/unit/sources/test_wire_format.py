"""Avro on topics: what it says is what the same data says as JSON with its schema; octets that are no datum are refused, and an unknown schema stops."""

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_cases import rows, table

from rejoin.errors import SchemaUnknown
from rejoin.sources.formats.connect_json import of_avro
from rejoin.sources.shapes import registry
from rejoin.sources.transports.kafka.wire_format import WireFormat
from rejoin.sources.transports.messages import Line, Message

ORDERS = table(
    "id BIGINT; total DECIMAL(12,2); born DATE; at TIMESTAMP; late TIMESTAMP; photo BINARY; note STRING; share DOUBLE; paid BOOLEAN"
)
DECIMAL = {
    "type": "bytes",
    "scale": 2,
    "precision": 12,
    "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
    "logicalType": "decimal",
}


def named(type_: str, name: str) -> dict[str, Any]:
    return {"type": type_, "connect.version": 1, "connect.name": name}


def nullable(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None}


ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        nullable("total", DECIMAL),
        nullable("born", named("int", "io.debezium.time.Date")),
        nullable("at", named("long", "io.debezium.time.MicroTimestamp")),
        nullable("late", named("long", "io.debezium.time.Timestamp")),
        nullable("photo", "bytes"),
        nullable("note", "string"),
        nullable("share", "double"),
        nullable("paid", "boolean"),
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.orders",
    "fields": [
        nullable("before", ROW),
        nullable("after", "Value"),
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "namespace": "io.debezium.connector.postgresql",
                "fields": [{"name": "connector", "type": "string"}, nullable("lsn", "long")],
            },
        },
        {"name": "op", "type": "string"},
    ],
    "connect.name": "shop.public.orders.Envelope",
}
LATER_ROW = {**ROW, "fields": [*(field for field in ROW["fields"] if field["name"] != "note"), nullable("city", "string")]}  # type: ignore[index]
LATER = {**ENVELOPE, "fields": [nullable("before", LATER_ROW), *ENVELOPE["fields"][1:]]}  # type: ignore[index]
KEY = {"type": "record", "name": "Key", "namespace": "shop.public.orders", "fields": [{"name": "id", "type": "long"}]}


SCHEMAS = {1: KEY, 2: ENVELOPE, 3: LATER}


class Schemas:
    """A registry."""

    asked = 0

    def schema(self, id_: int) -> Any:
        self.asked += 1
        if id_ not in SCHEMAS:
            raise SchemaUnknown(f"no schema {id_}")
        return SCHEMAS[id_]


def wire(id_: int, value: dict[str, Any]) -> bytes:
    out = io.BytesIO(struct.pack(">bI", 0, id_))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMAS[id_]), value)
    return out.getvalue()


def events(*messages: tuple[bytes | None, bytes | None]) -> list[dict[str, Any]]:
    schemas = Schemas()
    document = WireFormat(schemas).document  # type: ignore[arg-type]
    lines = [Line("t").one(Message(i, document(k), document(v))) for i, (k, v) in enumerate(messages)]
    assert schemas.asked <= len(SCHEMAS)
    return rows(registry.decode(ORDERS, "t/0", 0, iter(enumerate(lines))))


def change(op: str, lsn: int, row: dict[str, Any] | None) -> bytes:
    return wire(2, {"before": None, "after": row, "source": {"connector": "postgresql", "lsn": lsn}, "op": op})


def full(**values: Any) -> dict[str, Any]:
    return {"id": 1, **dict.fromkeys(("total", "born", "at", "late", "photo", "note", "share", "paid")), **values}


def test_values_of_every_type_are_what_they_were() -> None:
    row = full(
        total=Decimal("-1234567890.05"),
        born=19_000,
        at=1_700_000_000_123_456,
        late=1_700_000_000_123,
        photo=b"\x00\xff",
        note='"\n\u2028é',
        share=0.1,
        paid=False,
    )
    upsert, delete, tombstone = events(
        (wire(1, {"id": 1}), change("c", 5, row)), (wire(1, {"id": 1}), change("d", 6, None)), (wire(1, {"id": 1}), None)
    )
    assert {name: upsert[name] for name in row} == {
        "id": 1,
        "total": Decimal("-1234567890.05"),
        "born": date(2022, 1, 8),
        "at": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
        "late": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "photo": b"\x00\xff",
        "note": '"\n\u2028é',
        "share": 0.1,
        "paid": False,
    }
    assert (delete["_kind"], delete["id"], tombstone["_position"]) == ("delete", 1, delete["_position"])


@given(st.decimals(-(10**9), 10**9, places=2), st.integers(-(2**62), 2**62), st.text())
def test_numbers_and_texts_lose_nothing(total: Decimal, key: int, note: str) -> None:
    [event] = events((wire(1, {"id": key}), change("u", 9, full(id=key, total=total, note=note))))
    assert (event["id"], event["total"], event["note"]) == (key, total, note)


GOOD = change("u", 9, full(note="a"))


@pytest.mark.parametrize("bad", [GOOD[:-1], GOOD + b"\x00", GOOD[:6], GOOD[:5], b"\x00\x00", b"\x00"], ids=str)
def test_octets_that_are_no_datum_are_refused_whole(bad: bytes) -> None:
    [event] = events((wire(1, {"id": 1}), bad))
    assert (event["_kind"], event["_code"], event["id"]) == ("quarantined", "BAD_JSON", 1)


def test_a_number_that_json_does_not_have_is_read_as_the_converter_writes_it() -> None:
    [event] = events((wire(1, {"id": 1}), change("u", 9, full(share=float("nan")))))
    assert (event["_kind"], repr(event["share"])) == ("upsert", "nan")


def test_json_beside_avro_is_read_as_it_is() -> None:
    value = {"before": None, "after": {**full(), "note": "j"}, "source": {"connector": "postgresql", "lsn": 3}, "op": "u"}
    [event] = events((b'{"id":1}', json.dumps(value).encode()))
    assert event["note"] == "j"


def test_each_message_has_the_columns_of_the_schema_that_wrote_it() -> None:
    """A column went and another came in the middle of the topic, and a late message has the old ones again."""
    message = {"before": None, "source": {"connector": "postgresql", "lsn": 5}, "op": "u"}
    row = {name: value for name, value in full().items() if name != "note"}
    later = wire(3, {**message, "after": {**row, "city": "Rome"}})
    key = wire(1, {"id": 1})
    found = events((key, change("u", 4, full(note="a"))), (key, later), (key, change("u", 3, full(note="b"))))
    assert [(e["note"], e["_absent"]) for e in found] == [("a", []), (None, ["note"]), ("b", [])]


def test_an_unknown_schema_stops_and_refuses_nothing() -> None:
    with pytest.raises(SchemaUnknown):
        events((struct.pack(">bI", 0, 77) + b"\x02", None))


def test_a_schema_that_names_itself_ends() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}, {"name": "x", "type": ["int", "string"]}]}
    assert [f["field"] for f in of_avro(node)["fields"]] == ["next", "x"]


def test_many_messages_are_proven_or_read_one_by_one_alike() -> None:
    document = WireFormat(Schemas()).document  # type: ignore[arg-type]
    lines = [
        Line("t").one(Message(i, document(wire(1, {"id": i % 50})), document(change("u", i, full(id=i % 50, total=Decimal(i) / 100)))))
        for i in range(2_500)
    ]
    whole = pa.Table.from_batches(registry.decode_pieces(ORDERS, 1, "t/0", 0, iter([b"\n".join([*lines, b""])])))
    assert whole["total"].to_pylist() == [Decimal(i) / 100 for i in range(2_500)]
