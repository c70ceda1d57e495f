"""Fields of structs, elements of arrays, values of maps, and what functions make of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rejoin.plan.model.column_names import spelled
from rejoin.plan.sql import nested
from rejoin.plan.sql.nested import ARRAY, ELEMENT, MAP, Nested, is_nested, parts_of
from rejoin.plan.sql.portable.printed import NULL, Made, as_type, duckdb_type, guarded, quoted, unproven
from rejoin.plan.sql.typing.coercion import FRACTIONS

_NO_SUCH_ELEMENT: Final = "an array has no element of this number"


def field(made: Made, name: str) -> Made:
    """``made.name``: of a struct, of all structs of an array, or the value of a key of a map."""
    of, found = _parts("a field", made), nested.field(made.type, name)
    if found is None:
        raise unproven(f"the field {name} of {made.type}")
    if of.kind == MAP:
        return Made(f"({made.text})[{quoted(name)}]", found, made.raises)
    struct = parts_of(of.element) if of.kind == ARRAY else of
    own = quoted(str(spelled(name, [field for field, _ in struct.parts] if struct else [])))
    if of.kind == ARRAY:
        return Made(f"list_transform({made.text}, lambda part: struct_extract(part, {own}))", found, made.raises)
    return Made(f"struct_extract({made.text}, {own})", found, made.raises)


def item(made: Made, by: Made) -> Made:
    """``made[by]``: elements are counted from 0, and there must be one; a map may lack a key."""
    if _parts("[...]", made).kind == MAP:
        return _of_key(made, by)
    text, number = made.text, _number("[...]", made, by)
    known = guarded(text, f"{text} IS NULL OR {number} BETWEEN 0 AND len({text}) - 1", _NO_SUCH_ELEMENT)
    return _element(made, f"({known})[{number} + 1]", raises=True)


def element_at(made: Made, by: Made) -> Made:
    """Elements are counted from 1, or back from -1, and there must be one; a map may lack a key."""
    if _parts("element_at", made).kind == MAP:
        return _of_key(made, by)
    text, number = made.text, _number("element_at", made, by)
    known = guarded(text, f"{text} IS NULL OR abs({number}) BETWEEN 1 AND len({text})", _NO_SUCH_ELEMENT)
    return _element(made, f"({known})[{number}]", raises=True)


def try_element_at(made: Made, by: Made) -> Made:
    """As ``element_at``, but null where there is no such element; none is counted as 0."""
    if _parts("try_element_at", made).kind == MAP:
        return _of_key(made, by)
    number = _number("try_element_at", made, by)
    if by.literal is None or int(by.literal.value) == 0:
        raise unproven("try_element_at with a number that may be 0")
    return _element(made, f"({made.text})[{number}]", raises=made.raises)


def get(made: Made, by: Made) -> Made:
    """Elements are counted from 0; null where there is none."""
    number = _number("get", made, by)
    if made.raises and by.literal is not None and int(by.literal.value) < 0:
        raise unproven("get of no element of what may raise an error")
    return _element(made, f"({made.text})[CASE WHEN {number} >= 0 THEN {number} + 1 END]", raises=made.raises)


def size(made: Made) -> Made:
    """``size`` and ``cardinality``."""
    counted = {ARRAY: "len", MAP: "cardinality"}.get(_parts("size", made).kind)
    if counted is None:
        raise unproven(f"size of {made.type}")
    return Made(as_type(f"{counted}({made.text})", "INT"), "INT", made.raises)


def contains(made: Made, value: Made) -> Made:
    """``array_contains``: null if the value is not found and an element is null."""
    element = _comparable("array_contains", made)
    if (element != value.type and (element, value.type) != ("BIGINT", "INT")) or made.raises or value.raises:
        raise unproven(f"array_contains({made.type}, {value.type})")
    text = made.text
    found = (
        f"CASE WHEN list_contains({text}, {as_type(value.text, element)}) THEN true WHEN len({text}) = list_count({text}) THEN false END"
    )
    return Made(f"CASE WHEN {text} IS NOT NULL AND {value.text} IS NOT NULL THEN {found} END", "BOOLEAN")


def extreme(name: str, made: Made) -> Made:
    """``array_min`` and ``array_max``: nulls are left out."""
    return Made(f"{name.replace('array', 'list')}({made.text})", _comparable(name, made), made.raises)


def joined(made: Made, between: Made) -> Made:
    """``array_join`` with a constant: nulls are left out."""
    if made.type != "ARRAY<STRING>" or between.type != "STRING" or between.literal is None:
        raise unproven(f"array_join({made.type}, {between.type}) with other than a constant")
    text = f"coalesce(array_to_string({made.text}, {between.text}), '')"
    return Made(f"CASE WHEN {made.text} IS NOT NULL THEN {text} END", "STRING", made.raises)


def side(name: str, made: Made) -> Made:
    """``map_keys`` and ``map_values``."""
    of = _parts(name, made)
    if of.kind != MAP:
        raise unproven(f"{name} of {made.type}")
    return Made(f"{name}({made.text})", Nested(ARRAY, ((ELEMENT, of.parts[name == "map_values"][1]),)).text, made.raises)


def _parts(what: str, made: Made) -> Nested:
    of = parts_of(made.type)
    if of is None:
        raise unproven(f"{what} of {made.type}")
    duckdb_type(made.type)
    return of


def _number(what: str, made: Made, by: Made) -> str:
    """A number of an element, to which 1 can be added."""
    if by.type != "INT":
        raise unproven(f"{what} with {by.type}")
    _looked_at(what, made, by)
    return as_type(by.text, "BIGINT")


def _looked_at(what: str, made: Made, by: Made) -> None:
    """Nothing, if errors cannot be missed: Spark does not look at ``by`` if ``made`` is null, DuckDB perhaps not at ``made`` if ``by`` is."""
    if by.raises or (made.raises and by.literal is None):
        raise unproven(f"{what} of what may raise an error")


def _element(made: Made, text: str, *, raises: bool) -> Made:
    of = _parts("an element", made)
    if of.kind != ARRAY or of.element == NULL:
        raise unproven(f"an element of {made.type}")
    return Made(text, of.element, raises)


def _of_key(made: Made, by: Made) -> Made:
    if by.type != "STRING":
        raise unproven(f"a key of {by.type}")
    _looked_at("a key", made, by)
    return Made(f"({made.text})[{by.text}]", _parts("a key", made).element, made.raises)


def _comparable(what: str, made: Made) -> str:
    of = _parts(what, made)
    if of.kind != ARRAY or of.element in (*FRACTIONS, "BINARY", NULL) or is_nested(of.element):
        raise unproven(f"{what} of {made.type}")
    return of.element


Call = Callable[[Sequence[Made]], Made]


def _taking(count: int, call: Callable[..., Made]) -> Call:
    def called(args: Sequence[Made]) -> Made:
        if len(args) != count:
            raise unproven(f"a function of nested values with {len(args)} arguments")
        return call(*args)

    return called


CALLS: Final[dict[str, Call]] = {
    **dict.fromkeys(("size", "cardinality"), _taking(1, size)),
    "element_at": _taking(2, element_at),
    "try_element_at": _taking(2, try_element_at),
    "get": _taking(2, get),
    "array_contains": _taking(2, contains),
    "array_join": _taking(2, joined),
    **{name: _taking(1, partial(extreme, name)) for name in ("array_min", "array_max")},
    **{name: _taking(1, partial(side, name)) for name in ("map_keys", "map_values")},
}
