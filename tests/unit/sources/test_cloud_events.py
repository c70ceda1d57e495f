"""CloudEvents of Debezium become the events that their envelopes would become."""

import json
import random
from typing import Any

import pytest
from both_ways import STYLES, check
from source_cases import rows, table
from source_fuzz import mutated

from rejoin.plan.model.added_columns import versions
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


FORMS = {
    "bare": lambda data, more: cloud_event("cu"[more["n"] % 2], data, **more["own"]),
    "message": lambda data, more: {"key": {"id": 7}, "value": cloud_event("r", data, **more["own"])},
    "texts": lambda data, more: {"key": '{"id":7}', "value": json.dumps(cloud_event("u", data, **more["own"]), separators=STYLES[0])},
}


@pytest.mark.parametrize(("schema", "ordered"), [(False, False), (True, True)])
@pytest.mark.parametrize("form", FORMS)
def test_cloud_events_are_proven_as_envelopes_are(form: str, schema: bool, ordered: bool) -> None:
    made, random_ = [], random.Random(f"{form} {schema} {ordered}")
    for n in range(200):
        data: Any = {"before": None if n % 3 else OLD, "after": {"id": 7, "name": f"n {n}"}}
        own = {"iodebeziumlsn": str(n), "iodebeziumtsms": str(n), **({"iodebeziumtxtotalorder": str(n % 4)} if ordered else {})}
        own |= {"iodebeziumtable": "orders"} if n % 7 == 0 and form == "bare" else {}
        line = FORMS[form]({"schema": SCHEMA, "payload": data} if schema else data, {"n": n, "own": own})
        made.append(json.dumps(line, separators=STYLES[0]).encode())
    assert check(OF, b"\n".join(made))[0] == (200 - 29 if form == "bare" else 200)
    assert check(versions(OF), b"\n".join(made))[0] == (200 - 29 if form == "bare" else 200)
    damaged = [mutated(random_, line) if n > 30 and random_.random() < 0.4 else line for n, line in enumerate(made)]
    check(OF, b"\n".join(damaged))


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
def test_fifty_thousand_damaged_cloud_events_in_all_forms_are_read_alike(form: str) -> None:
    for seed in range(42):
        random_, made = random.Random(f"{form} {seed}"), []
        for n in range(400):
            data: Any = {"before": random_.choice([None, OLD]), "after": random_.choice([ROW, {**ROW, "name": None}])}
            odd = {
                random_.choice(["iodebeziumlsn", "iodebeziumtsms", "iodebeziumop"]): random_.choice(
                    ["x", "", None, 5, "007", "+5", " 5", "1e3", "9" * 19]
                )
            }
            own = {"iodebeziumlsn": str(n), **(odd if random_.random() < 0.1 else {})}
            line = json.dumps(FORMS[form](data, {"n": n, "own": own}), separators=STYLES[0]).encode()
            made.append(mutated(random_, line) if n > 20 and random_.random() < 0.9 else line)
        check(OF if seed % 2 else versions(OF), b"\n".join(made), chunk=200)


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
