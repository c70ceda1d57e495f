"""Messages of a topic, as lines ``{"key":..,"value":..,"headers":..}`` -> their fields as texts: those of the value; of the key, and headers, under names of
their own (``plan.sql.raw_fields``).

A document with its Connect schema is what its payload says. Then decimals that are written as bytes are numbers, and dates and times are ISO texts without
a zone, so that what the schema says of them is not lost. A key or header that is no JSON is a text. ``message_shapes`` finds the same by columns.
"""

import re
from collections.abc import Collection, Iterator
from collections.abc import Mapping as Known
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from rejoin.errors import BadRecord
from rejoin.plan.model.sources import Meaning
from rejoin.plan.sql.nested import ELEMENT, VALUE
from rejoin.plan.sql.raw_fields import KEY
from rejoin.sources.decode import temporal
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.values import CONNECT_DECIMAL, UNITS, Field, unscaled
from rejoin.sources.events import MISSING_KEY, Event, EventKind, raw_text
from rejoin.sources.formats.json_text import BAD_JSON, Number, as_written, json_members
from rejoin.sources.shapes.debezium.envelope import fields_of
from rejoin.sources.shapes.debezium.message import has_schema
from rejoin.sources.shapes.mapped import message_shapes
from rejoin.sources.shapes.mapped.json_fields import JsonFields, Line, field_text
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.mapped.message_shapes import OF_EITHER, OF_HEADERS, OF_KEY, VARIABLE

_INTEGER, _MOST_DIGITS = re.compile(r"-?[0-9]{1,19}"), 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNKNOWN = Field()


class MessageFields(JsonFields):
    """As ``JsonFields``, of lines that are messages. One of changes without value is a delete, whose fields are those of its key."""

    def __init__(self, mapping: Mapping) -> None:
        super().__init__(mapping)
        self._shape: Shape | None = None
        self._deletes = mapping.source.meaning is Meaning.FEED
        self._reads_key = any(name == KEY or name.startswith((OF_KEY, OF_EITHER)) for name in mapping.reads)
        self._bare = sum(name.startswith(OF_EITHER) for name in mapping.reads) == 1

    def whole(self, text: str) -> str:
        """The text of a line that was read, of which ``judge`` has the short one."""
        return text if self._shape is None else self._shape.whole(text)

    def names(self, raw: bytes) -> Iterator[str]:
        """The fields that a line has; none if it cannot be read."""
        try:
            message = self._message(raw)
        except BadRecord:
            return
        yield from message.value.said or ()
        if type(message.key.said) is dict:
            yield from (OF_KEY + name for name in message.key.said)
        elif message.key.said is not None:
            yield KEY

    def judge(self, shape: Shape) -> Judge | None:
        self._shape = shape
        return message_shapes.judged(self.layout.names, shape, bare=self._bare)

    def event(self, record: Line) -> Event:
        line, raw = record
        try:
            message = self._message(raw)
            values = [message.text(name) for name in self.layout.names]
        except BadRecord as bad:
            return self.layout.quarantined(line, bad, raw)
        if message.value.said is None:
            return Event(EventKind.DELETE, line, (), values, raw=raw_text(raw))
        absent = [name for name in self.layout.names if message.lacks(name)]
        return Event(EventKind.UPSERT, line, (), values, raw=raw_text(raw), absent=absent)

    def _message(self, raw: bytes) -> "_Message":
        line = json_members(raw)
        value, key = line.get("value"), _or_text(line.get("key")) if self._reads_key else None
        document = _Document.of(as_written(value) if type(value) is str else value, self.documents)
        if type(document.said) is not dict and (document.said is not None or not self._deletes):
            raise BadRecord(BAD_JSON, "the message has no value that is a JSON object")
        of_key = {name.removeprefix(OF_KEY) for name in self.documents if name.startswith(OF_KEY)}
        return _Message(document, _Document.of(key, of_key), line.get("headers") or {}, self._bare)


def _or_text(written: Any) -> Any:
    """What a text holds that is a key or header: JSON, if it begins as an object, an array or a text of JSON."""
    return as_written(written) if type(written) is str and written.lstrip(" \t\r\n").startswith(('"', "{", "[")) else written


@dataclass(frozen=True)
class _Document:
    """What a key or value says, without its schema, and what that says of its fields. ``documents``: those that may be objects and arrays."""

    said: Any
    documents: Collection[str]
    known: Known[str, Field] = field(default_factory=dict)

    @staticmethod
    def of(value: Any, documents: Collection[str]) -> "_Document":
        if type(value) is not dict or not has_schema(value):
            return _Document(value, documents)
        return _Document(value["payload"], documents, {} if value["schema"] is None else fields_of(value["schema"], envelope=False))

    def text(self, name: str) -> str | None:
        """The text of a member; null if there is none."""
        value, known = self.said.get(name) if type(self.said) is dict else None, self.known.get(name, _UNKNOWN)
        if type(value) in (dict, list) and name in self.documents and self.known:
            return field_text(name, _document(name, value, known), self.documents)
        told = _told(name, value, known)
        return field_text(name, value, self.documents) if told is None else told


def _document(name: str, value: Any, known: Field) -> Any:
    try:
        return _plain(name, value, known)
    except RecursionError:
        raise BadRecord(BAD_JSON, f"field {name!r} is too deep") from None


def _plain(name: str, value: Any, known: Field) -> Any:
    """A part of an array or object, with texts for what has a meaning by the schema."""
    told, parts = _told(name, value, known), dict(known.parts)
    if told is not None:
        return told
    if type(value) is list:
        return [_plain(f"{name}[]", one, parts.get(ELEMENT, _UNKNOWN)) for one in value]
    if type(value) is dict:
        of_map = parts.get(VALUE) if known.type == "map" else None
        return {member: _plain(f"{name}.{member}", one, of_map or parts.get(member, _UNKNOWN)) for member, one in value.items()}
    return value


def _told(name: str, value: Any, known: Field) -> str | None:
    """The text of a value that has a meaning by its schema; None of any other."""
    if value is None or known.name is None:
        return None
    if known.name == VARIABLE and type(value) is dict and value.keys() == {"scale", "value"}:
        return _number(name, value["value"], _whole(name, value["scale"], _MOST_DIGITS))
    if known.name == CONNECT_DECIMAL and known.type == "bytes":
        return _number(name, value, known.scale or 0)
    if (unit := UNITS.get(known.name)) is None:
        return None
    found = _EPOCH + timedelta(microseconds=temporal.from_unit(_whole(name, value, 2**63), unit, name))
    if unit == "days":
        return date.isoformat(found.date())
    whole, _, part = found.replace(tzinfo=None).isoformat(" ").partition(".")
    return f"{whole}.{part.rstrip('0')}" if part else whole


def _whole(name: str, value: Any, most: int) -> int:
    if type(value) is Number and _INTEGER.fullmatch(value) and abs(found := int(value)) <= most:
        return found
    raise BadRecord("VALUE_TYPE", f"field {name!r} is not the whole number that its schema says")


def _number(name: str, octets: Any, scale: int) -> str:
    """The text of a decimal that is written as its bytes."""
    if type(octets) is str and len(octets) <= _MOST_DIGITS and abs(scale) <= _MOST_DIGITS:
        return f"{unscaled(name, octets, scale):f}"
    raise BadRecord("VALUE_TYPE", f"field {name!r} is not the decimal that its schema says")


@dataclass(frozen=True)
class _Message:
    """``bare``: a key that is a single value is that of the only column that is made of either."""

    value: _Document
    key: _Document
    headers: Known[str, Any]
    bare: bool

    def text(self, name: str) -> str | None:
        """The text of a field; null if there is none."""
        if name.startswith(OF_HEADERS):
            return field_text(name, _or_text(self.headers.get(name.removeprefix(OF_HEADERS))), self.value.documents)
        if name == KEY:
            return self._whole_key
        if name.startswith(OF_EITHER):
            return self._either(name.removeprefix(OF_EITHER))
        return self.key.text(name.removeprefix(OF_KEY)) if name.startswith(OF_KEY) else self.value.text(name)

    def lacks(self, name: str) -> bool:
        """Whether a field is missing where it should be: in the value; in the key, if there is one."""
        if name == KEY:
            return type(self.key.said) is dict
        if name.startswith(OF_KEY):
            return self.key.said is not None and (type(self.key.said) is not dict or name.removeprefix(OF_KEY) not in self.key.said)
        return not name.startswith((OF_HEADERS, OF_EITHER)) and name not in self.value.said

    @property
    def _whole_key(self) -> str | None:
        return None if type(self.key.said) is dict else field_text(KEY, self.key.said)

    def _either(self, name: str) -> str | None:
        of_key, of_value = self.key.text(name), self.value.text(name)
        if self.bare and type(self.key.said) is not dict:
            of_key = self._whole_key
        if None not in (of_key, of_value) and of_key != of_value:
            raise BadRecord(MISSING_KEY, f"the message's key says another {name!r} than its value: columns= can say which one it is")
        return of_key if of_value is None else of_value
