"""Lines that are read both ways, by DuckDB and by the careful decoder, and lines of a feed to try it with."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from careful import decode_json
from source_cases import table
from source_fuzz import PLAIN

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, FeedSource, SnapshotSource
from rejoin.sources.decode import proven_lines, record_runs
from rejoin.sources.decode.proven_rows import Proven
from rejoin.sources.formats import line_chunks
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.debezium import decimals
from rejoin.sources.stored_files import lines as numbered

STYLES = ((",", ":"), (", ", ": "))


def rows(batches: Iterator[pa.RecordBatch]) -> list[str]:
    """As text, since NaN is not equal to itself and -0.0 is equal to 0.0."""
    return [repr(row) for batch in batches for row in batch.to_pylist()]


def _decoded(of: Table, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    batches = registry.decode(of, "f.jsonl", 3, lines)
    return (registry.placed(batch, 1) for batch in batches) if registry.is_by_arrival(of) else batches


def check(of: Table, data: bytes, chunk: int = 60) -> tuple[int, int]:
    """Reads a file both ways, in small batches and chunks of so many lines. How many lines were proven, and how many records there are."""
    is_feed, judged, found = isinstance(of.source, DebeziumSource | FeedSource), proven_lines._judged, dict[int, int]()

    def counted(chunk: line_chunks.Chunk, queries: Sequence[str]) -> Proven | None:
        made = judged(chunk, queries)
        found[chunk.first] = 0 if made is None else len(chunk.ends) - len(made.others)  # by several threads
        return made

    with ExitStack() as patches:
        for module in (record_runs, decimals):
            patches.enter_context(patch.object(module, "BATCH_ROWS", 10))
        lines = numbered(iter([data]))
        careful = rows(_decoded(of, lines) if is_feed else decode_json(of, 7, "f.jsonl", 3, lines))
        for name, value in (("LINES", chunk), ("FEWEST", 0)):
            patches.enter_context(patch.object(line_chunks, name, value))
        patches.enter_context(patch.object(proven_lines, "_judged", counted))
        pieces = iter([data[i : i + 1000] for i in range(0, len(data), 1000)])
        fast = rows(
            registry.decode_pieces(of, 1, "f.jsonl", 3, pieces) if is_feed else snapshot.decode_json_pieces(of, 7, "f.jsonl", 3, pieces)
        )
    assert fast == careful
    return sum(found.values()), len(careful)


FORMS = ("objects", "texts", "rows")
"""How a row comes: in an event of a feed, in one whose key and value are texts (as Kafka holds them), or as a line of a snapshot."""


def of_form(form: str) -> DebeziumSource | SnapshotSource:
    """The source of lines of a form."""
    return SnapshotSource("f") if form == "rows" else DebeziumSource("f")


def created(number: int, row: str, form: str) -> str:
    """The line of a row, which is a text of JSON with the id ``number``."""
    if form == "rows":
        return row
    key, value = f'{{"id":{number}}}', f'{{"op":"c","source":{{"connector":"postgresql","lsn":{number}}},"after":{row}}}'
    return f'{{"key":{json.dumps(key)},"value":{json.dumps(value)}}}' if form == "texts" else f'{{"key":{key},"value":{value}}}'


def as_texts(line: bytes, style: tuple[str, str] = STYLES[0]) -> bytes:
    """The same line with its key and value as texts."""
    members = json.loads(line)
    for name in ("key", "value"):
        if members[name] is not None:
            members[name] = json.dumps(members[name], separators=STYLES[0], ensure_ascii=False)
    return json.dumps(members, separators=style, ensure_ascii=False).encode()


def line(op: str, key: dict[str, Any], after: Any, lsn: int, style: tuple[str, str] = STYLES[0], **others: Any) -> bytes:
    value = {"op": op, "source": {"connector": "postgresql", "lsn": lsn, "snapshot": "false"}, "before": None, "after": after}
    return json.dumps({"key": key, "value": value, **others}, separators=style, ensure_ascii=False).encode()


def tombstone(id_: int) -> bytes:
    return json.dumps({"key": {"id": id_}, "value": None}, separators=STYLES[0]).encode()


def plain(i: int, op: str = "u", **values: Any) -> bytes:
    row = {"id": i % 7, "name": f"n {i}", "n": i, "price": f"{i}.50", "at": f"2024-02-29T11:14:{i % 60:02d}Z", **values}
    return line(op, {"id": i % 7}, None if op == "d" else row, 100 + i)


ONE = table(PLAIN, "id", DebeziumSource("f"))
