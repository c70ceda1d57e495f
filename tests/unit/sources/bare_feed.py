"""Bare lines, with and without schema, to try the ways of reading with: plain ones, and random feeds of odd and damaged ones."""

import json
import random
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from source_fuzz import mutated

STYLES = ((",", ":"), (", ", ": "))
FORMS = ("bare", "bare with schema", "message", "message with schema", "texts", "texts with schema")
FIELDS = [
    {"type": "int64", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "name"},
    {"type": "int32", "optional": True, "field": "n", "default": 0},
    {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
        "field": "price",
    },
    {
        "type": "string",
        "optional": True,
        "name": "io.debezium.time.ZonedTimestamp",
        "version": 1,
        "field": "at",
        "doc": 'it\'s \\ "so" \u00e4',
    },
]
SCHEMA = {
    "type": "struct",
    "fields": [{"type": "struct", "fields": FIELDS, "field": part} for part in ("before", "after")] + [{"type": "string", "field": "op"}],
    "name": "shop.public.orders.Envelope",
}
KEY = {"type": "struct", "fields": FIELDS[:1], "name": "shop.public.orders.Key"}


def octets(cents: int) -> str:
    """A decimal as Debezium writes it by default."""
    return b64encode(cents.to_bytes(cents.bit_length() // 8 + 1, "big", signed=True)).decode()


def value(op: str, i: int, *, schema: bool, before: Any = None, **values: Any) -> dict[str, Any]:
    """An envelope; of a delete, its row before has the key and nothing else."""
    row = {
        "id": i % 7,
        "name": f"n {i}",
        "n": i,
        "price": octets(i * 50 - 99) if schema else f"{i}.50",
        "at": "2024-02-29T11:14:15Z",
        **values,
    }
    source = {"connector": "postgresql", "name": "shop", "schema": "public", "table": "orders", "lsn": 100 + i, "snapshot": "false"}
    gone = {"id": i % 7, "name": None, "n": 0, "price": None, "at": None}
    return {"before": gone if op == "d" else before, "after": None if op == "d" else row, "source": source, "transaction": None, "op": op}


def written(form: str, document: Any, style: tuple[str, str] = STYLES[0]) -> bytes:
    """An envelope, or null, as a line of a form."""

    def text(what: Any) -> str:
        return json.dumps(what, separators=style, ensure_ascii=False)

    row = {} if document is None else document["after"] or document["before"]
    key: Any = {"id": row.get("id")} if isinstance(row, dict) else None
    if form.endswith("schema"):
        document, key = document and {"schema": SCHEMA, "payload": document}, {"schema": KEY, "payload": key}
    if form.startswith("bare"):
        return text(document).encode()
    if form.startswith("texts"):
        key, document = text(key), document and text(document)
    return text({"key": key, "value": document}).encode()


def _odd(random_: random.Random, i: int, *, schema: bool) -> dict[str, Any] | None:
    """An event that is not quite plain; None: a tombstone."""
    choice: list[Callable[[], dict[str, Any] | None]] = [
        lambda: None,
        lambda: value("d", i, schema=schema),
        lambda: value("d", i, schema=schema) | {"before": random_.choice([None, {}, {"id": None}, {"id": "7"}, {"name": "x"}])},
        lambda: value("u", i, schema=schema, before={"id": random_.choice([i % 7, i % 7, 99, None, "1", True]), "name": "b"}),
        lambda: value(
            "u", i, schema=schema, price=random_.choice(["1234", "BNI=", "AB==", "", "/w==", "f///////////////////", 5, 1.5, None, "x"])
        ),
        lambda: value("u", i, schema=schema, name=random_.choice(["__debezium_unavailable_value", None, 'q"', "a\\b", "two\nlines", 7])),
        lambda: value(random_.choice("trxm"), i, schema=schema),
        lambda: value("c", i, schema=schema, id=random_.choice([None, "1", 1.0, 2**63, True])),
        lambda: value("c", i, schema=schema, at=random_.choice([None, 5, 1_700_000_000_000_000, "2024-02-30T00:00:00Z", "infinity"])),
        lambda: value("u", i, schema=schema) | {"source": random_.choice([None, {}, {"connector": "mysql", "file": "b.1", "pos": i}])},
        lambda: value("u", i, schema=schema) | {random_.choice(["value", "key", "schema", "payload"]): 5},
    ]
    return random_.choice(choice)()


def lines(random_: random.Random, count: int, form: str, odd: float, damaged: float) -> list[bytes]:
    """Random lines of a form, so large a share of them odd, and so large a share damaged."""
    schema, style, found = form.endswith("schema"), random_.choice(STYLES), []
    for i in range(count):
        event = _odd(random_, i, schema=schema) if random_.random() < odd else value(random_.choice("ccuur"), i, schema=schema)
        line = written(form, event, style)
        found.append(mutated(random_, line) if random_.random() < damaged else line)
    return found
