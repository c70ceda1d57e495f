"""Records of Avro and Parquet as Kafka Connect's JSON converter writes them: with their schema, times as whole numbers, bytes and decimals as base64.

So what reads JSON with schemas reads these too, exactly: names of types of Connect and Debezium stand in Avro schemas (``connect.name``), and the metadata
of a field of Arrow may say another type than its own (``connect.type``).
"""

import base64
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

TYPE = "connect.type"
_CONNECT = "org.apache.kafka.connect.data."
_PLAIN = {"int": "int32", "long": "int64", "bytes": "bytes", "string": "string", "boolean": "boolean", "float": "float", "double": "double"}
_LOGICAL = {
    "decimal": f"{_CONNECT}Decimal",
    "date": f"{_CONNECT}Date",
    "time-millis": f"{_CONNECT}Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": f"{_CONNECT}Timestamp",
    "local-timestamp-millis": f"{_CONNECT}Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "local-timestamp-nanos": "io.debezium.time.NanoTimestamp",
}
_OF_UNIT = {"ms": _LOGICAL["timestamp-millis"], "us": _LOGICAL["timestamp-micros"], "ns": _LOGICAL["timestamp-nanos"]}


def document(schema: Mapping[str, Any]) -> Callable[[Any], bytes]:
    """What makes ``{"schema":..,"payload":..}`` of a record with this Connect schema."""
    front = b'{"schema":%b,"payload":' % _text(schema)

    def of(record: Any) -> bytes:
        try:
            payload = _text(record)
        except ValueError:  # a number that JSON does not have
            payload = _text(_finite(record))
        return b"%b%b}" % (front, payload)

    return of


def _text(value: Any) -> bytes:
    text = json.dumps(value, default=_written, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # a half of a surrogate as JSON writes it


def of_avro(schema: Any) -> dict[str, Any]:
    """The Connect schema that an Avro schema stands for."""
    return _of_avro(schema, {}, "")


def decimal_scale(schema: Mapping[str, Any]) -> int | None:
    """The scale of a decimal, as which octets of an Avro schema are read; None: they are none."""
    scale = _scale(schema)
    return int(scale) if _name(schema) == _LOGICAL["decimal"] and str(scale).isdigit() else None


def _name(schema: Mapping[str, Any]) -> str | None:
    return schema.get("connect.name") or _LOGICAL.get(schema.get("logicalType", ""))


def _scale(schema: Mapping[str, Any]) -> Any:
    said = schema.get("scale", 0 if schema.get("logicalType") == "decimal" else None)
    return schema.get("connect.parameters", {}).get("scale", said)


def physical_avro(schema: Any) -> Any:
    """An Avro schema by which numbers and bytes are read as they are stored."""
    if isinstance(schema, list):
        return [physical_avro(part) for part in schema]
    if isinstance(schema, dict):
        return {k: [{**f, "type": physical_avro(f["type"])} for f in v] if k == "fields" else physical_avro(v) if k in _INSIDE else v
                for k, v in schema.items() if k != "logicalType"}  # fmt: skip
    return schema


_INSIDE = ("type", "items", "values")


def of_arrow(schema: pa.Schema | pa.StructType) -> dict[str, Any]:
    """The same of an Arrow schema."""
    return {
        "type": "struct",
        "fields": [{"field": field.name, "optional": True, **_of_arrow(field.type), **_said(field)} for field in schema],
    }


def _said(field: pa.Field) -> dict[str, str]:
    type_ = (field.metadata or {}).get(TYPE.encode())
    return {} if type_ is None else {"type": type_.decode()}


def _of_avro(schema: Any, known: dict[str, Any], space: str) -> dict[str, Any]:
    if isinstance(schema, list):
        others = [part for part in schema if part != "null"]
        return {**(_of_avro(others[0], known, space) if len(others) == 1 else {"type": "union"}), "optional": "null" in schema}
    if isinstance(schema, str):
        if schema in _PLAIN:
            return {"type": _PLAIN[schema]}
        return dict(known.get(schema if "." in schema else f"{space}.{schema}".lstrip("."), {"type": "struct"}))
    kind = schema["type"]
    if not isinstance(kind, str):
        return _of_avro(kind, known, space)
    made: dict[str, Any] = {"type": {"record": "struct", "enum": "string", "fixed": "bytes"}.get(kind, _PLAIN.get(kind, kind))}
    if name := _name(schema):
        made["name"] = name
    if (scale := _scale(schema)) is not None:
        made["parameters"] = {"scale": str(scale)}
    if kind in ("record", "enum", "fixed"):
        space = schema.get("namespace", schema["name"].rpartition(".")[0] or space)
        known[schema["name"] if "." in schema["name"] else f"{space}.{schema['name']}".lstrip(".")] = made
    made |= {inside: _of_avro(schema[inside], known, space) for inside in ("items", "values") if inside in schema}
    if kind == "record":
        made["fields"] = []  # known before its fields are, as one may be of this type again
        made["fields"] = [{"field": f["name"], **_of_avro(f["type"], known, space)} for f in schema["fields"]]
    return made


def _of_arrow(kind: pa.DataType) -> dict[str, Any]:
    if pat.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    if pat.is_struct(kind):
        return of_arrow(kind)
    if pat.is_map(kind):
        return {"type": "map", "keys": _of_arrow(kind.key_type), "values": _of_arrow(kind.item_type)}
    if pat.is_list(kind) or pat.is_large_list(kind):
        return {"type": "array", "items": _of_arrow(kind.value_type)}
    if pat.is_decimal(kind):
        return {"type": "bytes", "name": _LOGICAL["decimal"], "parameters": {"scale": str(kind.scale)}}
    if pat.is_date32(kind):
        return {"type": "int32", "name": _LOGICAL["date"]}
    if pat.is_timestamp(kind):
        return {"type": "int64", "name": _OF_UNIT.get(kind.unit, _OF_UNIT["ms"])}
    tests = {
        "boolean": pat.is_boolean(kind),
        "int32": pat.is_integer(kind) and kind.bit_width < 64 and kind != pa.uint32(),
        "int64": pat.is_integer(kind),
        "float": pat.is_float32(kind),
        "double": pat.is_floating(kind),
        "bytes": pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind),
    }
    return {"type": next((name for name, fits in tests.items() if fits), "string")}


def _written(value: Any) -> str:
    """A value that JSON does not have as the JSON converter writes it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
    return str(value)


def _finite(value: Any) -> Any:
    """A value with texts for the numbers that are none or infinite."""
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
