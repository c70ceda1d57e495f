"""The shape of JSON lines: all that their writer repeats in each, and the places of what varies.

A line is *of the shape* if its values, written into the shape's places, give the line again, letter by letter. So whoever took the values out of it, and
however loosely, has found what the line says: no member twice, none too many, no number rounded, no text cut. DuckDB's reader may take them out then, which
is twenty times faster than making Python's objects, and not exact by itself (it reads ``1.5`` as 2 where a whole number is wanted, and long decimals as floating point).
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rejoin.plan.sql.portable import quoted
from rejoin.statements.dialect import DUCKDB

Path = tuple[str, ...]
TEXT, WHOLE, NUMBER, FLAG, NULL = "text", "whole", "number", "flag", "null"
_KINDS: dict[type, str] = {str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, type(None): NULL}
_READ_AS = {TEXT: "VARCHAR", WHOLE: "BIGINT", NUMBER: "VARCHAR", FLAG: "BOOLEAN", NULL: "VARCHAR"}
_PLAIN_NUMBER = r"-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,3})?"
_NUMBER_OF_A_MEMBER = r":( ?)(-?[0-9]+(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))"
"""Behind a name: a number with a point or an exponent. Found in texts, too; such a line is then not of the shape."""
Style = tuple[str, str]
"""What stands between members, and between a name and its value."""
_STYLES: tuple[Style, Style] = ((",", ":"), (", ", ": "))
"""Those of nearly all writers."""
_ESCAPES = (("chr(92)", r"'\\'"), ("chr(34)", "'\\\"'"))
_MORE_ESCAPES = (("chr(10)", r"'\n'"), ("chr(13)", r"'\r'"), ("chr(9)", r"'\t'"))
"""SQL texts: characters and what is written for them in a text; that of others differs from writer to writer."""


@dataclass(frozen=True)
class Branch:
    """An object. ``nullable``: null has been seen in its place. ``packed``: it is written as a text of JSON, in that style."""

    members: "dict[str, Branch | Leaf]"
    nullable: bool = False
    packed: Style | None = None


@dataclass(frozen=True)
class Leaf:
    """A value. ``nullable``: null has been seen in its place. ``escaped``: a text with characters that are written as others has been seen."""

    kind: str
    nullable: bool = False
    escaped: bool = False


class Shape:
    """What lines have in common.

    Args:
        root: the object.
        style: of a line.
        odd_numbers: there are numbers that DuckDB would write in other letters (``1.50``, ``1E7``).
    """

    def __init__(self, root: Branch, style: Style, *, odd_numbers: bool = False) -> None:
        self.root, self._style, self._odd_numbers = root, style, odd_numbers
        self._packed = {name: member for name, member in root.members.items() if isinstance(member, Branch) and member.packed}

    def structs(self, lines: str, columns: str) -> str:
        """SQL text: the ``columns`` of the table ``lines``, one of which is ``line``, and ``j``: the struct of the line, null if DuckDB finds none."""
        outer = _struct("line", self.root, odd_numbers=self._odd_numbers and not self._packed)
        if not self._packed:
            return f"SELECT {columns}, {outer} AS j FROM {lines}"
        found = {name: at("o", (name,)) for name in self.root.members}
        found |= {name: _struct(found[name], member, odd_numbers=self._odd_numbers) for name, member in self._packed.items()}
        made = f"CASE WHEN o IS NOT NULL THEN {{{', '.join(f'{quoted(name)}: {text}' for name, text in found.items())}}} END"
        return f"SELECT {columns}, {made} AS j FROM (SELECT {columns}, {outer} AS o FROM {lines})"

    def again(self, row: str) -> str:
        """SQL text: the line with its line feed, made of the struct ``row``; another text where a value is none of its kind."""
        return _joined([*_pieces(self.root, row, self._style), "chr(10)"])

    def guards(self, row: str, line: str) -> Iterator[str]:
        """SQL conditions that must hold as well, lest something is written as it stands that is no JSON: what is read as text, and written without quotes,
        is a number; a text that is written as it is has nothing to escape; and there is an object where one is written.
        """
        plain = []
        for path, leaf in leaves(self.root):
            if leaf.kind == NUMBER:
                yield f"coalesce(regexp_full_match({at(row, path)}, '{_PLAIN_NUMBER}'), true)"
            elif leaf.kind == TEXT and not leaf.escaped:
                plain.append(at(row, path))
        if plain:
            yield rf"""CASE WHEN contains({line}, '\') THEN NOT regexp_matches(concat({", ".join(plain)}), '["\\]') ELSE true END"""
        yield from (f"{at(row, (name,))} IS NOT NULL" for name, member in self._packed.items() if not member.nullable)


def _struct(text: str, part: Branch, *, odd_numbers: bool) -> str:
    """SQL text: what DuckDB finds in a text of JSON. Numbers keep their letters if they are read as texts."""
    if odd_numbers:
        text = f"""regexp_replace({text}, '{_NUMBER_OF_A_MEMBER}', ':\\1"\\2"', 'g')"""
    return f"TRY(from_json({text}, {quoted(json.dumps(_structure(part, whole=True), ensure_ascii=False))}))"


def _pieces(part: Branch | Leaf, value: str, style: Style) -> list[str]:
    """SQL texts of what is written for a value, one behind the other."""
    if isinstance(part, Leaf):
        return _of_leaf(part, value)
    comma, colon = part.packed or style
    found = ["'{'"]
    for n, (name, member) in enumerate(part.members.items()):
        label = json.dumps(name, ensure_ascii=False).replace("'", "''")
        found += [f"'{comma if n else ''}{label}{colon}'", *_pieces(member, at(value, (name,)), (comma, colon))]
    found.append("'}'")
    if part.packed:
        found = ["'\"'", _escaped(_joined(found), _ESCAPES), "'\"'"]
    return [f"CASE WHEN {value} IS NULL THEN 'null' ELSE {_joined(found)} END"] if part.nullable else found


def _of_leaf(leaf: Leaf, value: str) -> list[str]:
    if leaf.kind == NULL:
        return ["'null'"]
    written = _escaped(value, _ESCAPES + _MORE_ESCAPES) if leaf.escaped else value
    if leaf.nullable:
        text = f"'\"' || {written} || '\"'" if leaf.kind == TEXT else f"CAST({value} AS VARCHAR)"
        return [f"coalesce({text}, 'null')"]
    return ["'\"'", written, "'\"'"] if leaf.kind == TEXT else [value]


def _escaped(text: str, escapes: Iterable[tuple[str, str]]) -> str:
    for character, written in escapes:
        text = f"replace({text}, {character}, {written})"
    return text


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
            part = _part(value, read, packed)
        except (ValueError, RecursionError):
            continue
        if not isinstance(part, Branch):
            continue
        spaced += _style(text, value) is _STYLES[1]
        told += 1
        for n, (count, root) in enumerate(found):
            if isinstance(merged := _merged(root, part), Branch):
                found[n] = (count + 1, merged)
                break
        else:
            found.append((1, part))
    if not found:
        return None
    return Shape(max(found, key=lambda one: one[0])[1], _STYLES[2 * spaced > told], odd_numbers=odd_numbers)


def _style(text: str, value: dict[str, Any]) -> Style:
    """That of the text of an object."""
    first = json.dumps(next(iter(value)), ensure_ascii=False)
    return _STYLES[text.startswith(f"{{{first}: ")]


def _structure(part: Branch | Leaf, *, whole: bool = False) -> Any:
    """What ``from_json`` is asked for. ``whole``: the part itself, though it is packed."""
    if isinstance(part, Branch) and (whole or not part.packed):
        return {name: _structure(member) for name, member in part.members.items()}
    return _READ_AS[part.kind if isinstance(part, Leaf) else TEXT]


def _part(value: Any, read: Callable[[str], Any], packed: Collection[str] = ()) -> Branch | Leaf | None:
    """The shape of one value; None if it has none that can be told. ``packed``: its members that may be texts of JSON, which ``read`` reads."""
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value))
        return None if kind is None else Leaf(kind, escaped=kind == TEXT and any(c in value for c in '"\\\n\r\t'))
    members = {name: _packed(m, read) if name in packed and isinstance(m, str) else _part(m, read) for name, m in value.items()}
    plain = {name for name in members if name and '"' not in name and "\\" not in name and name.isprintable()}
    # DuckDB's names of fields are the same in capitals.
    if not members or None in members.values() or len({name.lower() for name in plain}) < len(members):
        return None
    return Branch({name: member for name, member in members.items() if member is not None})


def _packed(text: str, read: Callable[[str], Any]) -> Branch | Leaf | None:
    """The shape of a text that may be one of an object."""
    part = _part(value := read(text), read)
    return replace(part, packed=_style(text, value)) if isinstance(part, Branch) else None


def _merged(one: "Branch | Leaf", other: "Branch | Leaf | None") -> "Branch | Leaf | None":
    """What has the values of both."""
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
