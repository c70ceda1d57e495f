"""Messages of Debezium in Avro by columns: those whose keys, and whose values, are written by the same schemas are told together."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from rejoin.sources.decode.column_shape import document
from rejoin.sources.decode.line_shape import Branch
from rejoin.sources.formats.avro_columns import ColumnReader, Datums
from rejoin.sources.formats.line_chunks import LINES
from rejoin.sources.shapes.debezium.columns import Chunk, Group
from rejoin.sources.transports.kafka.wire_format import HEAD, WireFormat, is_avro
from rejoin.sources.transports.messages import KEY_CHANGES, Line, Message

Heads = tuple[bytes, bytes]
"""With what keys, and values, begin."""


class WireColumns:
    """Makes chunks of the messages of one part. ``line``: how one is written as a line."""

    def __init__(self, wire: WireFormat, line: Line) -> None:
        self._wire, self._line = wire, line
        self._shapes: dict[Heads, tuple[Branch, ColumnReader, ColumnReader] | None] = {}

    def chunks(self, messages: Iterable[Message]) -> Iterator[Chunk]:
        """All messages, with the numbers of their lines, from 1."""
        first, rest = 1, iter(messages)
        while some := list(islice(rest, LINES)):
            yield self._chunk(first, some)
            first += len(some)

    def _chunk(self, first: int, messages: list[Message]) -> Chunk:
        groups = [found for heads, at in _together(messages).items() if (found := self._group(heads, at, messages)) is not None]
        mixed = any(written is not None and not is_avro(written) for m in messages for written in (m.key, m.value))
        return Chunk(first, len(messages), groups, lambda rows: self._written(messages, rows), mixed)

    def _written(self, messages: Sequence[Message], rows: Sequence[int]) -> Iterator[bytes]:
        of = self._wire.document
        return (self._line.one(m._replace(key=of(m.key), value=of(m.value))) for m in (messages[row] for row in rows))

    def _group(self, heads: Heads, at: list[int], messages: Sequence[Message]) -> Group | None:
        if heads not in self._shapes:
            self._shapes[heads] = self._shape(heads)
        if (known := self._shapes[heads]) is None:
            return None
        shape, of_keys, of_values = known
        keys, keys_sure = _columns(of_keys, [messages[i].key for i in at])
        values, values_sure = _columns(of_values, [messages[i].value for i in at])
        return Group(np.array(at), shape, pa.StructArray.from_arrays([keys, values], ["key", "value"]), keys_sure & values_sure)

    def _shape(self, heads: Heads) -> tuple[Branch, ColumnReader, ColumnReader] | None:
        key, value = map(self._wire.schema, heads)
        if key.columns is None or value.columns is None:
            return None
        root = Branch({"key": document(key.connect, key.columns.kind), "value": document(value.connect, value.columns.kind)})
        return root, key.columns, value.columns


def _together(messages: Sequence[Message]) -> dict[Heads, list[int]]:
    """Messages by the schemas that they are written by. A tombstone goes with some value of the same schema of keys; others are in no group."""
    found: dict[Heads, list[int]] = {}
    gone: dict[bytes, list[int]] = {}
    for i, (_, key, value, headers) in enumerate(messages):
        if key is None or not is_avro(key) or (headers and any(name in KEY_CHANGES for name, _ in headers)):
            continue
        if value is None:
            gone.setdefault(key[:HEAD], []).append(i)
        elif is_avro(value):
            found.setdefault((key[:HEAD], value[:HEAD]), []).append(i)
    for heads, at in found.items():
        if heads[0] in gone:
            at[:] = sorted(at + gone.pop(heads[0]))
    return found


def _columns(reader: ColumnReader, written: Sequence[bytes | None]) -> tuple[pa.StructArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Keys or values as documents without their schema; null for those that there are not."""
    there = np.array([one is not None for one in written])
    datums = [one for one in written if one is not None]
    ends = np.cumsum([len(one) for one in datums])
    starts = ends - np.array([len(one) - HEAD for one in datums], np.int64)
    found, sure = reader.columns(Datums(b"".join(datums), starts, ends))
    if there.all():
        return pa.StructArray.from_arrays([found], ["payload"]), sure
    which = np.cumsum(there) - 1
    all_sure = np.ones(len(written), np.bool_)
    all_sure[there] = sure
    return pa.StructArray.from_arrays([found.take(pa.array(which, mask=~there))], ["payload"], mask=pa.array(~there)), all_sure
