"""The tokens of a Spark SQL expression."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<bytes>[xX]'[^']*'|[xX]"[^"]*")
    | (?P<raw>[rR]'[^']*'|[rR]"[^"]*")
    | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFD])?(?![A-Za-z0-9_]))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=>|<>|!=|!<|!>|<=|>=|==|\|\||::|<<|>>>|>>|[-+*/%&|^~=<>(),.!\[\]])
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE: Final = re.compile(r"""\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[01][0-7]{2}|.)|''|\"\"""", re.DOTALL)


class UnknownSyntax(Exception):
    """The text may be Spark SQL, but of a part that is not known here."""


@dataclass(frozen=True)
class Token:
    """``kind``: word, name (in backticks), number, text, bytes, sign, or end. ``value``: without quotes; signs and words as written."""

    kind: str
    value: str

    def is_(self, *words: str) -> bool:
        """Whether it is one of these keywords or signs, which are given in capitals."""
        return self.kind in ("word", "sign") and self.value.upper() in words


END: Final = Token("end", "")


def tokens(text: str) -> list[Token]:
    """All tokens, and ``END``.

    Raises:
        UnknownSyntax: a character that starts no known token.
    """
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnknownSyntax
        position = match.end()
        kind = str(match.lastgroup)
        found.append(Token("text" if kind == "raw" else kind, _value(kind, match[kind])))
    return [*found, END]


def _value(kind: str, written: str) -> str:
    if kind in ("raw", "bytes"):
        return written[2:-1]
    if kind == "name":
        return written[1:-1].replace("``", "`")
    if kind == "text":
        return _ESCAPE.sub(partial(_unescaped, written[0]), written[1:-1])
    return written


def _unescaped(quote: str, match: re.Match[str]) -> str:
    code = match[1]
    if code is None:  # two quotes: one, if the text is quoted by them
        return quote if match[0][0] == quote else match[0]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if len(code) == 3 else _ESCAPES.get(code, code)
