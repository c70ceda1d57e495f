"""Avro as Confluent's serializers write it: a zero byte, the id of a schema, a datum. It becomes what Connect's JSON converter makes of the same data, with
its schema: so decimals, times and octets are read by the same decoder, as exactly.
"""

import base64
import io
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from rejoin.sources.decode.values import CONNECT_DECIMAL
from rejoin.sources.transports.kafka.schema_registry import SchemaRegistry

ZERO, _HEAD = b"\0", 5
"""No JSON begins with a zero byte."""
_KINDS = {"int": "int32", "long": "int64", "enum": "string", "fixed": "bytes", "record": "struct"}
_NAMES = {
    "decimal": CONNECT_DECIMAL,
    "date": "org.apache.kafka.connect.data.Date",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
}
"""Logical types, of schemas that have no names of Connect's."""
Read = Callable[[bytes], bytes]


class WireFormat:
    """Reads messages by the schemas of a registry; asks for each once."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._reader: Callable[[int], Read] = lru_cache(maxsize=None)(lambda id_: reader(registry.schema(id_)))

    def document(self, written: bytes | None) -> bytes | None:
        """A key or value as JSON; what does not begin as Avro as it is; what is no datum of its schema as a text that is no JSON.

        Raises:
            SchemaUnknown, SourceDenied, SourceDown: the registry does not give its schema.
        """
        if written is None or written[:1] != ZERO or len(written) < _HEAD:
            return written
        try:
            return self._reader(int.from_bytes(written[1:_HEAD], "big"))(written[_HEAD:])
        except _NoDatum:
            return b"no Avro: " + base64.b64encode(written)


class _NoDatum(Exception):
    """Octets are no datum of a schema."""


def reader(schema: Any) -> Read:
    """What makes JSON of a datum of a schema."""
    import fastavro

    parsed = fastavro.parse_schema(_plain(schema))
    front = b'{"schema":%b,"payload":' % json.dumps(connect_schema(schema, {}), separators=(",", ":")).encode()

    def read(datum: bytes) -> bytes:
        stream = io.BytesIO(datum)
        try:
            found = fastavro.schemaless_reader(stream, parsed, None)
            text = json.dumps(found, default=_octets, ensure_ascii=False, separators=(",", ":")).encode()
        except Exception:  # noqa: BLE001 -- whatever broken octets make of it
            raise _NoDatum from None
        if stream.tell() != len(datum):
            raise _NoDatum
        return b"%b%b}" % (front, text)

    return read


def _plain(schema: Any) -> Any:
    """A schema without logical types: values come as they are written."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    return {k: _plain(v) for k, v in schema.items() if k != "logicalType"} if isinstance(schema, Mapping) else schema


def connect_schema(schema: Any, known: dict[str, dict[str, Any]], space: str = "") -> dict[str, Any]:
    """The schema of Connect that an Avro schema stands for, as far as decoders look at it.

    Args:
        schema: the Avro schema.
        known: what became of named schemas that came before, by their full names; grows.
        space: the namespace around it.
    """
    if isinstance(schema, list):
        some = [part for part in schema if part != "null"]
        return {**connect_schema(some[0], known, space), "optional": True} if len(some) == 1 else {"type": "union"}
    if isinstance(schema, str):
        return known.get(schema) or known.get(f"{space}.{schema}") or {"type": _KINDS.get(schema, schema), "optional": False}
    kind = schema["type"]
    if isinstance(kind, list | dict):
        return connect_schema(kind, known, space)
    made: dict[str, Any] = {"type": _KINDS.get(kind, kind), "optional": False}
    if (label := schema.get("connect.name") or _NAMES.get(schema.get("logicalType", ""))) is not None:
        made["name"] = label
    if (scale := schema.get("connect.parameters", {}).get("scale", schema.get("scale"))) is not None:
        made["parameters"] = {"scale": str(scale)}
    named = schema.get("name", "")
    if named:
        space = schema.get("namespace") or space
        named = named if "." in named or not space else f"{space}.{named}"
        known[named] = dict(made)  # for where it names itself
    if kind == "record":
        made["fields"] = [{**connect_schema(part["type"], known, space), "field": part["name"]} for part in schema["fields"]]
    if named:
        known[named] = made
    return made


def _octets(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError
