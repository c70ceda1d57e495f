"""Avro schemas as far as their datums are told by columns: records, values, and unions of one of these with null."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoin.sources.formats.connect_json import decimal_scale

_LARGEST = 1024
"""Octets that a value of a fixed size has, at most."""
_PLAIN = ("null", "boolean", "int", "long", "float", "double", "string", "bytes")


@dataclass(frozen=True)
class Value:
    """A value.

    Attributes:
        kind: its Avro type, or ``decimal``.
        size: how many octets it has; None: that depends, or is written in front of them.
        scale: of a decimal.
        symbols: of an enum.
    """

    kind: str
    size: int | None = None
    scale: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class Optional:
    """A union with null. ``present``: the byte that says that a value follows; the other one is 0 or 2."""

    present: int
    of: "Node"


@dataclass(frozen=True)
class Record:
    """Fields, one behind the other."""

    fields: tuple[tuple[str, "Node"], ...]

    @property
    def size(self) -> int:
        """How many values and unions it has, in all its depth."""
        return sum(_size(node) for _, node in self.fields)


Node = Value | Optional | Record


def told(schema: Any) -> Record | None:
    """The record that a schema is; None if it is none, is damaged, or has arrays, maps, unions of several types, or itself in itself."""
    try:
        found = _Reading().node(schema, "")
    except (_NotToldError, KeyError, TypeError, AttributeError):
        return None
    return found if isinstance(found, Record) else None


class _NotToldError(Exception):
    """A schema has something else."""


class _Reading:
    """What is known of one schema by its names."""

    def __init__(self) -> None:
        self._named: dict[str, Node | None] = {}

    def node(self, schema: Any, space: str) -> Node:
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            known = Value(schema) if schema in _PLAIN else self._named.get(_full(schema, space))
            if known is None:  # a type that is not told, or a record within itself
                raise _NotToldError
            return known
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.node(kind, space)
        if kind not in ("record", "enum", "fixed"):
            return self._bytes(schema, None) if kind == "bytes" else self.node(kind, space)
        space = schema.get("namespace", schema["name"].rpartition(".")[0] or space)
        name = _full(schema["name"], space)
        self._named[name] = None
        found = self._named[name] = self._of_name(schema, kind, space)
        return found

    def _of_name(self, schema: Mapping[str, Any], kind: str, space: str) -> Node:
        if kind == "enum":
            return Value(kind, symbols=tuple(str(symbol) for symbol in schema["symbols"]))
        if kind == "fixed":
            if not 0 <= schema["size"] <= _LARGEST:
                raise _NotToldError
            return self._bytes(schema, int(schema["size"]))
        return Record(tuple((part["name"], self.node(part["type"], space)) for part in schema["fields"]))

    def _bytes(self, schema: Mapping[str, Any], size: int | None) -> Node:
        scale = decimal_scale(schema)
        return Value("bytes", size) if scale is None else Value("decimal", size, scale)

    def _union(self, parts: list[Any], space: str) -> Node:
        if len(parts) != 2 or parts.count("null") != 1:
            raise _NotToldError
        null = parts.index("null")
        return Optional(2 * (1 - null), self.node(parts[1 - null], space))


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _size(node: Node) -> int:
    if isinstance(node, Record):
        return node.size
    return 1 + _size(node.of) if isinstance(node, Optional) else 1
