"""Avro: the schemas of an output's keys and values, and their binary encoding. Pure; every field may be null, of a key only where its parts may."""

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import Value
from rejoin.plan.sql.nested import ELEMENT, VALUE

Schema = dict[str, Any]
Write = Callable[[bytearray, Any], None]

_SOURCE: Final[list[Schema]] = [
    {"name": "connector", "type": "string"},
    {"name": "topology", "type": "string"},
    {"name": "table", "type": "string"},
    {"name": "run", "type": "long"},
    {"name": "snapshot", "type": "boolean"},
]


def key_schema(topology: str, node: Node, types: pa.Schema) -> Schema:
    """The record of a key of an output."""
    fields = {k: _type(types.field(k).type, k, "") for k in node.key}
    return _record("Key", topology, node.name, [_nullable(k, t) if node.null_keys else {"name": k, "type": t} for k, t in fields.items()])


def value_schema(topology: str, output: str, types: pa.Schema, value: Value) -> Schema:
    """The record of a value: a row, or an envelope of two rows."""
    fields = [_nullable(f.name, _type(f.type, f.name, f"{topology}.{output}.columns")) for f in types]
    row = _record("Row", topology, output, fields)
    if value is not Value.ENVELOPE:
        return row
    images: list[Schema] = [
        _nullable("before", row),
        _nullable("after", "Row"),
    ]
    source = {"type": "record", "name": "Source", "fields": _SOURCE}
    return _record("Envelope", topology, output, [{"name": "op", "type": "string"}, *images, {"name": "source", "type": source}])


def _nullable(name: str, kind: str | Schema) -> Schema:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, topology: str, output: str, fields: list[Schema]) -> Schema:
    return {"type": "record", "name": name, "namespace": f"{topology}.{output}", "fields": fields}


def _type(kind: pa.DataType, name: str, space: str) -> str | Schema:
    """``name``: of the record that a struct becomes; ``space``: its namespace, which tells where it stands in the row."""
    if pa.types.is_struct(kind):
        fields = [_nullable(f.name, _type(f.type, f.name, f"{space}.{name}")) for f in kind]
        return {"type": "record", "name": name, "namespace": space, "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _type(kind.item_type, VALUE, f"{space}.{name}")]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_type, ELEMENT, f"{space}.{name}")]}
    simple = {pa.bool_(): "boolean", pa.int32(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}
    if kind in simple:
        return simple[kind]
    if kind == pa.date32():
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    return "bytes" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "string"


def encoder(schema: Any) -> Callable[[Any], bytes]:
    """What turns a value of a schema (as made here) into bytes."""
    write = _writer(schema, {})

    def encode(value: Any) -> bytes:
        out = bytearray()
        write(out, value)
        return bytes(out)

    return encode


def _writer(schema: Any, named: dict[str, Write]) -> Write:
    if isinstance(schema, list):
        return _optional(_writer(schema[1], named))
    if isinstance(schema, str):
        return named[schema] if schema in named else _PRIMITIVE[schema]
    if schema["type"] == "record":
        fields = [(f["name"], _writer(f["type"], named)) for f in schema["fields"]]
        named[schema["name"]] = made = _fields(fields)
        return made
    if schema["type"] in ("array", "map"):
        return _items(_writer(schema["items"], named)) if schema["type"] == "array" else _entries(_writer(schema["values"], named))
    return _decimal(schema["scale"]) if schema["logicalType"] == "decimal" else _LOGICAL[schema["logicalType"]]


def _optional(write: Write) -> Write:
    def optional(out: bytearray, value: Any) -> None:
        out.append(0 if value is None else 2)  # the branch of the union, zigzag
        if value is not None:
            write(out, value)

    return optional


def _fields(fields: list[tuple[str, Write]]) -> Write:
    def record(out: bytearray, value: Mapping[str, Any]) -> None:
        for name, write in fields:
            write(out, value[name])

    return record


def _items(write: Write) -> Write:
    def items(out: bytearray, value: list[Any]) -> None:
        if value:
            _long(out, len(value))
        for one in value:
            write(out, one)
        out.append(0)

    return items


def _entries(write: Write) -> Write:
    def entry(out: bytearray, value: tuple[str, Any]) -> None:
        _bytes(out, value[0].encode())
        write(out, value[1])

    every = _items(entry)
    return lambda out, value: every(out, list(value.items()))


def _long(out: bytearray, value: int) -> None:
    n = (value << 1) ^ (value >> 63)
    while n & ~0x7F:
        out.append((n & 0x7F) | 0x80)
        n >>= 7
    out.append(n)


def _bytes(out: bytearray, value: bytes) -> None:
    _long(out, len(value))
    out += value


def _decimal(scale: int) -> Write:
    def decimal(out: bytearray, value: Decimal) -> None:
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + scale)
        unscaled = -unscaled if sign else unscaled
        _bytes(out, unscaled.to_bytes((unscaled.bit_length() // 8) + 1, "big", signed=True))

    return decimal


_EPOCH, _MICROSECOND = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)  # noqa: DTZ001 -- stored timestamps are in UTC


def _days(out: bytearray, value: Any) -> None:
    _long(out, value.toordinal() - 719_163)


def _micros(out: bytearray, value: Any) -> None:
    _long(out, (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)


_PRIMITIVE: Final[dict[str, Write]] = {
    "boolean": lambda out, value: out.append(1 if value else 0),
    "int": _long,
    "long": _long,
    "float": lambda out, value: out.extend(struct.pack("<f", value)),
    "double": lambda out, value: out.extend(struct.pack("<d", value)),
    "bytes": _bytes,
    "string": lambda out, value: _bytes(out, value.encode()),
}
_LOGICAL: Final[dict[str, Write]] = {"date": _days, "timestamp-micros": _micros, "local-timestamp-micros": _micros}
