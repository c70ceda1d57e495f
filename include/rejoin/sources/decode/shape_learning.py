"""The shape that some lines have, told by looking at them (``line_shape`` says what a shape is)."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from rejoin.sources.decode.line_shape import FLAG, NULL, NUMBER, STYLES, TEXT, WHOLE, Branch, Constant, Leaf, Part, Shape, Style

_WITH_SCHEMA = {"schema", "payload"}
"""The members of an object as Kafka Connect writes it with its schema, which is the same in each line."""
_KINDS: dict[type, str] = {str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, type(None): NULL}


def learned(lines: Iterable[bytes], packed: Collection[str] = ()) -> Shape | None:
    """The shape that most of some lines have; None if none has one that can be told (arrays, names with quotes). Lines may be damaged.

    Args:
        lines: the lines.
        packed: members that may be texts of JSON.
    """
    found: list[tuple[int, Branch]] = []
    spaced = told = 0
    odd_numbers = False

    def number(text: str) -> float:
        nonlocal odd_numbers
        odd_numbers |= repr(found := float(text)) != text
        return found

    read = partial(json.loads, parse_float=number)
    for line in lines:
        try:
            text = line.decode()
            value = read(text)
            part = _part(value, read, text, packed)
        except (ValueError, RecursionError):
            continue
        if not isinstance(part, Branch):
            continue
        spaced += _style(text, value) is STYLES[1]
        told += 1
        for n, (count, root) in enumerate(found):
            if isinstance(merged := _merged(root, part), Branch):
                found[n] = (count + 1, merged)
                break
        else:
            found.append((1, part))
    if not found:
        return None
    return Shape(max(found, key=lambda one: one[0])[1], STYLES[2 * spaced > told], odd_numbers=odd_numbers)


def _style(text: str, value: dict[str, Any]) -> Style:
    """That of the text of an object."""
    first = json.dumps(next(iter(value)), ensure_ascii=False)
    return STYLES[text.startswith(f"{{{first}: ")]


def _part(value: Any, read: Callable[[str], Any], text: str, packed: Collection[str] = ()) -> Part | None:
    """The shape of one value; None if it has none that can be told.

    Args:
        value: the value.
        read: reads a text of JSON.
        text: that in which the value stands.
        packed: its members that may be texts of JSON.
    """
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value))
        return None if kind is None else Leaf(kind, escaped=kind == TEXT and any(c in value for c in '"\\\n\r\t'))
    members = {n: _packed(m, read) if n in packed and isinstance(m, str) else _part(m, read, text) for n, m in value.items()}
    if value.keys() == _WITH_SCHEMA and isinstance(value["schema"], dict):
        members["schema"] = _constant(value["schema"], text)
    plain = {name for name in members if name and '"' not in name and "\\" not in name and name.isprintable()}
    # DuckDB's names of fields are the same in capitals.
    if not members or None in members.values() or len({name.lower() for name in plain}) < len(members):
        return None
    return Branch({name: member for name, member in members.items() if member is not None})


def _packed(text: str, read: Callable[[str], Any]) -> Part | None:
    """The shape of a text that may be one of an object."""
    part = _part(value := read(text), read, text)
    return replace(part, packed=_style(text, value)) if isinstance(part, Branch) else None


def _constant(value: Any, text: str) -> Constant | None:
    """A value as it stands in a text; None if it is written in letters that are not told."""
    written = (json.dumps(value, separators=style, ensure_ascii=False) for style in STYLES)
    return next((Constant(one) for one in written if one in text), None)


def _merged(one: Part, other: Part | None) -> Part | None:
    """What has the values of both."""
    if isinstance(one, Constant) or isinstance(other, Constant):
        return one if one == other else None
    if other is None:
        return None
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        kinds, nullable = {one.kind, other.kind} - {NULL}, one.nullable or other.nullable or NULL in (one.kind, other.kind)
        if kinds == {WHOLE, NUMBER}:
            return Leaf(NUMBER, nullable)
        return None if len(kinds) > 1 else Leaf(next(iter(kinds), NULL), nullable, one.escaped or other.escaped)
    if isinstance(one, Leaf) or isinstance(other, Leaf):
        if isinstance(one, Leaf) and isinstance(other, Branch):
            one, other = other, one
        assert isinstance(one, Branch)
        assert isinstance(other, Leaf)
        return replace(one, nullable=True) if other.kind == NULL else None
    if list(one.members) != list(other.members) or one.packed != other.packed:
        return None
    members = {name: _merged(member, other.members[name]) for name, member in one.members.items()}
    if None in members.values():
        return None
    return Branch({n: m for n, m in members.items() if m is not None}, one.nullable or other.nullable, one.packed)
