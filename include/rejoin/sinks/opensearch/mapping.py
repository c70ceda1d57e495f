"""Mappings of an index: what an output's columns need, and whether an index has it. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

TERM_CHARACTERS: Final = 8_191
"""So many always fit into the 32,766 bytes that a term may have."""
WHOLE_DIGITS: Final = 18
"""Every decimal of so many digits is a long."""

TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": TERM_CHARACTERS}}}

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
    "object": frozenset({"nested", "flattened", "flat_object"}),
}
"""Other types that a field may have: they hold every value, or are the user's own, stricter rule."""
_ISO_DATES: Final = frozenset({"strict_date_optional_time", "date_optional_time", "strict_date_optional_time_nanos", "iso8601"})
_DAYS: Final = _ISO_DATES | {"strict_date", "date", "yyyy-MM-dd", "strict_year_month_day"}

Field = Mapping[str, Any]


def field_of(kind: pa.DataType) -> dict[str, Any]:
    """The field that a new index gets for a stored column: of an array that of its elements, of other nested values one that is kept and not searched."""
    kind = _single(kind)
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
    if pa.types.is_nested(kind):
        return {"type": "object", "enabled": False}
    raise TypeError(f"no field of an index is known for {kind}")


def new_mapping(types: pa.Schema) -> dict[str, Any]:
    """The mapping of a new index: the output's columns, and nothing that a document brings by itself."""
    return {"dynamic": "strict", "properties": fields_of(types)}


def fields_of(types: pa.Schema) -> dict[str, Any]:
    """A field for each column."""
    return {column.name: field_of(column.type) for column in types}


def lacking(types: pa.Schema, mapping: Field) -> dict[str, Any]:
    """The fields to add to an index. None where it takes unknown ones without looking at them: that is its owner's rule."""
    there = mapping.get("properties", {})
    unseen = str(mapping.get("dynamic", "true")).lower() == "false"
    return {} if unseen else {name: field for name, field in fields_of(types).items() if name not in there}


def misfits(types: pa.Schema, mapping: Field) -> list[str]:
    """What keeps an index from taking the output's columns, a sentence each."""
    there = mapping.get("properties", {})
    found = [(column.name, _misfit(column.type, there[column.name])) for column in types if column.name in there]
    return [f"field {name!r} is {wrong}" for name, wrong in found if wrong]


def _misfit(kind: pa.DataType, found: Field) -> str:
    """Why a field cannot take the values of a column; empty if it can."""
    kind = _single(kind)
    wanted = field_of(kind)["type"]
    is_ = str(found.get("type", "object"))
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
    """What an index sees of a type: to it an array is several values of a field."""
    return kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind


def _whole(kind: pa.DataType) -> bool:
    return bool(kind.scale == 0 and kind.precision <= WHOLE_DIGITS)
