"""Nested columns from every kind of source that can hold them, and what is wrong with them."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import New, Sessions
from integration.sent import Sent, of_lines
from integration.servers import KafkaServer
from integration.sinks.schema_registry import registry
from integration.texts import Lake, put

from rejoin.errors import BadRecords, SchemaDrift

pytestmark = pytest.mark.slow

COLUMNS = "id BIGINT, tags ARRAY<STRING>, lines ARRAY<STRUCT<price: DECIMAL(10,2), at: TIMESTAMP>>, place STRUCT<city: STRING, day: DATE>, m MAP<STRING, INT>"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "id": 1,
    "tags": ["b", None, "a"],
    "lines": [{"price": Decimal("1.50"), "at": NOON}, None],
    "place": {"city": "Ulm", "day": date(2026, 1, 2)},
    "m": [("a", 1), ("z", None)],
}
NONE: dict[str, Any] = {"id": 2, "tags": None, "lines": None, "place": None, "m": None}
WRITTEN: dict[str, Any] = {
    "id": 1,
    "tags": ["b", None, "a"],
    "lines": [{"price": 1.5, "at": "2026-01-02T12:00:00Z"}, None],
    "place": {"city": "Ulm", "day": "2026-01-02", "more": [1]},
    "m": {"z": None, "a": 1},
}
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.large_list(pa.string())),
        ("lines", pa.list_(pa.struct([("price", pa.decimal128(8, 2)), ("at", pa.timestamp("ms", "UTC"))]))),
        ("place", pa.struct([("day", pa.date32()), ("city", pa.string())])),
        ("m", pa.map_(pa.string(), pa.int16())),
    ]
)
MICROS = int(NOON.timestamp()) * 1_000_000
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {
            "name": "lines",
            "type": ["null", {"type": "array", "items": ["null", {
                "type": "record", "name": "Line", "fields": [
                    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
                    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                ]}]}],
        },
        {
            "name": "place",
            "type": ["null", {"type": "record", "name": "Place", "fields": [
                {"name": "city", "type": "string"}, {"name": "day", "type": {"type": "int", "logicalType": "date"}}]}],
        },
        {"name": "m", "type": ["null", {"type": "map", "values": ["null", "int"]}]},
    ],
}  # fmt: skip


def parquet(*rows: dict[str, Any], schema: pa.Schema = ARROW) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), sink)
    return sink.getvalue()


def enveloped(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    source = {"connector": "postgresql", "snapshot": "false"}
    return [{"op": "c", "after": row, "source": {**source, "lsn": n}} for n, row in enumerate(rows, 1)]


_PARTS = [{"name": "connector", "type": "string"}, {"name": "snapshot", "type": "string"}, {"name": "lsn", "type": "long"}]
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "op", "type": "string"},
        {"name": "after", "type": ["null", AVRO]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": _PARTS}},
    ],
}


def with_maps(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "m": row["m"] and dict(row["m"])} for row in rows]


def avro(*rows: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, ENVELOPE, enveloped(*with_maps(*rows)))
    return sink.getvalue()


def events(*rows: dict[str, Any]) -> bytes:
    source = pa.struct([("connector", pa.string()), ("snapshot", pa.string()), ("lsn", pa.int64())])
    return parquet(*enveloped(*rows), schema=pa.schema([("op", pa.string()), ("after", pa.struct(list(ARROW))), ("source", source)]))


def csv() -> bytes:
    cells = [json.dumps(WRITTEN[c]).replace('"', '""') for c in ("tags", "lines", "place", "m")]
    return ("id,tags,lines,place,m\n1," + ",".join(f'"{cell}"' for cell in cells) + "\n2,,,,\n").encode()


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES: dict[str, tuple[str, str, str | bytes]] = {
    "json": ("snapshot('json')", "json/1.jsonl", lines(WRITTEN, {"id": 2})),
    "csv": ("snapshot('csv')", "csv/1.csv", csv()),
    "parquet": ("snapshot('parquet')", "parquet/1.parquet", parquet(ROW, NONE)),
    "events": ("debezium('events')", "events/1.jsonl", put(1, 1, **{k: v for k, v in WRITTEN.items() if k != "id"}) + "\n" + put(2, 2) + "\n"),
    "avro": ("debezium('avro')", "avro/1.avro", avro(ROW, NONE)),
    "columns": ("debezium('columns')", "columns/1.parquet", events(ROW, NONE)),
    "texts": ("debezium('texts')", "texts/1.jsonl",
              put(1, 1, **{k: json.dumps(v) for k, v in WRITTEN.items() if k != "id"}) + "\n" + put(2, 2) + "\n"),
    "rows": ("changes('rows', order_by=arrival(), columns={'place': 'at'})", "rows/1.jsonl",
             lines({**WRITTEN, "at": WRITTEN["place"]}, {"id": 2, "at": None})),
    "cells": ("changes('cells', order_by=arrival())", "cells/1.csv", csv()),
    "typed": ("changes('typed', order_by=arrival(), deleted=\"id = '3'\")", "typed/1.parquet", parquet(ROW, NONE, {**ROW, "id": 3})),
    "fields": ("snapshot('fields', columns={'id': 'CAST(id AS BIGINT)'})", "fields/1.parquet", parquet(ROW, NONE)),
}  # fmt: skip


def declared(name: str, source: str, more: str = "") -> str:
    """A table, and the output that is the same."""
    return f't.table("{name}", key="id", schema="{COLUMNS}", source={source}{more}).select(["*"]).named("{name}_out")\n'


def test_every_source_gives_the_same_nested_values(tmp_path: Path, sessions: Sessions) -> None:
    optional = ', optional=["tags", "lines", "place", "m"]'
    lake = Lake(tmp_path, sessions, "".join(declared(name, source, optional) for name, (source, _, _) in FILES.items()))
    for _, path, content in FILES.values():
        lake.land(path, content)
    lake.run()
    assert {name: lake.rows(f"{name}_out") for name in FILES} == {name: {1: ROW, 2: NONE} for name in FILES}


BAD = {
    "5": ("VALUE_TYPE", "column 'tags': a number does not fit ARRAY<STRING>"),
    '{"a": "b"}': ("VALUE_TYPE", "column 'tags': an object does not fit ARRAY<STRING>"),
    '["a", 5]': ("VALUE_TYPE", "column 'tags[]': a number does not fit STRING"),
    '"no JSON"': ("VALUE_TYPE", "column 'tags': the text is no JSON, or has a name twice"),
}  # fmt: skip


def test_a_value_that_is_not_of_its_nested_type_is_kept_aside_with_its_place(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(
        tmp_path,
        sessions,
        't.table("a", key="id", schema="id BIGINT, tags ARRAY<STRING>", source=debezium("a", max_bad_share=1.0)).select(["*"]).named("out")',
    )
    lake.land(
        "a/1.jsonl", "".join(put(n, n, tags=json.loads(bad)) + "\n" for n, bad in enumerate(BAD, 1)) + put(9, 9, tags=["fine"]) + "\n"
    )
    assert lake.run()["ingest.a"]["quarantined"] == len(BAD)
    assert lake.rows("out") == {9: {"id": 9, "tags": ["fine"]}}
    assert [code for (file, _), (code, _) in sorted(lake.kept_aside("a").items())] == [code for code, _ in BAD.values()]
    lake.land("a/2.jsonl", put(10, 10, tags=[1]) + "\n")
    with pytest.raises(BadRecords, match=r"column 'tags\[\]': a number does not fit STRING"):
        lake.run()


def test_parquet_of_another_nested_type_is_refused_and_a_date_too_late_kept_aside(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, declared("a", "snapshot('a', max_bad_share=1.0)"))
    late = parquet(ROW, {**NONE, "place": {"city": "x", "day": None}})
    days = pa.array([None, 9_000_000], pa.int32()).view(pa.date32())
    table = pq.read_table(io.BytesIO(late))
    place = pa.StructArray.from_arrays([days, pa.array(["x", "y"])], names=["day", "city"])
    sink = io.BytesIO()
    pq.write_table(table.set_column(3, "place", place), sink)
    lake.land("a/1.parquet", sink.getvalue())
    assert lake.run()["ingest.a"]["quarantined"] == 1
    assert {code for code, _ in lake.kept_aside("a").values()} == {"VALUE_RANGE"}
    other = ARROW.set(1, pa.field("tags", pa.list_(pa.int32())))
    lake.land("a/2.parquet", parquet({**NONE, "tags": [1]}, schema=other))
    with pytest.raises(SchemaDrift, match="declared is ARRAY<STRING>"):
        lake.run()


def wire(id_: int, schema: dict[str, Any], value: Any) -> bytes:
    """A message in Avro, with the number of its schema."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + id_.to_bytes(4, "big") + out.getvalue()


def avro_messages(key: dict[str, Any]) -> list[Sent]:
    rows = enveloped(*with_maps(ROW, NONE))
    return [(0, wire(1, key, {"id": row["after"]["id"]}), wire(2, ENVELOPE, row), {}) for row in rows]


STREAM = """
seen = t.stream("seen", id="id", event_time="info.at", schema="id BIGINT, info STRUCT<at: TIMESTAMP, who: MAP<STRING, BIGINT>>, tags ARRAY<STRING>", source=records({}))
seen.left_join(t.relation("json"), as_of="arrival", foreign_key="info.who['id']", select=["left.id", "left.tags", "right.place.city", "size(right.lines) AS n"]).named("met")
"""


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_topics_give_nested_values_in_json_and_in_avro_and_records_join_by_what_is_in_them(
    tmp_path: Path, sessions: Sessions, new: New, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_json, in_avro, records, rows = new(1), new(1), new(1), new(1)
    key: dict[str, Any] = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    tables = [declared(name, f"debezium(kafka({topic.name!r}))") for name, topic in (("json", in_json), ("avro", in_avro))]
    tables += [declared("rows", f"changes(kafka({rows.name!r}))", ', optional=["tags", "lines", "place", "m"]')]
    lake = Lake(tmp_path, sessions, "".join(tables) + STREAM.format(f"kafka({records.name!r})"))
    empty = {name: value for name, value in NONE.items() if name != "id"}
    in_json.send(list(of_lines([put(1, 1, **{k: v for k, v in WRITTEN.items() if k != "id"}), put(2, 2, **empty)], 1)))
    in_avro.send(avro_messages(key))
    [row] = with_maps(ROW)
    rows.send([(0, wire(1, key, {"id": 1}), wire(3, AVRO, row), {}), (0, b'{"id":2}', b"{}", {})])
    met = [{"id": n, "info": {"at": "2026-01-02T12:00:00Z", "who": {"id": n}}, "tags": tags} for n, tags in ((1, ["a", None]), (2, None))]
    records.send([(0, None, json.dumps(one).encode(), {}) for one in [*met, met[0] | {"id": 3, "tags": [5]}]])
    with registry() as (url, schemas):
        schemas += [json.dumps(key), json.dumps(ENVELOPE), json.dumps(AVRO)]
        monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({"address": broker.address, "schema.registry.url": url}))
        assert lake.run()["ingest.seen"]["quarantined"] == 1
    assert lake.rows("json_out") == lake.rows("avro_out") == lake.rows("rows_out") == {1: ROW, 2: NONE}
    assert lake.rows("met") == {
        1: {"id": 1, "tags": ["a", None], "city": "Ulm", "n": 2},
        2: {"id": 2, "tags": None, "city": None, "n": None},
    }
