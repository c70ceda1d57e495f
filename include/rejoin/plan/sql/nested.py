"""ARRAY, STRUCT and MAP: types that are made of types, as Spark spells them (``STRUCT<city: STRING, codes: ARRAY<INT>>``)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rejoin.plan.model.column_names import repeated, spelled

ARRAY, STRUCT, MAP = "ARRAY", "STRUCT", "MAP"
ELEMENT, KEY, VALUE = "element", "key", "value"
"""The parts of an array and of a map, as Iceberg names them."""
MOST_DEEP: Final = 8
"""So many types stand in each other at most."""

_KIND: Final = re.compile(r"(ARRAY|STRUCT|MAP)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_FIELD: Final = re.compile(r"\s*(?:`([A-Za-z_]\w*)`|([A-Za-z_]\w*))\s*(?::|\s)\s*(.+)", re.ASCII | re.DOTALL)

Plain = Callable[[str], str | None]
"""The one spelling of a type that is made of no others; None if it is not allowed."""


@dataclass(frozen=True)
class Nested:
    """A type of this kind. ``parts``: name and type of what it is made of: the ELEMENT of an array, KEY and VALUE of a map, the fields of a struct."""

    kind: str
    parts: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The one spelling of it."""
        inner = (f"{name}: {of}" if self.kind == STRUCT else of for name, of in self.parts)
        return f"{self.kind}<{', '.join(inner)}>"

    @property
    def element(self) -> str:
        """The type of the elements of an array, or of the values of a map."""
        return self.parts[-1][1]


def is_nested(name: str) -> bool:
    """Whether a type as written may be one of them."""
    return _KIND.fullmatch(name.strip()) is not None


def holds_map(name: str) -> bool:
    """Whether a type in its one spelling is a map, or has one in it: Spark compares no such values."""
    return f"{MAP}<" in name


@lru_cache(1_000)
def parts_of(name: str) -> Nested | None:
    """What a type in its one spelling is made of; None of any other."""
    return _split(name)


def field(of: str, name: str) -> str | None:
    """The type of a field of a struct in its one spelling, of the values of a map, or of the fields of all structs of an array; None if there is none of that name."""
    made = parts_of(of)
    if made is None:
        return None
    if made.kind == MAP:
        return made.element
    if made.kind == ARRAY:
        inner = parts_of(made.element)
        found = field(made.element, name) if inner is not None and inner.kind == STRUCT else None
        return None if found is None else Nested(ARRAY, ((ELEMENT, found),)).text
    fields = dict(made.parts)
    known = spelled(name, fields)
    return None if known is None else fields[known]


def canonical(text: str, plain: Plain, depth: int = 1) -> str | None:
    """The one spelling of a type as written; None if it is not allowed: a part of it is not, a field stands twice, a map has other keys than texts,
    or it is deeper than MOST_DEEP.
    """
    made = _split(text)
    if made is None or depth > MOST_DEEP or repeated(name for name, _ in made.parts):
        return None
    inner = [(name, canonical(of, plain, depth + 1) if is_nested(of) else plain(of)) for name, of in made.parts]
    known = tuple((name, of) for name, of in inner if of is not None)
    if len(known) < len(inner) or (made.kind == MAP and known[0][1] != "STRING"):
        return None
    return Nested(made.kind, known).text


def without_brackets(text: str) -> list[str]:
    """The parts of a text that commas separate which stand in no brackets."""
    return list(_parts(text))


def _split(text: str) -> Nested | None:
    match = _KIND.fullmatch(text.strip())
    if match is None:
        return None
    kind, inner = match[1].upper(), list(_parts(match[2]))
    if kind == STRUCT:
        fields = [_FIELD.fullmatch(part) for part in inner]
        named = tuple((f[1] or f[2], f[3].strip()) for f in fields if f is not None)
        return Nested(kind, named) if len(named) == len(inner) else None
    names = (ELEMENT,) if kind == ARRAY else (KEY, VALUE)
    return Nested(kind, tuple(zip(names, inner, strict=True))) if len(names) == len(inner) else None


def _parts(text: str) -> Iterator[str]:
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()
