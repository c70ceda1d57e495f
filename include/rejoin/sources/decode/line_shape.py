"""The shape of JSON lines: all that their writer repeats in each, and the places of what varies.

A line is *of the shape* if its values, written into the shape's places, give the line again, letter by letter. So whoever took the values out of it, and
however loosely, has found what the line says: no member twice, none too many, no number rounded, no text cut. DuckDB's reader may take them out then, which
is twenty times faster than making Python's objects, and not exact by itself (it reads ``1.5`` as 2 where a whole number is wanted, and long decimals as floating point).
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rejoin.plan.sql.portable import quoted
from rejoin.statements.dialect import DUCKDB

Path = tuple[str, ...]
TEXT, WHOLE, NUMBER, FLAG, NULL = "text", "whole", "number", "flag", "null"
DECIMAL, FLOATING, OCTETS = "decimal", "floating", "octets"
"""Kinds of values that lines do not have (``column_shape``)."""
_READ_AS = {TEXT: "VARCHAR", WHOLE: "BIGINT", NUMBER: "VARCHAR", FLAG: "BOOLEAN", NULL: "VARCHAR"}
_PLAIN_NUMBER = r"-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,3})?"
_NUMBER_OF_A_MEMBER = r":( ?)(-?[0-9]+(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))"
"""Behind a name: a number with a point or an exponent. Found in texts, too; such a line is then not of the shape."""
Style = tuple[str, str]
"""What stands between members, and between a name and its value."""
STYLES: tuple[Style, Style] = ((",", ":"), (", ", ": "))
"""Those of nearly all writers."""
_ESCAPES = (("chr(92)", r"'\\'"), ("chr(34)", "'\\\"'"))
_MORE_ESCAPES = (("chr(10)", r"'\n'"), ("chr(13)", r"'\r'"), ("chr(9)", r"'\t'"))
"""SQL texts: characters and what is written for them in a text; that of others differs from writer to writer."""

_SHORT = 4_000
"""Bytes of a line that is looked through for each null of each element of an array."""
_MARKS = tuple(map(chr, range(1, 9)))
"""What stands for constants: characters that no line has. A shape has no more constants than these."""


@dataclass(frozen=True)
class Branch:
    """An object. ``nullable``: null has been seen in its place. ``packed``: it is written as a text of JSON, in that style. ``optional``: it may be lacking."""

    members: "dict[str, Part]"
    nullable: bool = False
    packed: Style | None = None
    optional: bool = False


@dataclass(frozen=True)
class Leaf:
    """A value. ``escaped``: a text with characters that are written as others has been seen; the rest as of a ``Branch``."""

    kind: str
    nullable: bool = False
    escaped: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Items:
    """An array, whose elements have a shape without arrays and NUMBERs; the rest as of a ``Branch``."""

    each: Branch | Leaf
    nullable: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Constant:
    """A value that every line repeats letter by letter, as lines repeat the schema of their payload. Nothing is read from it."""

    text: str
    nullable: ClassVar[bool] = False
    optional: ClassVar[bool] = False


Part = Branch | Leaf | Items | Constant


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
        written = sorted(set(_constants(root, within_text=False)), key=len, reverse=True)
        self._marks = dict(zip(written, _MARKS[: len(written)], strict=True))

    def short(self, line: str) -> str:
        """SQL text: a ``line`` without control characters but its line feed, with one in the place of each constant, which leads back to the line.

        So the constants, which are most of the lines that have some, are neither looked through nor written again.
        """
        for text, mark in self._marks.items():
            line = f"replace({line}, {quoted(text)}, {quoted(mark)})"
        return line

    def whole(self, short: str) -> str:
        """The line that ``short`` has made shorter."""
        for text, mark in self._marks.items():
            short = short.replace(mark, text)
        return short

    def structs(self, lines: str, columns: str) -> str:
        """SQL text: the ``columns`` of the table ``lines``, one of which is ``line`` (``short``), and ``j``: the struct of the line, null if DuckDB finds
        none.
        """
        line = "line"
        for mark in self._marks.values():
            line = f"replace({line}, {quoted(mark)}, 'null')"
        outer = _struct(line, self.root, odd_numbers=self._odd_numbers and not self._packed)
        if not self._packed:
            return f"SELECT {columns}, {outer} AS j FROM {lines}"
        found = {name: at("o", (name,)) for name, member in self.root.members.items() if not isinstance(member, Constant)}
        found |= {name: _struct(found[name], member, odd_numbers=self._odd_numbers) for name, member in self._packed.items()}
        made = f"CASE WHEN o IS NOT NULL THEN {{{', '.join(f'{quoted(name)}: {text}' for name, text in found.items())}}} END"
        return f"SELECT {columns}, {made} AS j FROM (SELECT {columns}, {outer} AS o FROM {lines})"

    def again(self, row: str) -> str:
        """SQL text: the short line with its line feed, made of the struct ``row``; another text where a value is none of its kind."""
        made = _joined([*_pieces(self.root, row, self._style, ()), "chr(10)"])
        for text, mark in self._marks.items():
            made = made.replace(quoted(text)[1:-1], mark)
        return made

    def lacks(self, path: Path, row: str) -> str:
        """SQL condition: a line of the shape does not have the member of ``row``, which is not null, whose place is ``path``. Not of elements of arrays."""
        part, value = part_at(self.root, path), at(row, path[-1:])
        if part is None or not part.optional:
            return "true" if part is None else "false"
        return f"({value} IS NULL AND NOT {_is_written(path, self._style)})" if part.nullable else f"{value} IS NULL"

    def guards(self, row: str, line: str) -> Iterator[str]:
        """SQL conditions that must hold as well, lest something is written as it stands that is no JSON: what is read as text, and written without quotes,
        is a number; a text that is written as it is has nothing to escape; and there is an object where one is written.
        """
        plain = []
        for path, leaf in leaves(self.root):
            if isinstance(leaf, Items):
                plain.append(_plain_texts(leaf, at(row, path)))
            elif leaf.kind == NUMBER:
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


def _pieces(part: Part, value: str, style: Style, path: Path, *, within_text: bool = False) -> list[str]:
    """SQL texts of what is written for a value, one behind the other. ``within_text``: of a text of JSON, where quotes and backslashes are escaped."""
    if isinstance(part, Constant):
        return [_literal(part.text, within_text=within_text)]
    if isinstance(part, Leaf):
        return _of_leaf(part, value, within_text=within_text)
    if isinstance(part, Items):
        each = _joined(_pieces(part.each, "e", style, path, within_text=within_text))
        found = ["'['", f"array_to_string(list_transform({value}, lambda e: {each}), {quoted(style[0])})", "']'"]
    else:
        inner = within_text or part.packed is not None
        found = ["'{'", *_members(part, value, part.packed or style, path, within_text=inner), "'}'"]
        if part.packed:
            found = ["'\"'", *found, "'\"'"]
    return [f"CASE WHEN {value} IS NULL THEN 'null' ELSE {_joined(found)} END"] if part.nullable else found


def _members(part: Branch, value: str, style: Style, path: Path, *, within_text: bool) -> list[str]:
    """SQL texts of what is written between the braces of an object; nothing for members that it lacks."""
    comma, colon = style
    is_first_there = not next(iter(part.members.values())).optional
    found = []
    for n, (name, member) in enumerate(part.members.items()):
        label = _literal(
            f"{'' if n == 0 and is_first_there else comma}{json.dumps(name, ensure_ascii=False)}{colon}", within_text=within_text
        )
        there, place = at(value, (name,)), (*path, name)
        if member.optional:
            known = member if isinstance(member, Constant) else replace(member, nullable=False)
            cases = [f"WHEN {there} IS NOT NULL THEN {_joined([label, *_pieces(known, there, style, place, within_text=within_text)])}"]
            if member.nullable:
                cases.append(f"WHEN {_is_written(place, style)} THEN {_joined([label, quoted('null')])}")
            found.append(f"CASE {' '.join(cases)} ELSE '' END")
        else:
            found += [label, *_pieces(member, there, style, place, within_text=within_text)]
    return found if is_first_there else [f"substr({_joined(found)}, {len(comma) + 1})"]


def _is_written(path: Path, style: Style) -> str:
    """SQL condition: a guess whether a ``line`` says null there, where a value is null that may be lacking, too. A line is of the shape only if it is right."""
    names = [re.escape(f"{json.dumps(name, ensure_ascii=False)}{style[1]}") for name in path]
    return f"(strlen(line) < {_SHORT} AND regexp_matches(line, {quoted('[^}]*'.join(names) + 'null')}))"


def _plain_texts(items: Items, value: str) -> str:
    """SQL text: all texts of an array that have nothing to escape, joined."""
    plain = [at("e", path) for path, leaf in leaves(items.each) if isinstance(leaf, Leaf) and leaf.kind == TEXT and not leaf.escaped]
    return f"array_to_string(list_transform({value}, lambda e: concat({', '.join(plain)})), '')" if plain else "''"


def _of_leaf(leaf: Leaf, value: str, *, within_text: bool) -> list[str]:
    if leaf.kind == NULL:
        return ["'null'"]
    written, quote = value, _literal('"', within_text=within_text)
    if leaf.escaped:
        written = _escaped(value, _ESCAPES + _MORE_ESCAPES)
        written = _escaped(written, _ESCAPES) if within_text else written
    if leaf.nullable:
        text = f"{quote} || {written} || {quote}" if leaf.kind == TEXT else f"CAST({value} AS VARCHAR)"
        return [f"coalesce({text}, 'null')"]
    return [quote, written, quote] if leaf.kind == TEXT else [value]


def _literal(text: str, *, within_text: bool) -> str:
    return quoted(json.dumps(text, ensure_ascii=False)[1:-1] if within_text else text)


def has_marks(root: Branch) -> bool:
    """Whether there are marks for all constants of an object."""
    return len(set(_constants(root, within_text=False))) <= len(_MARKS)


def _constants(part: Part, *, within_text: bool) -> Iterator[str]:
    """The letters that stand in a line for its constants."""
    if isinstance(part, Constant):
        yield json.dumps(part.text, ensure_ascii=False)[1:-1] if within_text else part.text
    elif isinstance(part, Branch):
        for member in part.members.values():
            yield from _constants(member, within_text=within_text or part.packed is not None)


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


def part_at(part: Part | None, path: Path) -> Part | None:
    """What stands in a place below a part; None if nothing does."""
    for name in path:
        part = part.members.get(name) if isinstance(part, Branch) else None
    return part


def kind_at(part: Part, path: Path) -> str | None:
    """The kind of the value that stands there; None if there is none."""
    found = part_at(part, path)
    return found.kind if isinstance(found, Leaf) else None


def leaves(part: Part, path: Path = ()) -> Iterator[tuple[Path, Leaf | Items]]:
    """Every value and every array with its place."""
    if isinstance(part, Leaf | Items):
        yield path, part
    elif isinstance(part, Branch):
        for name, member in part.members.items():
            yield from leaves(member, (*path, name))


def _structure(part: Part, *, whole: bool = False) -> Any:
    """What ``from_json`` is asked for. ``whole``: the part itself, though it is packed."""
    if isinstance(part, Items):
        return [_structure(part.each)]
    if isinstance(part, Branch) and (whole or not part.packed):
        return {name: _structure(member) for name, member in part.members.items() if not isinstance(member, Constant)}
    return _READ_AS[part.kind if isinstance(part, Leaf) else TEXT]
