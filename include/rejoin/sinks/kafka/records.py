"""Changes of an output as records of a topic: key, value and headers. Pure; the same change always gives the same bytes.

JSON: a decimal is a text with all its digits and no exponent, a binary value base64, a date ``2024-05-01``, a timestamp ISO 8601 in UTC with ``Z``, one without
time zone the same without ``Z``; not-a-number and infinities, which JSON lacks, are texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mmh3
import msgspec
import pyarrow as pa

from rejoin.lake.query.arrow_values import rows, values
from rejoin.plan.model.sinks import KafkaSink, Key, Value
from rejoin.sinks.json_values import JsonTexts, Row

Encode = Callable[[Any], bytes]

RUN, EVENT, OP = "rejoin.run", "rejoin.event", "rejoin.op"
"""Header names: the run of the change, its id (the same wherever and however often it is delivered), and what it is (c, u, d, r)."""

OPS = {"I": "c", "U": "u", "D": "d", "R": "r"}
"""Our letters and Debezium's."""


@dataclass(frozen=True)
class Record:
    """One record. ``row`` is the row that it is about: after the change, or before a delete; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    row: Row


@dataclass(frozen=True)
class Encoding:
    """How keys and envelopes become bytes."""

    key: Encode
    value: Encode


def json_encoding(sink: KafkaSink, types: pa.Schema) -> Encoding:
    """JSON as the sink wants it, for rows with columns of these types."""
    encode, texts = msgspec.json.Encoder().encode, JsonTexts(types)

    def text(key: Row) -> bytes:
        value = next(iter(texts.decimals(key).values()))
        return value.encode() if isinstance(value, str) else encode(value).strip(b'"')

    def value(image: Row) -> bytes:
        sides = ("before", "after") if sink.value is Value.ENVELOPE else ()
        said = {side: None if image[side] is None else texts.all(image[side]) for side in sides}
        return encode({**image, **said} if sides else texts.all(image))

    return Encoding(text if sink.key is Key.TEXT else lambda key: encode(texts.decimals(key)), value if texts else encode)


class Records:
    """Makes the records of one output for one sink.

    Args:
        topology: for the envelope's source, and event ids.
        output: the same.
        key: the output's key columns.
        sink: what the records shall hold.
        encoding: how.
    """

    def __init__(self, topology: str, output: str, key: Sequence[str], sink: KafkaSink, encoding: Encoding) -> None:
        self._name, self._key, self._value, self._encoding = f"{topology}.{output}", tuple(key), sink.value, encoding
        self._source = {"connector": "rejoin", "topology": topology, "table": output}
        self._canonical = msgspec.json.Encoder().encode

    def of(self, batch: pa.RecordBatch) -> Iterator[Record]:
        """The records of a batch of changes (``lake.read.change_feed``), in its order."""
        runs, ops = values(batch["_run"]), values(batch["_op"])
        keys = zip(*(values(batch[k]) for k in self._key), strict=True)
        new = rows(batch["_after"])
        old = rows(batch["_before"]) if self._value is Value.ENVELOPE else [None] * len(new)
        for run, op, key, before, after in zip(runs, ops, keys, old, new, strict=True):
            yield self._record(run, op, dict(zip(self._key, key, strict=True)), before, after)

    def _record(self, run: int, op: str, key: Row, before: Row | None, after: Row | None) -> Record:
        headers = ((RUN, b"%d" % run), (EVENT, event_id(self._name, run, self._canonical(key)).encode()), (OP, OPS[op].encode()))
        return Record(self._encoding.key(key), self._body(run, op, before, after), headers, after or before or key)

    def _body(self, run: int, op: str, before: Row | None, after: Row | None) -> bytes | None:
        if after is None:
            return None
        if self._value is Value.KEY:
            return b""
        if self._value is Value.ROW:
            return self._encoding.value(after)
        source = {**self._source, "run": run, "snapshot": op == "R"}
        return self._encoding.value({"op": OPS[op], "before": before, "after": after, "source": source})


def event_id(output: str, run: int, key: bytes) -> str:
    """The id of a change: an output has at most one a key and run."""
    return f"{output}/{run}/{mmh3.hash_bytes(key).hex()}"
