"""The shapes that some lines have, told by looking at them (``line_shape`` says what a shape is)."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from rejoin.sources.decode.line_shape import (
    FLAG,
    NULL,
    NUMBER,
    STYLES,
    TEXT,
    WHOLE,
    Branch,
    Constant,
    Items,
    Leaf,
    Part,
    Shape,
    Style,
    has_marks,
)

_WITH_SCHEMA = {"schema", "payload"}
"""The members of an object as Kafka Connect writes it with its schema, which is the same in each line."""
_KINDS: dict[type, str] = {str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, type(None): NULL}
Read = Callable[[str], Any]
"""Reads a text of JSON."""


@dataclass(frozen=True)
class Habits:
    """What is known of how the lines of a dialect are written.

    Attributes:
        packed: members that may be texts of JSON.
        repeated: members that every line of a table repeats letter by letter.
        tables: members whose texts tell of which table a line is. Each table has a shape of its own then, and any object may lack members; else there is one
            shape, that which most lines have, and its objects lack nothing.
    """

    packed: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass
class _Alike:
    """Lines of one shape: what names their table, what has the values of all, and they themselves."""

    table: list[Any]
    root: Branch
    lines: list[Part]


def learned(lines: Iterable[bytes], habits: Habits) -> list[Shape]:
    """The shapes that some lines have, the most common first; none of those that cannot be told (names with quotes). Lines may be damaged."""
    found: list[_Alike] = []
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
            part = _line(value, read, text, habits)
        except (ValueError, RecursionError):
            continue
        if part is not None:
            spaced += _style(text, value) is STYLES[1]
            told += 1
            _add(found, [value.get(name) for name in habits.tables], part, loose=bool(habits.tables))
    style = STYLES[2 * spaced > told]
    roots = [_ordered(alike.root, alike.lines) for alike in sorted(found, key=lambda alike: -len(alike.lines))]
    return [Shape(root, style, odd_numbers=odd_numbers) for root in roots if isinstance(root, Branch) and has_marks(root)]


def _add(found: list[_Alike], table: list[Any], line: Branch, *, loose: bool) -> None:
    """Adds a line to those of its shape."""
    for alike in found:
        if alike.table == table and isinstance(root := _merged(alike.root, line, loose=loose), Branch):
            alike.root = root
            alike.lines.append(line)
            return
    found.append(_Alike(table, line, [line]))


def _style(text: str, value: dict[str, Any]) -> Style:
    """That of the text of an object."""
    first = json.dumps(next(iter(value)), ensure_ascii=False)
    return STYLES[text.startswith(f"{{{first}: ")]


def _line(value: Any, read: Read, text: str, habits: Habits) -> Branch | None:
    if not isinstance(value, dict):
        return None

    def member(name: str, value: Any) -> Part | None:
        if name in habits.repeated and isinstance(value, dict | list):
            return _constant(value, text)
        return _packed(value, read) if name in habits.packed and isinstance(value, str) else _part(value, text)

    return _branch(value, member, text)


def _part(value: Any, text: str) -> Part | None:
    """The shape of one value; None if it has none that can be told. ``text``: that in which it stands."""
    if isinstance(value, dict):
        return _branch(value, lambda _, member: _part(member, text), text)
    if isinstance(value, list):
        return _items(value, text)
    kind = _KINDS[type(value)]
    return Leaf(kind, escaped=kind == TEXT and any(c in value for c in '"\\\n\r\t'))


def _branch(value: dict[str, Any], member: Callable[[str, Any], Part | None], text: str) -> Branch | None:
    """The shape of an object. ``member``: that of one of its members."""
    has_schema = value.keys() == _WITH_SCHEMA and isinstance(value["schema"], dict)
    members = {name: _constant(one, text) if has_schema and name == "schema" else member(name, one) for name, one in value.items()}
    plain = {name for name in members if name and '"' not in name and "\\" not in name and name.isprintable()}
    # DuckDB's names of fields are the same in capitals.
    if not members or None in members.values() or len({name.lower() for name in plain}) < len(members):
        return None
    return Branch({name: part for name, part in members.items() if part is not None})


def _items(values: list[Any], text: str) -> Items | None:
    """The shape of an array; None if its elements have none in common."""
    each: Part | None = None
    for n, value in enumerate(values):
        part = _part(value, text)
        each = part if n == 0 else _merged(each, part, loose=True)
    return Items(each) if isinstance(each, Branch | Leaf) and _may_be_an_element(each) else None


def _may_be_an_element(part: Part) -> bool:
    if isinstance(part, Branch):
        return not part.nullable and all(map(_may_be_an_element, part.members.values()))
    return isinstance(part, Leaf) and part.kind != NUMBER


def _packed(text: str, read: Read) -> Part | None:
    """The shape of a text that may be one of an object."""
    part = _part(value := read(text), text)
    return replace(part, packed=_style(text, value)) if isinstance(part, Branch) else None


def _constant(value: Any, text: str) -> Constant | None:
    """A value as it stands in a text; None if it is written in letters that are not told."""
    written = (json.dumps(value, separators=style, ensure_ascii=False) for style in STYLES)
    return next((Constant(one) for one in written if one in text), None)


def _merged(one: Part | None, other: Part | None, *, loose: bool) -> Part | None:
    """What has the values of both. ``loose``: one of two objects may lack members of the other."""
    if one == other:
        return one
    if one is None or other is None or isinstance(one, Constant) or isinstance(other, Constant):
        return None
    nullable, optional = one.nullable or other.nullable, one.optional or other.optional
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        return _merged_leaves(one, other)
    if isinstance(other, Leaf):
        one, other = other, one
    if isinstance(one, Leaf):
        return replace(other, nullable=True, optional=optional) if one.kind == NULL else None
    if isinstance(one, Items) and isinstance(other, Items):
        each = _merged(one.each, other.each, loose=True)
        return Items(each, nullable, optional) if isinstance(each, Branch | Leaf) and _may_be_an_element(each) else None
    if not isinstance(one, Branch) or not isinstance(other, Branch) or one.packed != other.packed:
        return None
    if not loose and list(one.members) != list(other.members):
        return None
    members: dict[str, Part] = {}
    for name in one.members | other.members:
        both = [branch.members[name] for branch in (one, other) if name in branch.members]
        member = _merged(*both, loose=loose) if len(both) > 1 else _lacked(both[0])
        if member is None:
            return None
        members[name] = member
    return Branch(members, nullable, one.packed, optional)


def _merged_leaves(one: Leaf, other: Leaf) -> Leaf | None:
    kinds = {one.kind, other.kind} - {NULL}
    merged = Leaf(
        next(iter(kinds), NULL),
        one.nullable or other.nullable or NULL in (one.kind, other.kind),
        one.escaped or other.escaped,
        one.optional or other.optional,
    )
    if kinds == {WHOLE, NUMBER}:
        return replace(merged, kind=NUMBER)
    return None if len(kinds) > 1 else merged


def _lacked(part: Part) -> Part | None:
    return None if isinstance(part, Constant) else replace(part, optional=True)


def _ordered(part: Part, seen: Sequence[Part]) -> Part:
    """The part with the members of its objects as nearly as possible in the order in which they are ``seen``."""
    if isinstance(part, Items):
        each = _ordered(part.each, [one.each for one in seen if isinstance(one, Items)])
        return replace(part, each=each) if isinstance(each, Branch | Leaf) else part
    if not isinstance(part, Branch):
        return part
    branches = [one for one in seen if isinstance(one, Branch)]
    members = {
        name: _ordered(part.members[name], [one.members[name] for one in branches if name in one.members])
        for name in _in_order(part.members, Counter(tuple(one.members) for one in branches))
    }
    return replace(part, members=members)


def _in_order(names: Iterable[str], seen: Counter[tuple[str, ...]]) -> Iterable[str]:
    """Each name behind those that stand right before it, how often is ``seen``."""
    before: dict[str, Counter[str]] = {name: Counter() for name in names}
    for listed, count in seen.items():
        for one, other in pairwise(listed):
            before[other][one] += count
    while before:
        name = min(before, key=lambda one: sum(count for other, count in before[one].items() if other in before))
        del before[name]
        yield name
