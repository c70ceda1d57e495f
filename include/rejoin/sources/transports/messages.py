"""What all transports share whose records are messages: a key and a value, either of which may be missing, at an offset of a log.

Shapes read lines, so a message becomes one: ``{"key":K,"value":V,"topic":T}``, or its value alone (``registry.reads_messages``). Bytes of others become
part of a line only if they are one JSON document, whole and nothing else; what is none becomes a text in it, which the shape then refuses as one
that is no JSON. So no message can pass for something that nobody has written, and each has its fate from the same decoder as a line of a file.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter, eq, itemgetter
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa

from rejoin.errors import BadRecord
from rejoin.plan.model.sources import Meaning, names_fields
from rejoin.plan.pin import Part, Pin
from rejoin.sources.declared_columns import check_records, names_of
from rejoin.sources.events import raw_text
from rejoin.sources.formats.json_text import loads_shallow, whole_document
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.mapped import decoder as mapped
from rejoin.sources.transports.transport import Transport

Headers = Sequence[tuple[str, bytes | None]]
KEY_CHANGES = ("__debezium.oldkey", "__debezium.newkey")
"""The headers that shapes read, unless a declaration names others."""
_LF = b"\n"


class Message(NamedTuple):
    """One record of a log. ``key``, ``value``: None if it has none."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None = None


class Messages(NamedTuple):
    """Some records of a log, by columns."""

    offsets: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers | None]

    @staticmethod
    def of(messages: Iterable[Message]) -> "Messages":
        """Single ones."""
        found = list(messages)
        return Messages([m.offset for m in found], [m.key for m in found], [m.value for m in found], [m.headers for m in found])

    def each(self) -> Iterator[Message]:
        """One by one."""
        return map(Message, *self)


class MessageTransport(Transport):
    """A transport of messages. A subclass says where they are, and reads them again by their offsets."""

    @abstractmethod
    def messages(self, part: Part, wanted: Collection[int] | None = None) -> Iterator[Messages]:
        """The messages of a part in the order of their offsets, some at a time. ``wanted``: only those at these offsets, as far as they are there.

        Raises:
            SourceError, SourceDown: they are not all there any more, or cannot be read.
        """

    @abstractmethod
    def topic(self, part: Part) -> str:
        """The name that messages of a part have been sent to: letters, digits, and ``._-``."""

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """The messages of a part as events: ``_line`` is the offset.

        Raises:
            SchemaDrift: what the first records of a stream have is not what is declared.
        """
        part, offsets = pin.parts[index], Offsets()
        pieces, feed = self._pieces(part, offsets), self.table.source.meaning is Meaning.FEED
        if not feed:
            pieces = self._of_columns(part, pieces)
        named = names_fields(self.table.source)
        decode = mapped.decode_messages if named else registry.decode_pieces if feed else snapshot.decode_json_pieces
        for batch in decode(self.table, pin.ordinal, part.id, index, pieces):
            yield offsets.of_lines(batch)

    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """Messages as the lines that their shape has read."""
        line = self._writer(part)
        for some in self.messages(part, wanted):
            yield from ((message.offset, raw_text(line.one(message))) for message in some.each())

    def _of_columns(self, part: Part, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces, if the first of them has the declared columns: one that was renamed would be null from then on."""
        for number, piece in enumerate(pieces):
            if not number:
                lines = piece.split(_LF)
                named = names_fields(self.table.source)
                check_records(self.table, part.id, mapped.fields_of_messages(self.table, lines) if named else names_of(lines))
            yield piece

    def _pieces(self, part: Part, offsets: "Offsets") -> Iterator[bytes]:
        line = self._writer(part)
        for some in self.messages(part):
            if some.offsets:
                offsets.add(some.offsets)
                yield line.all(some)

    def _writer(self, part: Part) -> "Line":
        if names_fields(self.table.source):
            return Line(self.topic(part), mapped.headers(self.table))
        return Line(self.topic(part)) if registry.reads_messages(self.table) else Value()


class Line:
    """Makes lines of whole messages. ``topic``: where they have been sent to; ``headers``: which ones are read."""

    def __init__(self, topic: str, headers: Collection[str] = KEY_CHANGES) -> None:
        self._headers = headers
        self._end = b',"topic":"%b"}' % topic.encode()

    def all(self, messages: Messages) -> bytes:
        """The lines of messages, each with its line feed."""
        lines = self._quick(messages)
        return _LF.join([*map(self.one, messages.each()), b""]) if lines is None else lines

    def one(self, message: Message) -> bytes:
        """The line of a message, without a line feed."""
        return b'{"key":%b,"value":%b%b%b' % (document(message.key), document(message.value), self._named(message.headers), self._end)

    def _quick(self, messages: Messages) -> bytes | None:
        """The same at once, where every key and value can stand as it is; else None."""
        keys, values = _or_null(messages.keys), _or_null(messages.values)
        parts = [b'{"key":', b"", b',"value":', b"", self._end + _LF] * len(keys)
        parts[1::5], parts[3::5] = keys, values
        if any(messages.headers):
            for at, headers in enumerate(messages.headers):
                parts[5 * at + 4] = self._named(headers) + self._end + _LF
        lines = b"".join(parts)
        found = _documents(_both, lines, len(keys))
        return lines if found and _are(map(_key, found), keys) and _are(map(_value, found), values) else None

    def _named(self, headers: Headers | None) -> bytes:
        """The member of a line with the headers that are read."""
        kept = {name: value for name, value in headers or () if name in self._headers}
        if not kept:
            return b""
        return b',"headers":{%b}' % b",".join(b"%b:%b" % (json.dumps(name).encode(), document(value)) for name, value in kept.items())


class Value(Line):
    """Makes lines of the values of messages alone."""

    def __init__(self) -> None:
        super().__init__("")

    def one(self, message: Message) -> bytes:
        """The line of a message."""
        return document(message.value)

    def _quick(self, messages: Messages) -> bytes | None:
        values = _or_null(messages.values)
        lines = _LF.join([*values, b""])
        found = _documents(_alone, lines, len(values))
        return lines if found and _are(found, values) else None


class _Both(msgspec.Struct, gc=False):
    """Of a line."""

    key: msgspec.Raw
    value: msgspec.Raw


_both, _alone = msgspec.json.Decoder(_Both).decode_lines, msgspec.json.Decoder(msgspec.Raw).decode_lines
_key, _value, _first = attrgetter("key"), attrgetter("value"), itemgetter(0)
_NOT_FIRST = frozenset(b'" \t\r\n')
"""A text, or what stands before one."""


def _or_null(written: Sequence[bytes | None]) -> Sequence[bytes]:
    return [b"null" if one is None else one for one in written] if None in written else cast("Sequence[bytes]", written)


def _documents(how: Callable[[bytes], list[Any]], lines: bytes, count: int) -> list[Any] | None:
    """What msgspec finds in lines; None if it is not one thing in each."""
    try:
        found = how(lines)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if len(found) == lines.count(_LF) == count else None


def _are(found: Iterable[msgspec.Raw], written: Sequence[bytes]) -> bool:
    """Whether what was found in lines is what was written there, and can stand as it is.

    Nothing but that has room in a line: a key that is no document and becomes one by what follows is longer, one that brings members of its own is shorter.
    """
    return all(map(eq, map(len, found), map(len, written))) and _NOT_FIRST.isdisjoint(map(_first, written))


def document(written: bytes | None) -> bytes:
    """Bytes of others as a JSON document on one line: themselves if they are one, null if there are none, else a JSON text that holds them.

    A document that is itself a text becomes a text of that, as shapes take a text for one that holds JSON.
    """
    if written is None:
        return b"null"
    try:
        # Its letters may be no UTF-8, but for those that JSON is made of. A line of such is no UTF-8 either, which the shape sees.
        found = bytes(whole_document(written))
    except (msgspec.MsgspecError, RecursionError):
        return _unsure(written)
    if found.startswith(b'"'):
        return _as_text(found)
    return found.translate(_ON_ONE_LINE) if _LF in found or b"\r" in found else found


_ON_ONE_LINE = bytes.maketrans(b"\n\r", b"  ")
"""No text of JSON has a line feed in it: between members it is a blank."""


def _unsure(written: bytes) -> bytes:
    """What msgspec refuses, and Python may take: texts with half a surrogate."""
    try:
        text = written.decode()
        found = loads_shallow(text)
    except (BadRecord, UnicodeDecodeError):
        return _as_text(written)
    whole = text.strip(" \t\r\n").encode()
    return _as_text(whole) if type(found) is str else whole.translate(_ON_ONE_LINE)


def _as_text(written: bytes) -> bytes:
    """A JSON text of these bytes, those that are no UTF-8 among them."""
    return json.dumps(written.decode(errors="surrogateescape"), ensure_ascii=False).encode(errors="surrogateescape")


class Offsets:
    """At which offset the message of a line is. Lines are numbered from 1 on, and asked for in their order."""

    def __init__(self) -> None:
        self._first, self._at = 1, [np.zeros(0, np.int64)]

    def add(self, offsets: list[int]) -> None:
        """The offsets of the next lines."""
        self._at.append(np.array(offsets, np.int64))

    def noted(self, messages: Messages) -> Messages:
        """Messages as they are, whose offsets are those of the next lines."""
        self.add(messages.offsets)
        return messages

    def of_lines(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Events with the offset of its message for the line of each."""
        if not events.num_rows:
            return events
        known, lines = np.concatenate(self._at), events["_line"].to_numpy()
        at = events.schema.get_field_index("_line")
        found = events.set_column(at, events.schema.field(at), pa.array(known[lines - self._first]))
        done = int(lines[-1]) - self._first
        self._first, self._at = self._first + done, [known[done:]]
        return found
