"""Values at the edges of the types, random feeds and random damage, for the tests that compare two ways of reading."""

import json
import random
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from source_cases import event
from test_sources_values import EXACT, REFUSED

TEXTS = (
    "1234", "12.50", "-0.00", "0.1", ".5", "5.", "+5", "-5", "007", "007.10", "1e3", "1E-2", "EtaA", "BNI=", "AP8Q", "", " 5", "5 ", "1.5\n",
    "\u0665.5", "12345678.12", "123456789.12", "123456789.5", "99999.9999", "100000.0001", "NaN", "Infinity", "-Infinity", "true", "T", "0", "-0", "1",
    "9223372036854775807", "9223372036854775808", "2147483648", "999999999999999999", "1000000000000000000", "0.12345678", "0.123456789",
    "2024-02-29", "2023-02-29", "0999-01-01", "1000-01-01", "3000-01-01", "2024-02-29Z", "2024-02-29T00:00:00Z", "2024-02-29T23:59:60Z",
    "2024-02-29T24:00:00Z", "2024-02-29T11:14:15.5Z", "2024-02-29T11:14:15.123456Z", "2024-02-29T11:14:15.1234567Z", "2024-02-29 11:14:15Z",
    "2024-02-29T11:14:15+02:00", "2024-02-29T11:14:15", "2024-02-29T11:14Z", "2900-02-29T11:14:15Z", "1900-02-28T00:00:00.000001Z", "infinity",
    "é", "a\u0000b", "\U0001f600", "__debezium_unavailable_value", 'q"uo:te', "back\\slash", "line\nfeed",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 5, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 19782, 2932896, 2932897,
    -719162, -719163, 2147483647, -2147472692, 253402300799999999, 253402300800000000, -62135596800000001, 253402300799999, 253402300800000,
    9223372036825200000, 99999, 100000, 1234567890,
)  # fmt: skip
RAW_NUMBERS = (
    "1.5", "-0.0", "-0", "0.0", "1e5", "1E-7", "1e400", "1e-400", "12.50", "12.505", "1.0000000", "99999999.99", "100000000.00", "123456.789",
    "1.1234567890123456789", "0.1", "3.0", "1e30", "12345678.12345678", "12345.6789", "1.100000023841858", "5e-324", "0E+999",
)  # fmt: skip
OTHERS = (None, True, False, {}, [], {"scale": 1, "value": "BNI="}, {"scale": "1"}, {"a": {"b": 1}}, [1, {"a": 1}], "\ud800")
VALUES = [json.dumps(value) for value in (*TEXTS, *NUMBERS, *OTHERS, *(v for _, v, _, _ in EXACT + REFUSED if not isinstance(v, Decimal)))]
VALUES = [*dict.fromkeys([*VALUES, *RAW_NUMBERS, *(str(v) for _, v, _, _ in EXACT + REFUSED if isinstance(v, Decimal))])]
PLAIN = "id BIGINT; name STRING; n INT; price DECIMAL(10,2); at TIMESTAMP"
FEW = 6
"""Seeds that `make check` tries; a multiple of two and of three, since tests take turns by these."""


def seeds(count: int) -> list[Any]:
    """Parameters: so many seeds: the first few are quick tests, as many again slow ones, and the rest tests of the night."""
    slow, nightly = pytest.mark.slow, pytest.mark.nightly
    return [pytest.param(seed, marks=[] if seed < FEW else [slow if seed < 2 * FEW else nightly]) for seed in range(count)]


def feed(random_: random.Random, count: int, odd: int = 12) -> list[Any]:
    """Events of few keys, so that deletes, tombstones and updates meet; objects, JSON text and schemas."""
    lines = []
    as_number = random_.random() < 0.5
    for i in range(count):
        key = {"id": random_.randrange(6)}
        after = {
            **key,
            "name": f"n{i}",
            "n": i,
            "price": f"{i}.50" if as_number else b64encode((i << 13).to_bytes(3)).decode(),
            "at": f"2024-02-29T11:14:{i % 60:02d}Z",
        }
        kind = random_.randrange(odd)
        op, old = "d" if kind < 2 else random_.choice("ccuur"), {"__debezium.oldkey": {"id": 7}} if kind == 3 else {}
        line = event(op, key, None if op == "d" else after, lsn=100 + i, headers=old)
        if kind == 4:
            after["name"] = "__debezium_unavailable_value"
        if kind == 5:
            line["value"] = None
        if kind == 6:
            line = event("c", key, after | {"price": random_.choice(["1234", "BNI=", 5, 1.5, None])})
        if i % 3 and line["value"] is not None:
            line |= {"key": key, "value": json.loads(line["value"])}
        lines.append(line)
    return lines


def with_schemas(random_: random.Random, lines: list[Any]) -> list[Any]:
    """The same events as the converter with schemas writes them; now and then the schema, its place or the rest of the line changes."""
    scale, tail, found = "2", {}, []
    for line in lines:
        key, value = (json.loads(part) if isinstance(part, str) else part for part in (line["key"], line["value"]))
        if random_.random() < 0.02:
            scale = random_.choice("23")
            tail = random_.choice([{}, {"partition": 0}, {"value2": "}", "headers": {}}])
        price = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": scale}, "field": "price"}
        row = {"type": "struct", "fields": [{"type": "int64", "field": "id"}, price], "field": "after"}
        if value and value.get("after"):
            value["after"]["price"] = random_.choice(["BNI=", "EtaA", "1234", None])
        key = {"schema": {"type": "struct", "fields": [{"type": "int64", "field": "id"}]}, "payload": key}
        value = value and {"schema": {"type": "struct", "fields": [row]}, "payload": value}
        if random_.random() < 0.05:
            value = value and value["payload"]
        found.append({"key": key, "value": value, **tail})
    return found


PIECES = [
    b'"', b"\\", b":", b",", b"{", b"}", b"[", b"]", b" ", b"\t", b"\r", b"null", b"NaN", b"1e5", b"-0", b"0", b"\xff", b"\xc3\xa9", b"\\u0022",
    b"\\ud800", b"\\ud83d\\ude00", b'\\"', b"\\\\", b'\\":', b'" :', b'"id":1,', b'"id": 1, ', b'"op":"u",', b'\\"id\\":2,', b"1.50", b"true", b"\x00", b"\x7f",
]  # fmt: skip


def mutated(random_: random.Random, line: bytes) -> bytes:
    for _ in range(random_.randint(1, 3)):
        at, to = sorted(random_.choices(range(len(line) + 1), k=2))
        to = min(to, at + random_.choice([0, 0, 1, 5, 30]))
        piece = random_.choice([*PIECES, line[at:to], b""])
        line = line[:at] + piece + line[random_.choice([at, to]) :]
    return line.replace(b"\n", b" ")


def other_value(random_: random.Random, line: bytes) -> bytes:
    """A document with another value somewhere, which may be no Unicode."""
    document = json.loads(line)
    of = document
    while isinstance(of, dict | list) and of:
        name = random_.choice(list(of)) if isinstance(of, dict) else random_.randrange(len(of))
        if not isinstance(of[name], dict | list) or not of[name] or random_.random() < 0.3:
            of[name] = random_.choice([None, "", 0, -1, 1.5, True, [], {}, "\ud83d", [{}], {"id": "1"}, 10**30, 1 << 63, "1e999", "\u0000"])
            break
        of = of[name]
    return json.dumps(document, ensure_ascii=random_.random() < 0.5).encode("utf-8", "surrogatepass")
