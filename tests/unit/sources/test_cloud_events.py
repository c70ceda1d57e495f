"""CloudEvents of Debezium become the events that their envelopes would become."""

import json
from typing import Any

import pytest
from source_cases import rows, table

from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.shapes import registry

OF = table("id BIGINT; name STRING", source=DebeziumSource("f/", topic="shop.public.people"))
SCHEMA = {
    "type": "struct",
    "fields": [
        {
            "field": part,
            "type": "struct",
            "optional": True,
            "fields": [{"field": "id", "type": "int64"}, {"field": "name", "type": "string"}],
        }
        for part in ("before", "after")
    ],
}
ROW, OLD = {"id": 7, "name": "Ann"}, {"id": 7, "name": ""}


def cloud_event(op: str, data: Any, **more: Any) -> dict[str, Any]:
    """As the documentation of Debezium's CloudEvents converter shows one."""
    return {
        "id": "name:shop;lsn:29274832;txId:565",
        "source": "/debezium/postgresql/shop",
        "specversion": "1.0",
        "type": "io.debezium.connector.postgresql.DataChangeEvent",
        "time": "2020-01-13T13:55:39.738Z",
        "datacontenttype": "application/json",
        "iodebeziumop": op,
        "iodebeziumconnector": "postgresql",
        "iodebeziumname": "shop",
        "iodebeziumtsms": "1578923739738",
        "iodebeziumsnapshot": "false",
        "iodebeziumdb": "shop",
        "iodebeziumschema": "public",
        "iodebeziumtable": "people",
        "iodebeziumtxid": "565",
        "iodebeziumlsn": "29274832",
        "iodebeziumxmin": "",
        "data": data,
        **more,
    }


def envelope(op: str, before: Any, after: Any, order: int | None = None) -> dict[str, Any]:
    source = {
        "connector": "postgresql",
        "name": "shop",
        "db": "shop",
        "schema": "public",
        "table": "people",
        "lsn": 29274832,
        "snapshot": "false",
    }
    return {"before": before, "after": after, "op": op, "source": source, "transaction": None if order is None else {"total_order": order}}


def decoded(*lines: Any) -> list[dict[str, Any]]:
    numbered = iter([(n, json.dumps(line).encode()) for n, line in enumerate(lines, 1)])
    return [{k: v for k, v in row.items() if k != "_raw"} for row in rows(registry.decode(OF, "f", 0, numbered))]


@pytest.mark.parametrize(
    ("op", "before", "after", "order"), [("c", None, ROW, None), ("u", OLD, ROW, 3), ("d", OLD, None, None), ("r", None, ROW, None)]
)
def test_a_cloud_event_is_the_envelope_in_it(op: str, before: Any, after: Any, order: int | None) -> None:
    data, of_order = {"before": before, "after": after}, {} if order is None else {"iodebeziumtxtotalorder": str(order)}
    plain, with_schema = (cloud_event(op, d, **of_order) for d in (data, {"schema": SCHEMA, "payload": data}))
    wanted = decoded(envelope(op, before, after, order))
    assert wanted[0]["_kind"] in ("upsert", "delete")
    assert decoded(plain) == decoded(with_schema) == wanted
    key = {"id": 7}
    messages = [{"key": key, "value": value} for value in (plain, json.dumps(plain), with_schema, json.dumps(with_schema))]
    assert [decoded(message) for message in messages] == [decoded({"key": key, "value": envelope(op, before, after, order)})] * 4


def test_another_table_is_skipped_and_what_has_no_rows_refused() -> None:
    other = cloud_event("c", {"before": None, "after": ROW}, iodebeziumtable="orders")
    found = decoded(
        other, cloud_event("c", "none"), cloud_event("c", {"after": ROW}, iodebeziumlsn="x"), {"specversion": "1.0", "data": ROW}
    )
    assert [(e["_kind"], e["_code"]) for e in found] == [
        ("skipped", None),
        ("quarantined", "BAD_JSON"),
        ("quarantined", "UNKNOWN_POSITION"),
        ("quarantined", "BAD_JSON"),
    ]
