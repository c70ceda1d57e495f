"""Records of Avro and Parquet as Kafka Connect's JSON converter writes them: with their schema, times as whole numbers, bytes and decimals as base64.

So what reads JSON with schemas reads these too, exactly: names of types of Connect and Debezium stand in Avro schemas (``connect.name``).
"""

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

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


def documents(schema: Mapping[str, Any], records: Iterable[Any]) -> Iterator[bytes]:
    """Records with their Connect schema -> lines ``{"schema":..,"payload":..}``."""
    front = b'{"schema":%b,"payload":' % json.dumps(schema).encode()
    for record in records:
        yield front + json.dumps(_written(record), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"}\n"


def of_avro(schema: Any) -> dict[str, Any]:
    """The Connect schema that an Avro schema stands for."""
    return _of_avro(schema, {}, "")


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
    return {"type": "struct", "fields": [{"field": field.name, "optional": True, **_of_arrow(field.type)} for field in schema]}


def physical_arrow(values: pa.Array) -> pa.Array:
    """Arrow values with times as numbers, in structs too; seconds as milliseconds."""
    kind = values.type
    if pat.is_dictionary(kind):
        return physical_arrow(values.dictionary_decode())
    if pat.is_struct(kind):
        return pa.StructArray.from_arrays([physical_arrow(v) for v in values.flatten()], [f.name for f in kind], mask=values.is_null())
    if pat.is_timestamp(kind) and kind.unit == "s":
        return values.cast(pa.timestamp("ms", kind.tz)).cast(pa.int64())
    if pat.is_date32(kind) or pat.is_time32(kind):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pat.is_timestamp(kind) or pat.is_time64(kind) else values


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
    if name := schema.get("connect.name") or _LOGICAL.get(schema.get("logicalType", "")):
        made["name"] = name
    if "scale" in schema or schema.get("logicalType") == "decimal":
        made["parameters"] = {"scale": str(schema.get("scale", 0))}
    if kind in ("record", "enum", "fixed"):
        space = schema.get("namespace", schema["name"].rpartition(".")[0] or space)
        known[schema["name"] if "." in schema["name"] else f"{space}.{schema['name']}".lstrip(".")] = made
    if kind == "record":
        made["fields"] = []  # known before its fields are, as one may be of this type again
        made["fields"] = [{"field": f["name"], **_of_avro(f["type"], known, space)} for f in schema["fields"]]
    return made


def _of_arrow(kind: pa.DataType) -> dict[str, Any]:
    if pat.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    if pat.is_struct(kind):
        return of_arrow(kind)
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


def _written(value: Any) -> Any:
    """A value as the JSON converter writes it."""
    if isinstance(value, dict):
        return {name: _written(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_written(v) for v in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
