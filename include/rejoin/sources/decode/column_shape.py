"""The shape of records that come as columns: as that of lines (``line_shape``) of which each is a document with its Connect schema, but values have types."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from rejoin.sources.decode.line_shape import DECIMAL, FLAG, FLOATING, NULL, NUMBER, OCTETS, TEXT, WHOLE, Branch, Constant, Leaf, Part
from rejoin.sources.decode.values import CONNECT_DECIMAL, NUMBER_TEXT

_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pat.is_null, NULL),
    (pat.is_boolean, FLAG),
    (pat.is_int64, WHOLE),
    (pat.is_string, TEXT),
    (pat.is_binary, OCTETS),
    (lambda kind: pat.is_float32(kind) or pat.is_float64(kind), FLOATING),
)
_OTHER = Branch({})
"""What stands where something is that is not told: no value."""


def document(schema: Mapping[str, Any], kind: pa.DataType) -> Branch:
    """Records with their Connect schema. ``kind``: of plain columns."""
    return Branch({"schema": Constant(json.dumps(schema)), "payload": _part(schema, kind)})


def _part(schema: Mapping[str, Any], kind: pa.DataType) -> Part:
    if pat.is_struct(kind):
        names, of = [field.name.casefold() for field in kind], {part["field"]: part for part in schema.get("fields", ())}
        # DuckDB finds members whatever the case of their letters.
        told = len(set(names)) == len(names)
        return Branch({field.name: _part(of.get(field.name, {}), field.type) for field in kind}) if told else _OTHER
    if pat.is_decimal128(kind):
        told = kind.scale >= 0 and schema.get("name") == CONNECT_DECIMAL and schema.get("parameters") == {"scale": str(kind.scale)}
        return Leaf(DECIMAL) if told else _OTHER
    if pat.is_string(kind) and schema.get("type") == NUMBER_TEXT:
        return Leaf(NUMBER)
    return next((Leaf(found) for test, found in _KINDS if test(kind)), _OTHER)
