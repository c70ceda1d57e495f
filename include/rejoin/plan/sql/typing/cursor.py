"""A place among the tokens of an expression, and what is made of them."""

from dataclasses import dataclass

from rejoin.plan.sql.typing.lexer import Token


class SyntaxMistake(Exception):
    """The text is not an expression; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Term:
    """A node. ``name``: "column" (``value``: name, ``of``: qualifier), "literal" (``of``: its type, ``value``: its text), "cast" and
    "try_cast" (``of``: the type as written), "interval" (``of``: its unit; ``value``: its microseconds if they are known), "field" (``value``: its name)
    and "item" (an element of an array, or the value of a key of a map), an operator, a construct (case, between, in, is null), or a function in lower case. "is true" has what it asks for as ``value``, a "like" its escape sign, if one is written.
    """

    name: str
    args: tuple["Term", ...] = ()
    value: str = ""
    of: str = ""


class Cursor:
    """Reads tokens one after the other; the last one is ``lexer.END``, which is never passed."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _take(self, *words: str) -> str:
        """The keyword or sign that stands here, in capitals, consumed; empty if it is none of these."""
        if not self._now.is_(*words):
            return ""
        self._at += 1
        return self._tokens[self._at - 1].value.upper()

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            found = repr(self._now.value) if self._now.kind != "end" else "the end"
            raise SyntaxMistake(f"{' or '.join(words)} is expected, not {found}")
