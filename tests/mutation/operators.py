"""What is made wrong: each operator finds the places of an SQL text where it applies, and says what stands there instead."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Edit = tuple[int, int, str]
"""From where to where of a text, and what stands there instead."""

_TOKEN = re.compile(r"'[^']*'|[A-Za-z_][\w.]*|\d+|<>|<=|>=|:=|\|\||[^\s\w]")
_CONDITION_ENDS = {
    "THEN",
    "ELSE",
    "END",
    "WHEN",
    "WHERE",
    "GROUP",
    "ORDER",
    "UNION",
    "QUALIFY",
    "LIMIT",
    "AS",
    "JOIN",
    "LEFT",
    "FULL",
    "SEMI",
    "ANTI",
    "ON",
    "SELECT",
    "FROM",
    "OVER",
    ",",
}
_WORDS = {
    "true": "false", "false": "true", "min": "max", "max": "min", "lead": "lag", "lag": "lead", "greatest": "least", "least": "greatest",
    "ASC": "DESC", "DESC": "ASC", "FIRST": "LAST", "LAST": "FIRST", "EXISTS": "NOT EXISTS", "PRECEDING": "FOLLOWING",
    "first_value": "last_value", "last_value": "first_value", "_before": "_after", "_after": "_before", "low": "high", "high": "low",
    "FULL": "LEFT", "SEMI": "ANTI", "ANTI": "SEMI",
}  # fmt: skip
_COMPARED = {"=": ("<>",), "<>": ("=",), "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "+": ("-",), "-": ("+",)}


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int
    depth: int
    """How many parentheses and CASEs it stands in; one that opens or ends stands outside."""


def tokens(text: str) -> list[Token]:
    found, depth = [], 0
    for match in _TOKEN.finditer(text):
        word = match.group()
        depth -= word in (")", "]", "}", "END")
        found.append(Token(word, match.start(), match.end(), depth))
        depth += word in ("(", "[", "{", "CASE")
    return found


def edits(text: str) -> dict[Edit, str]:
    """What can be made wrong of a text -> the operator that does so."""
    found: dict[Edit, str] = {}
    every = tokens(text)
    for name, operator in OPERATORS.items():
        for start, end, instead in operator(text, every):
            if text[start:end] != instead:
                found.setdefault((start, end, instead), name)
    return found


def _comparisons(text: str, every: Sequence[Token]) -> Iterator[Edit]:
    """A comparison, or a sum, is another one: its boundary is off by one, or its sides are swapped."""
    for token in every:
        for other in _COMPARED.get(token.text, ()):
            if text[token.start - 1 : token.start] == " " == text[token.end : token.end + 1]:
                yield token.start, token.end, other


def _nulls(text: str, every: Sequence[Token]) -> Iterator[Edit]:
    """IS NULL is IS NOT NULL, and the comparison that knows nulls is one that does not."""
    for wrong, *instead in (
        ("IS NOT NULL", "IS NULL"),
        ("IS NULL", "IS NOT NULL"),
        ("IS NOT DISTINCT FROM", "=", "IS DISTINCT FROM"),
        ("IS DISTINCT FROM", "<>", "IS NOT DISTINCT FROM"),
    ):
        for match in re.finditer(wrong, text):
            yield from ((*match.span(), other) for other in instead)


def _words(text: str, every: Sequence[Token]) -> Iterator[Edit]:
    """A word is its opposite: what is first is last, true is false, before is after, a join keeps other rows."""
    for i, token in enumerate(every):
        before = every[i - 1].text if i else ""
        if token.text in _WORDS and not (token.text == "EXISTS" and before == "NOT"):
            yield token.start, token.end, _WORDS[token.text]
        if token.text == "NOT" and before != "IS":
            yield token.start, token.end, ""
        if token.text == "DISTINCT" and before not in {"NOT", "IS"}:
            yield token.start, token.end, ""
        if token.text == "JOIN" and before not in ("LEFT", "FULL", "SEMI", "ANTI"):
            yield token.start, token.end, "LEFT JOIN"
        if token.text == "LEFT":
            yield token.start, token.end, "INNER"
        counted = before == "THEN" and every[i + 1 : i + 2] and every[i + 1].text == "END"  # all that is not null counts
        if token.text.isdigit() and not counted and before not in ("SELECT", "LIMIT") and not text[token.start - 1 : token.start].isalnum():
            yield token.start, token.end, str(int(token.text) + 1)
        if token.text.startswith("'") and "\ue000" not in token.text:
            yield token.start, token.end, "'?'"


def _conditions(text: str, every: Sequence[Token]) -> Iterator[Edit]:
    """A condition is dropped, alone or one of several; the one of a WHEN always holds, or never."""
    for i, token in enumerate(every):
        if token.text in ("AND", "OR") and not _of_between(every, i):
            neutral = "true" if token.text == "AND" else "false"
            if text.strip() == token.text:
                yield token.start, token.end, "OR" if neutral == "true" else "AND"
                continue
            for start, end in (_operand(every, i, -1), _operand(every, i, 1)):
                if start < end:
                    yield start, end, neutral
        if token.text in ("WHERE", "ON", "WHEN", "QUALIFY"):
            start, end = _operand(every, i, 1, alone=True)
            if start < end:
                yield start, end, "true"
                if token.text == "WHEN":
                    yield start, end, "false"


def _operand(every: Sequence[Token], at: int, step: int, *, alone: bool = False) -> tuple[int, int]:
    """The span of the condition beside a token; ``alone``: with all that is joined to it by AND and OR."""
    depth, i = every[at].depth, at + step
    found: list[Token] = []
    while 0 <= i < len(every):
        token = every[i]
        inner = (
            token.depth > depth
            or (token.depth == depth and token.text in ("CASE", "(", "[", "{"))
            or (token.depth == depth and token.text in (")", "]", "}", "END"))
        )
        if token.depth < depth or (not inner and token.text in _CONDITION_ENDS):
            break
        if not inner and not alone and token.text in ("AND", "OR") and not _of_between(every, i):
            break
        found.append(token)
        i += step
    return (min(t.start for t in found), max(t.end for t in found)) if found else (0, 0)


def _of_between(every: Sequence[Token], at: int) -> bool:
    for token in reversed(every[:at]):
        if token.depth == every[at].depth and token.text in ("AND", "OR", "BETWEEN"):
            return token.text == "BETWEEN"
    return False


def _parts(text: str, every: Sequence[Token]) -> Iterator[Edit]:
    """One of the values of a coalesce, one half of a union, or what a window is partitioned by, is missing."""
    for i, token in enumerate(every):
        if token.text == "coalesce":
            spans = list(_arguments(every, i + 1))
            for n, (start, end) in enumerate(spans):
                if n == 0 and len(spans) > 1:
                    yield start, spans[1][0], ""
                elif n:
                    yield spans[n - 1][1], end, ""
        if token.text == "UNION":
            end = next(
                (t.start for t in every[i + 1 :] if t.depth < token.depth or (t.depth == token.depth and t.text == "UNION")), len(text)
            )
            yield token.start, end, ""
            begin = max((t.end for t in every[:i] if t.depth < token.depth or (t.depth == token.depth and t.text == "ALL")), default=0)
            yield begin, every[i + 1].end, ""
        if token.text == "PARTITION":
            ends = (t.start for t in every[i + 1 :] if t.depth < token.depth or (t.depth == token.depth and t.text in ("ORDER", "ROWS")))
            yield token.start, next(ends, len(text)), ""


def _arguments(every: Sequence[Token], opened: int) -> Iterator[tuple[int, int]]:
    """The spans of what stands between a parenthesis and its end, comma by comma."""
    depth, start = every[opened].depth, every[opened].end
    for token in every[opened + 1 :]:
        if token.depth == depth:
            yield start, token.start
            return
        if token.depth == depth + 1 and token.text == ",":
            yield start, token.start
            start = token.end


OPERATORS: dict[str, Callable[[str, Sequence[Token]], Iterator[Edit]]] = {
    "comparison": _comparisons,
    "null": _nulls,
    "word": _words,
    "condition": _conditions,
    "part": _parts,
}
