"""Mappings of an index: what an output's columns need, and whether an index has it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

TERM_CHARACTERS: Final = 8_191
"""So many always fit into the 32,766 bytes that a term may have."""
WHOLE_DIGITS: Final = 18
"""Every decimal of so many digits is a long."""

TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": TERM_CHARACTERS}}}

OBJECT: Final = "object"
"""What a field is that has fields of its own and does not say what it is."""

_WIDER: Final[dict[str, frozenset[str]]] = {
    "boolean": frozenset({"keyword"}),
    "integer": frozenset({"long", "double", "keyword"}),
    "long": frozenset({"keyword"}),
    "float": frozenset({"double", "keyword"}),
    "double": frozenset({"keyword"}),
    "decimal": frozenset({"double", "scaled_float", "keyword"}),
    "text": frozenset({"keyword", "wildcard", "match_only_text", "search_as_you_type", "ip"}),
    "date": frozenset({"date_nanos", "keyword"}),
    "binary": frozenset({"keyword"}),
    OBJECT: frozenset({"nested", "flattened", "flat_object"}),
}
"""Other types that a field may have: they hold every value, or are the user's own, stricter rule."""
_ISO_DATES: Final = frozenset({"strict_date_optional_time", "date_optional_time", "strict_date_optional_time_nanos", "iso8601"})
_DAYS: Final = _ISO_DATES | {"strict_date", "date", "yyyy-MM-dd", "strict_year_month_day"}

Field = Mapping[str, Any]


def field_of(kind: pa.DataType) -> dict[str, Any]:
    """The field that a new index gets for a stored column: of an array that of its elements, of a struct its fields; a map is kept and not searched, since each
    of its keys would be a field.
    """
    kind = _single(kind)
    if pa.types.is_struct(kind):
        return {"properties": fields_of(kind.fields)}
    simple = {
        pa.bool_(): "boolean",
        pa.int32(): "integer",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
    }
    if kind in simple:
        return {"type": simple[kind]}
    if pa.types.is_decimal(kind):
        return {"type": "long" if _whole(kind) else "double"}
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return {"type": "date"}
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return {"type": "binary"}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return dict(TEXT)
    if pa.types.is_map(kind):
        return {"type": OBJECT, "enabled": False}
    raise TypeError(f"no field of an index is known for {kind}")


def new_mapping(types: Iterable[pa.Field]) -> dict[str, Any]:
    """The mapping of a new index: the output's columns, and nothing that a document brings by itself."""
    return {"dynamic": "strict", "properties": fields_of(types)}


def fields_of(types: Iterable[pa.Field]) -> dict[str, Any]:
    """A field for each column, or for each field of a struct."""
    return {column.name: field_of(column.type) for column in types}


def lacking(types: Iterable[pa.Field], mapping: Field) -> dict[str, Any]:
    """The fields to add to an index. None where it takes unknown ones without looking at them: that is its owner's rule."""
    if str(mapping.get("dynamic", "true")).lower() == "false":
        return {}
    there = mapping.get("properties", {})
    found = ((c.name, _lacking_in(c.type, there[c.name]) if c.name in there else field_of(c.type)) for c in types)
    return {name: field for name, field in found if field}


def _lacking_in(kind: pa.DataType, found: Field) -> dict[str, Any]:
    """What a field that is there lacks of a struct; empty if nothing, or of another kind."""
    added = lacking(_single(kind).fields, found) if _has_fields(kind, found) else {}
    return {**({"type": found["type"]} if "type" in found else {}), "properties": added} if added else {}


def misfits(types: Iterable[pa.Field], mapping: Field, within: str = "") -> list[str]:
    """What keeps an index from taking the output's columns, a sentence each. ``within``: the struct that these are fields of, with a dot."""
    there, said = mapping.get("properties", {}), list[str]()
    for column in (c for c in types if c.name in there):
        name, found = f"{within}{column.name}", there[column.name]
        if wrong := _misfit(column.type, found):
            said.append(f"field {name!r} is {wrong}")
        elif _has_fields(column.type, found):
            said += misfits(_single(column.type).fields, found, f"{name}.")
    return said


def _has_fields(kind: pa.DataType, found: Field) -> bool:
    """Whether a field has the fields of a struct each by itself."""
    return pa.types.is_struct(_single(kind)) and found.get("type", OBJECT) in (OBJECT, "nested") and found.get("enabled", True)


def _misfit(kind: pa.DataType, found: Field) -> str:
    """Why a field cannot take the values of a column; empty if it can."""
    kind = _single(kind)
    wanted = field_of(kind).get("type", OBJECT)
    is_ = str(found.get("type", OBJECT))
    decimal = pa.types.is_decimal(kind)
    if is_ != wanted and is_ not in _WIDER["decimal" if decimal else wanted]:
        return f"{is_}, not {wanted}"
    if decimal and is_ != "keyword" and str(found.get("coerce", "true")).lower() == "false":
        return f"{is_} without coerce, and decimals are texts"
    formats = set(str(found.get("format", "strict_date_optional_time")).split("||"))
    if wanted == "date" and is_ != "keyword" and not formats & (_DAYS if pa.types.is_date(kind) else _ISO_DATES):
        return f"{is_} with a format other than strict_date_optional_time"
    return ""


def _single(kind: pa.DataType) -> pa.DataType:
    """What an index sees of a type: to it an array, of arrays too, is several values of a field."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind


def _whole(kind: pa.DataType) -> bool:
    return bool(kind.scale == 0 and kind.precision <= WHOLE_DIGITS)
