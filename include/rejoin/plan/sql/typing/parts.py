"""The types of what is read of arrays, structs and maps: fields, elements, and what functions make of them."""

from collections.abc import Sequence
from typing import Final

from rejoin.plan.sql import nested
from rejoin.plan.sql.nested import ARRAY, ELEMENT, MAP, Nested, holds_map, parts_of
from rejoin.plan.sql.typing.coercion import INTEGERS, Mismatch

_COLLECTIONS: Final = (ARRAY, MAP)
TAKEN: Final = {
    **dict.fromkeys(("size", "cardinality"), ((1,), _COLLECTIONS)),
    **dict.fromkeys(("element_at", "try_element_at"), ((2,), _COLLECTIONS)),
    **dict.fromkeys(("get", "array_contains"), ((2,), (ARRAY,))),
    **dict.fromkeys(("array_min", "array_max"), ((1,), (ARRAY,))),
    "array_join": ((2, 3), (ARRAY,)),
    **dict.fromkeys(("map_keys", "map_values"), ((1,), (MAP,))),
}
"""Function -> how many arguments it takes, and of what kind the first is."""


def field(of: str | None, name: str) -> str | None:
    """The type of ``value.name``; None if that of the value is not known.

    Raises:
        Mismatch: there is no such field.
    """
    if of in (None, "VOID"):
        return None
    found = nested.field(str(of), name)
    if found is None:
        raise Mismatch(f"{of} has no field {name!r}")
    return found


def item(of: str | None, index: str | None) -> str | None:
    """The type of ``value[index]``; None if it is left to Spark.

    Raises:
        Mismatch: nothing of this type has elements.
    """
    made = None if of is None else parts_of(of)
    if made is None:
        if of not in (None, "VOID"):
            raise Mismatch(f"{of} has no elements; [...] takes one of an ARRAY, or the value of a key of a MAP")
        return None
    return _value(made, index, INTEGERS)


def result(name: str, given: Sequence[str | None]) -> str | None:
    """The type of a function of ``TAKEN``; None if it is left to Spark.

    Raises:
        Mismatch: it does not take these types, or not so many.
    """
    counts, kinds = TAKEN[name]
    if len(given) not in counts:
        raise Mismatch(f"{name}() takes {' or '.join(map(str, counts))} argument(s), not {len(given)}")
    known = [of for of in given if of not in (None, "VOID")]
    if len(known) < len(given):
        return None
    made = parts_of(str(known[0]))
    if made is None or made.kind not in kinds:
        raise Mismatch(f"{name}() takes {' or '.join(f'{kind}<...>' for kind in kinds)}, not {known[0]}")
    return _result(name, made, [str(of) for of in known[1:]])


def _result(name: str, of: Nested, others: list[str]) -> str | None:
    match name:
        case "size" | "cardinality":
            return "INT"
        case "element_at" | "try_element_at":
            return _value(of, others[0], INTEGERS[:3])
        case "get":
            return _value(of, others[0], INTEGERS)
        case "map_keys" | "map_values":
            return Nested(ARRAY, ((ELEMENT, of.parts[0 if name == "map_keys" else 1][1]),)).text
        case "array_join":
            return "STRING" if {of.element, *others} == {"STRING"} else None
        case "array_contains":
            alike = of.element == others[0] or {of.element, others[0]} <= set(INTEGERS)
            return "BOOLEAN" if alike and not holds_map(of.element) else None
    return None if holds_map(of.element) else _known(of.element)


def _value(of: Nested, by: str | None, integers: Sequence[str]) -> str | None:
    fits = (of.kind == ARRAY and by in integers) or (of.kind == MAP and by == "STRING")
    return _known(of.element) if fits else None


def _known(element: str) -> str | None:
    return None if element == "VOID" else element
