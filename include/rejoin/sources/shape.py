"""The shape of JSON lines: all that their writer repeats in each, and the places of what varies.

A line is *of the shape* if its values, put into the shape's places, give the line again, letter by letter. So whoever took the values out of it, and
however loosely, has found what the line says: no member twice, none too many, no number rounded. DuckDB's reader may take them out then, which
is twenty times faster than making Python's objects, and not exact by itself (it reads ``1.5`` as 2 where a whole number is wanted, and long decimals as floating point).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rejoin.plan.portable import quoted
from rejoin.stages.dialect import DUCKDB

Path = tuple[str, ...]
TEXT, WHOLE, NUMBER, FLAG, NULL = "text", "whole", "number", "flag", "null"
_KINDS: dict[type, str] = {str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, type(None): NULL}
_READ_AS = {TEXT: "VARCHAR", WHOLE: "BIGINT", NUMBER: "VARCHAR", FLAG: "BOOLEAN", NULL: "VARCHAR"}
_PLAIN_NUMBER = r"-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,3})?"
_NUMBER_OF_A_MEMBER = r":( ?)(-?[0-9]+(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))"
"""Behind a name: a number with a point or an exponent. Found in texts, too; such a line is then not of the shape."""
_STYLES = ((",", ":"), (", ", ": "))
"""What stands between members, and between a name and its value: of nearly all writers one of these."""


@dataclass(frozen=True)
class Branch:
    """An object. ``nullable``: null has been seen in its place."""

    members: "dict[str, Branch | Leaf]"
    nullable: bool = False


@dataclass(frozen=True)
class Leaf:
    """A value. ``nullable``: null has been seen in its place."""

    kind: str
    nullable: bool = False


class Shape:
    """What lines have in common.

    Args:
        root: the object.
        style: what stands between members, and between a name and its value.
        odd_numbers: there are numbers that DuckDB would write in other letters (``1.50``, ``1E7``).
    """

    def __init__(self, root: Branch, style: tuple[str, str], *, odd_numbers: bool = False) -> None:
        self.root, self._style, self._odd_numbers = root, style, odd_numbers

    def struct(self, line: str) -> str:
        """SQL text: the struct of a line, null if DuckDB finds none. Numbers keep their letters if they are read as texts."""
        if self._odd_numbers:
            line = f"""regexp_replace({line}, '{_NUMBER_OF_A_MEMBER}', ':\\1"\\2"', 'g')"""
        return f"TRY(from_json({line}, {quoted(json.dumps(_structure(self.root), ensure_ascii=False))}))"

    def again(self, row: str) -> str:
        """SQL text: the line with its line feed, made of the struct ``row`` that ``from_json`` gives; another text where a value is none of its kind."""
        return _joined([*self._pieces(self.root, row), "chr(10)"])

    def guards(self, row: str) -> Iterator[str]:
        """SQL conditions that must hold as well: what is read as text, and written without quotes, is a number."""
        for path, leaf in leaves(self.root):
            if leaf.kind == NUMBER:
                yield f"coalesce(regexp_full_match({at(row, path)}, '{_PLAIN_NUMBER}'), true)"

    def _pieces(self, part: "Branch | Leaf", value: str) -> list[str]:
        comma, colon = self._style
        if isinstance(part, Leaf):
            if part.kind == NULL:
                return ["'null'"]
            if part.nullable:
                quoted = f"'\"' || {value} || '\"'" if part.kind == TEXT else f"CAST({value} AS VARCHAR)"
                return [f"coalesce({quoted}, 'null')"]
            return ["'\"'", value, "'\"'"] if part.kind == TEXT else [value]
        found = ["'{'"]
        for n, (name, member) in enumerate(part.members.items()):
            label = json.dumps(name, ensure_ascii=False).replace("'", "''")
            found += [f"'{comma if n else ''}{label}{colon}'", *self._pieces(member, at(value, (name,)))]
        found.append("'}'")
        return [f"CASE WHEN {value} IS NULL THEN 'null' ELSE {_joined(found)} END"] if part.nullable else found


def _joined(pieces: list[str]) -> str:
    """SQL text of all pieces as one text; literals that follow each other are one."""
    merged = pieces[:1]
    for piece in pieces[1:]:
        if piece.startswith("'") and merged[-1].startswith("'"):
            merged[-1] = merged[-1][:-1] + piece[1:]
        else:
            merged.append(piece)
    return f"concat({', '.join(merged)})"


def at(row: str, path: Path) -> str:
    """SQL text: a value in a struct."""
    for name in path:
        row = DUCKDB.get(row, name)
    return row


def part_at(part: Branch | Leaf | None, path: Path) -> Branch | Leaf | None:
    """What stands in a place below a part; None if nothing does."""
    for name in path:
        part = part.members.get(name) if isinstance(part, Branch) else None
    return part


def kind_at(part: Branch | Leaf, path: Path) -> str | None:
    """The kind of the value that stands there; None if there is none."""
    found = part_at(part, path)
    return found.kind if isinstance(found, Leaf) else None


def leaves(part: "Branch | Leaf", path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """Every value with its place."""
    if isinstance(part, Leaf):
        yield path, part
    else:
        for name, member in part.members.items():
            yield from leaves(member, (*path, name))


def learned(lines: Iterable[bytes]) -> Shape | None:
    """The shape that most of some lines have; None if none has one that can be told (arrays, names with quotes). Lines may be damaged."""
    found: list[tuple[int, Branch]] = []
    spaced = read = 0
    odd_numbers = False

    def number(text: str) -> float:
        nonlocal odd_numbers
        odd_numbers |= repr(found := float(text)) != text
        return found

    for line in lines:
        try:
            part = _part(json.loads(line, parse_float=number))
        except (ValueError, RecursionError):
            continue
        if not isinstance(part, Branch):
            continue
        first = json.dumps(next(iter(part.members)), ensure_ascii=False).encode()
        spaced += line.startswith(b"{" + first + b": ")
        read += 1
        for n, (count, root) in enumerate(found):
            if isinstance(merged := _merged(root, part), Branch):
                found[n] = (count + 1, merged)
                break
        else:
            found.append((1, part))
    if not found:
        return None
    return Shape(max(found, key=lambda one: one[0])[1], _STYLES[2 * spaced > read], odd_numbers=odd_numbers)


def _structure(part: "Branch | Leaf") -> Any:
    return _READ_AS[part.kind] if isinstance(part, Leaf) else {name: _structure(member) for name, member in part.members.items()}


def _part(value: Any) -> "Branch | Leaf | None":
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value))
        return None if kind is None else Leaf(kind)
    members = {name: _part(member) for name, member in value.items()}
    plain = {name for name in members if name and '"' not in name and "\\" not in name and name.isprintable()}
    # DuckDB's names of fields are the same in capitals.
    if not members or None in members.values() or len({name.lower() for name in plain}) < len(members):
        return None
    return Branch({name: member for name, member in members.items() if member is not None})


def _merged(one: "Branch | Leaf", other: "Branch | Leaf | None") -> "Branch | Leaf | None":
    """What has the values of both."""
    if other is None:
        return None
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        kinds, nullable = {one.kind, other.kind} - {NULL}, one.nullable or other.nullable or NULL in (one.kind, other.kind)
        if kinds == {WHOLE, NUMBER}:
            return Leaf(NUMBER, nullable)
        return None if len(kinds) > 1 else Leaf(next(iter(kinds), NULL), nullable)
    if isinstance(one, Leaf) or isinstance(other, Leaf):
        if isinstance(one, Leaf) and isinstance(other, Branch):
            one, other = other, one
        assert isinstance(one, Branch)
        assert isinstance(other, Leaf)
        return Branch(one.members, nullable=True) if other.kind == NULL else None
    if list(one.members) != list(other.members):
        return None
    members = {name: _merged(member, other.members[name]) for name, member in one.members.items()}
    if None in members.values():
        return None
    return Branch({n: m for n, m in members.items() if m is not None}, one.nullable or other.nullable)
