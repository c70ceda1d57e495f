"""Small tables and events for the tests of sources: one line builds a table, one line an event."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from careful import decode_csv, decode_json

from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import DebeziumSource, Source
from rejoin.sources.shapes import registry
from rejoin.sources.stored_files import lines as numbered

CAPTURES = Path(__file__).parents[2] / "data" / "captures"


def table(ddl: str, key: str = "id", source: Source | None = None) -> Table:
    """``table("id BIGINT; name STRING")``; columns are separated by semicolons."""
    columns = tuple(Column(*part.strip().split(" ", 1)) for part in ddl.split(";"))
    names = tuple(column.name for column in columns)
    return Table("orders", tuple(key.split(",")), columns, source or DebeziumSource("orders"), names)


def event(op: str | None = "u", key: Any = None, after: Any = None, **parts: Any) -> dict[str, Any]:
    """A PostgreSQL event as a line; ``lsn``, ``source``, ``before``, ``transaction``, ``headers``, ``topic`` override."""
    key = {"id": 1} if key is None else key
    source = parts.get("source", {"connector": "postgresql", "lsn": parts.get("lsn", 100)})
    value = {"op": op, "before": parts.get("before"), "after": after, "source": source, "transaction": parts.get("transaction")}
    line = {"key": json.dumps(key), "value": json.dumps(value), "headers": parts.get("headers", {})}
    return line | ({"topic": parts["topic"]} if "topic" in parts else {})


def decode(of: Table, *lines: Any, file: str = "f.jsonl", index: int = 0) -> list[dict[str, Any]]:
    """Lines (bytes, or objects to be written as JSON) -> events as dicts."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return rows(registry.decode(of, file, index, iter(enumerate(raw, 1))))


def decode_snapshot(of: Table, text: str | bytes, how: str = "csv", ordinal: int = 7) -> list[dict[str, Any]]:
    data = text.encode() if isinstance(text, str) else text
    lines = numbered(iter([data]))
    read = decode_csv if how == "csv" else decode_json
    return rows(read(of, ordinal, "f.csv", 0, lines))


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def capture(of: Table, name: str) -> list[dict[str, Any]]:
    lines = (CAPTURES / name).read_bytes().splitlines()
    return rows(registry.decode(of, name, 0, iter(enumerate(lines, 1))))
