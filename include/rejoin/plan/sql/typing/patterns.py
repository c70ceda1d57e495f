"""Mistakes in a regular expression of Java, as ``RLIKE`` and the ``regexp_`` functions take it."""

import re
from typing import Final

_GROUP: Final = re.compile(r"\?(?:[:=!>]|<[=!]|<[A-Za-z][A-Za-z0-9]*>|[idmsuxU]*(?:-[idmsuxU]+)?[:)])")
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")
_ESCAPE: Final = re.compile(
    r"\\(?:[tnrfaedDsSwWhHvVE]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|0[0-3]?[0-7]{1,2}|c.|[pP](?:\{[A-Za-z0-9_=]+\}|[A-Z])|[^A-Za-z0-9])",
    re.DOTALL,
)
_OUTSIDE_CLASSES: Final = re.compile(r"\\(?:[bBAGZzRX1-9]|k<[A-Za-z][A-Za-z0-9]*>)")


class _BrokenError(Exception):
    """What is wrong."""


def mistake(pattern: str) -> str | None:
    """What is wrong with a pattern, as the end of a sentence; None if nothing is."""
    try:
        _Scan(pattern).run()
    except _BrokenError as error:
        return str(error)
    return None


class _Scan:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._open = 0
        self._repeatable = False

    def run(self) -> None:
        while self._at < len(self._text):
            sign = self._text[self._at]
            match sign:
                case "\\":
                    self._escape(in_class=False)
                case "[":
                    self._class()
                case "(":
                    self._group()
                case ")":
                    self._close()
                case "*" | "+" | "?" | "{":
                    self._repeat()
                case _:
                    self._at += 1
                    self._repeatable = sign != "|"
        if self._open:
            raise _BrokenError("a parenthesis is not closed")

    def _escape(self, *, in_class: bool) -> None:
        self._repeatable = True
        if self._text.startswith("\\Q", self._at):
            end = self._text.find("\\E", self._at + 2)
            self._at = len(self._text) if end < 0 else end + 2
            return
        match = _ESCAPE.match(self._text, self._at) or (None if in_class else _OUTSIDE_CLASSES.match(self._text, self._at))
        if match is None:
            raise _BrokenError(f"{self._text[self._at : self._at + 2]} is not an escape that Java knows")
        self._at = match.end()

    def _group(self) -> None:
        self._at += 1
        self._open += 1
        self._repeatable = False
        if self._text.startswith("?", self._at):
            match = _GROUP.match(self._text, self._at)
            if match is None:
                raise _BrokenError("'(?' is not followed by a kind of group that Java knows")
            self._at = match.end()
            if match[0].endswith(")"):
                self._open -= 1

    def _close(self) -> None:
        self._at += 1
        self._open -= 1
        self._repeatable = True
        if self._open < 0:
            raise _BrokenError("a parenthesis is closed that was not opened")

    def _repeat(self) -> None:
        sign = self._text[self._at]
        if not self._repeatable and sign != "{":
            raise _BrokenError(f"there is nothing for {sign!r} to repeat")
        match = _REPEAT.match(self._text, self._at)
        if sign == "{" and match is None:
            raise _BrokenError("'{' starts a repetition such as {2,3}; write \\{ for the character")
        if match is not None and match[3] and int(match[3]) < int(match[1]):
            raise _BrokenError(f"{match[0]} ends before it begins")
        self._at = match.end() if match else self._at + 1
        if self._text[self._at : self._at + 1] in ("?", "+"):
            self._at += 1
        self._repeatable = False

    def _class(self) -> None:
        """From ``[`` to its ``]``; classes may be nested."""
        self._at += 1
        if self._text.startswith("^", self._at):
            self._at += 1
        first, low = True, ""
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == "]" and not first:
                self._at += 1
                self._repeatable = True
                return
            start = self._at
            if sign == "[":
                self._class()
            elif sign == "\\":
                self._escape(in_class=True)
            else:
                self._at += 1
            low = self._in_range(start, low)
            first = False
        raise _BrokenError("a character class is not closed")

    def _in_range(self, start: int, low: str) -> str:
        """The plain character that a range may start with; one that ends a range is compared with its start."""
        written = self._text[start : self._at]
        if len(written) != 1 or written == "[":
            return ""
        if len(low) == 2:
            if written < low[0]:
                raise _BrokenError(f"the range {low}{written} ends before it begins")
            return ""
        return low + written if low and written == "-" else written


def like_mistake(pattern: str, escape: str) -> str | None:
    """What is wrong with a pattern of LIKE: an escape stands before ``%``, ``_`` or itself only."""
    position = 0
    while (position := pattern.find(escape, position)) >= 0:
        if pattern[position + 1 : position + 2] not in ("%", "_", escape) or position + 1 == len(pattern):
            return f"{escape!r} escapes %, _ and itself, nothing else"
        position += 2
    return None
