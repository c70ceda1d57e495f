"""The wrapping of a Debezium message: JSON text or object, with or without schema; which converters read its columns."""

import re
from contextlib import suppress
from typing import Any, NamedTuple

from rejoin.errors import BadRecord
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.decode.column_values import ColumnConverter, ColumnHints
from rejoin.sources.decode.values import Convert, Field, converter
from rejoin.sources.events import Layout
from rejoin.sources.formats.json_text import Unsure, loads, prefix_before_payload, quick
from rejoin.sources.shapes.debezium.message import has_schema

_SCALE = re.compile(r"-?[0-9]{1,4}")
Converters = tuple[tuple[str, Convert], ...]


class Readers(NamedTuple):
    """The converters of the key columns (in key order) and of the others (in declared order); the same for whole columns."""

    key: Converters
    values: Converters
    whole_key: tuple[ColumnConverter, ...]
    whole_values: tuple[ColumnConverter, ...]


class Unwrapper:
    """Turns keys, or values, of one file into (payload, readers of its schema).

    Events of one table repeat their schema word for word, several kilobytes each. As long as the text before ``"payload"`` is the
    same as in the last event, only the payload is parsed.

    Attributes:
        schema: the last one that was unwrapped.
        prefix: that text, None after a document that was no text.
    """

    def __init__(self, table: Table, *, envelope: bool) -> None:
        source = table.source
        self._units = dict(source.units) if isinstance(source, DebeziumSource) else {}
        self._layout = Layout(table)
        self._envelope = envelope
        self.prefix: str | None = None
        self.schema: Any = None
        self._of_schema = self._without_schema = self._compile({})

    def unwrap(self, document: Any) -> tuple[Any, Readers]:
        """A key or value as the line has it -> (payload, readers); ``BadRecord`` if the text is no JSON."""
        if type(document) is not str:
            return self._payload(document)
        prefix = self.prefix
        if prefix is not None and document.startswith(prefix) and document.endswith("}"):
            with suppress(BadRecord):  # what it is then, the whole document says
                return loads(document[len(prefix) : -1]), self._of_schema
        whole = loads(document)
        found = self._payload(whole)
        if whole is not found[0]:
            self.prefix = prefix_before_payload(document)
        return found

    def peek(self, document: Any) -> tuple[Any, bool]:
        """(payload, whether it has a schema) as ``unwrap`` would find, if that is certain and would leave this object as it is.

        Raises ``Unsure`` else. The schema is the last one that ``unwrap`` saw.
        """
        if type(document) is str:
            prefix = self.prefix
            if prefix is not None and document.startswith(prefix) and document.endswith("}"):
                return quick(document[len(prefix) : -1]), True
            document = quick(document)
            if type(document) is dict and "payload" in document:
                raise Unsure
        elif type(document) is dict and "payload" in document and document.keys() == {"schema", "payload"}:
            if self.prefix is None and type(document["schema"]) is dict and document["schema"] == self.schema:
                return document["payload"], True
            raise Unsure
        return document, False

    def readers(self, *, has_schema: bool) -> Readers:
        """The readers of what ``peek`` found."""
        return self._of_schema if has_schema else self._without_schema

    def _payload(self, document: Any) -> tuple[Any, Readers]:
        if type(document) is not dict or not has_schema(document):
            return document, self._without_schema
        schema, self.prefix = document["schema"], None
        if schema is None:
            self.schema, self._of_schema = None, self._without_schema
        elif schema != self.schema:
            self.schema, self._of_schema = schema, self._compile(fields_of(schema, envelope=self._envelope))
        return document["payload"], self._of_schema

    def _compile(self, fields: dict[str, Field]) -> Readers:
        def one(column: Column) -> tuple[str, Convert, ColumnConverter]:
            name, type_, seen = column.name, str(column.type), set[str]()
            unit, field = self._units.get(name, "us"), fields.get(name)
            convert = converter(name, type_, unit=unit, field=field, seen=seen)
            return (
                name,
                convert,
                ColumnConverter(type_, self._layout.schema.field(name).type, convert, "debezium", ColumnHints(unit, field, seen)),
            )

        key, values = [one(column) for column in self._layout.key], [one(column) for column in self._layout.values]
        converters = [tuple((name, convert) for name, convert, _ in part) for part in (key, values)]
        wholes = [tuple(whole for _, _, whole in part) for part in (key, values)]
        return Readers(converters[0], converters[1], wholes[0], wholes[1])


def fields_of(schema: dict[str, Any], *, envelope: bool) -> dict[str, Field]:
    """The row's fields in a Connect schema: of the envelope's ``after``, or of the struct itself."""
    members = _members(schema)
    if envelope:
        members = _members(next((f for f in members if f.get("field") == "after"), {}))
    return {str(f.get("field")): _field(f) for f in members}


def _members(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a struct that are fields: a schema comes with each record, and may be damaged as any part of it."""
    fields = schema.get("fields")
    return [f for f in fields if type(f) is dict] if type(fields) is list else []


def _field(schema: dict[str, Any]) -> Field:
    parameters = schema.get("parameters")
    text = parameters.get("scale") if type(parameters) is dict else None
    scale = int(text) if type(text) is str and _SCALE.fullmatch(text) else None
    type_, name = (found if type(found := schema.get(of)) is str else None for of in ("type", "name"))
    inside = {of: part for of, part in (("element", schema.get("items")), ("value", schema.get("values"))) if type(part) is dict}
    parts = [*((str(f.get("field")), f) for f in _members(schema)), *inside.items()]
    return Field(type_, name, scale, tuple((of, _field(part)) for of, part in parts))
