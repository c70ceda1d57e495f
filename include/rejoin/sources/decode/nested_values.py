"""Values of JSON as arrays, structs and maps. What they hold is told by the converters of their parts (``values``)."""

from collections.abc import Callable
from typing import Any, cast

from rejoin.errors import BadRecord
from rejoin.plan.sql.nested import ARRAY, MAP, STRUCT, Nested
from rejoin.sources.decode.bad_values import wrong_type
from rejoin.sources.formats.json_text import loads

Convert = Callable[[Any], Any]
Part = Callable[[str, str, str], Convert]
"""The converter of a part, by what messages call it, its name, and its type."""


def nested(column: str, made: Nested, part: Part) -> Convert:
    """The function that turns a JSON value of ``column`` into what Arrow takes for a nested type. Nulls in it stay nulls, a field that an object
    lacks is null, and members for which a struct has no field are left out. The entries of a map come in the order of their keys, so that equal
    maps are stored alike. A text is read as JSON. It raises VALUE_TYPE for a value of another kind, and what a part raises.
    """
    places = {ARRAY: "{}[]", STRUCT: "{}.{}", MAP: "{}[{}]"}
    parts = [(name, part(places[made.kind].format(column, name), name, of)) for name, of in made.parts]
    element = parts[-1][1]

    def array(value: list[Any]) -> list[Any]:
        return [None if one is None else element(one) for one in value]

    def entries(value: dict[str, Any]) -> list[tuple[str, Any]]:
        return [(key, None if one is None else element(one)) for key, one in sorted(value.items())]

    def struct(value: dict[str, Any]) -> dict[str, Any]:
        return {name: None if (one := value.get(name)) is None else convert(one) for name, convert in parts}

    kind, make = cast("tuple[type, Convert]", {ARRAY: (list, array), MAP: (dict, entries), STRUCT: (dict, struct)}[made.kind])

    def convert(value: Any) -> Any:
        if type(value) is str:
            value = _document(column, value)
        if type(value) is not kind:
            raise wrong_type(column, made.text, value)
        return make(value)

    return convert


def _document(column: str, text: str) -> Any:
    """What a text of JSON holds."""
    try:
        return loads(text)
    except BadRecord:
        raise BadRecord("VALUE_TYPE", f"column {column!r}: the text is no JSON, or has a name twice") from None
