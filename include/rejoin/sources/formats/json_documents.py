"""Files of JSON that are not a document a line -> the same documents, a line each.

Told by the first document: a file that begins with an array of objects, or whose first document does not end where its first line does, holds
*documents*: one after another, with or without white space between them, and arrays of them. Any other file holds lines, and is passed on as it is. So
the number of a document (from 1, elements of arrays counted like any other) is its line for all who read on.

Where a document ends is told by its braces outside of texts. It holds no line feeds then: where white space has one, there is a space.
A document that is wrong in itself is one bad record. A file in which it is not certain where documents end is ``SourceCorrupt`` as a whole:
it ends within one, something else stands between two, or one that is wrong might be several.
"""

import re
from collections.abc import Iterator
from itertools import chain

from rejoin.errors import BadRecord, SourceCorrupt
from rejoin.sources.formats.json_text import AMBIGUOUS_JSON, loads
from rejoin.sources.stored_files import BOM, corrupt

_UNDECIDED = 16 << 20
"""A first document of more bytes is a line."""
_PIECE = 1 << 20
_TEXT = rb'"(?:[^"\\]++|\\.)*+"'


def _nested(levels: int) -> bytes:
    return rb'\{(?:[^{}"]++|%b%b)*+\}' % (_TEXT, b"|" + _nested(levels - 1) if levels else b"")


# Of an object that is nested less than ten deep one match finds the end; of others the walk over braces does.
_OBJECT = re.compile(_nested(9), re.DOTALL)
_BRACES = re.compile(rb'[{}]|"(?:[^"\\]++|\\.)*+(?P<end>"?)', re.DOTALL)
_BLANK = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"%b|[-+.\w]+(?=[ \t\r\n,\]])" % _TEXT, re.DOTALL)
_NEXT_LINE = re.compile(rb"[^\s\[,:{]\s*\n\s*\{")
_SEVERAL = re.compile(rb"\}\s*,?\s*\{")


def document_lines(pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
    """The pieces of a file of JSON -> pieces of lines, a document each.

    Args:
        pieces: as ``open_pinned`` gives them.
        path: as pinned, for errors.

    Raises:
        SourceCorrupt: it is not certain where documents end. What was read before must be thrown away.
    """
    head, documents = b"", None
    while documents is None:
        piece = next(pieces, None)
        head += piece or b""
        documents = _holds_documents(head, ended=piece is None)
    whole = chain([head] if head else [], pieces)
    return _joined(_Documents(whole, path).found()) if documents else whole


def _holds_documents(head: bytes, *, ended: bool) -> bool | None:
    """Whether a file holds documents, not lines; None if more of it has to be seen."""
    if len(head) < len(BOM) and not ended:
        return None
    start = _after_blank(head, len(BOM) if head.startswith(BOM) else 0)
    if head[start : start + 1] == b"[":
        inside = head[_after_blank(head, start + 1) :][:1]
        return None if not inside and not ended else inside in (b"{", b"]")
    if head[start : start + 1] != b"{":
        return False if start < len(head) or ended else None
    found = _OBJECT.match(head, start)
    if found is None:
        return False if ended or len(head) > _UNDECIDED or _is_cut_line(head, start) else None
    rest, ends, _ = head[found.end() :].partition(b"\n")
    if b"\n" in found[0] or b"{" in rest:
        return True
    return False if ends or ended or len(head) > _UNDECIDED else None


def _is_cut_line(head: bytes, start: int) -> bool:
    """Whether what begins at ``start`` and has no end yet can be no document of several lines: one begins on a later line where none can."""
    return _NEXT_LINE.search(head, start) is not None


def _after_blank(data: bytes, at: int) -> int:
    found = _BLANK.match(data, at)
    return found.end() if found else at


def _joined(documents: Iterator[bytes]) -> Iterator[bytes]:
    lines, size = list[bytes](), 0
    for document in documents:
        lines.append(document.replace(b"\n", b" ").replace(b"\r", b" "))
        size += len(document)
        if size >= _PIECE:
            yield b"\n".join(lines) + b"\n"
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines) + b"\n"


class _Documents:
    """The documents of one file. ``_data`` from ``_at`` on is not yet read."""

    def __init__(self, pieces: Iterator[bytes], path: str) -> None:
        self._pieces, self._path = pieces, path
        self._data, self._at, self._number, self._ended = b"", 0, 0, False

    def found(self) -> Iterator[bytes]:
        self._more()
        self._at = len(BOM) if self._data.startswith(BOM) else 0
        inside = False
        while sign := self._sign():
            if sign == b"[" and not inside:
                inside, self._at = True, self._at + 1
                if self._sign() == b"]":
                    inside, self._at = False, self._at + 1
            elif sign == b"{" or inside:
                self._number += 1
                yield self._object() if sign == b"{" else self._scalar()
                if inside:
                    inside = self._separator()
            else:
                raise self._uncertain("something that is no object follows")
        if inside:
            raise self._uncertain("the array does not end after")

    def _sign(self) -> bytes:
        """The next character that is not blank; empty at the end of the file."""
        while (at := _after_blank(self._data, self._at)) == len(self._data):
            self._at = at
            if not self._more():
                return b""
        self._at = at
        return self._data[at : at + 1]

    def _separator(self) -> bool:
        """Passes over what follows an element of an array; whether another element does."""
        sign = self._sign()
        self._at += 1
        if sign not in (b",", b"]"):
            raise self._uncertain("neither a comma nor the end of the array follows")
        if sign == b"," and self._sign() in (b",", b"]", b""):
            raise self._uncertain("a comma and no other document follow")
        return sign == b","

    def _object(self) -> bytes:
        found = _OBJECT.match(self._data, self._at)
        document = self._taken(found.end()) if found else self._walked()
        if _SEVERAL.search(document) and not _is_json(document):
            raise self._uncertain("there may be others in")
        return document

    def _walked(self) -> bytes:
        """The object that begins here, however deep and long it is."""
        depth, at = 0, self._at
        while True:
            for found in _BRACES.finditer(self._data, at):
                if found["end"] == b"":
                    at = found.start()
                    break
                depth += {b"{": 1, b"}": -1}.get(found[0], 0)
                at = found.end()
                if depth == 0:
                    return self._taken(at)
            else:
                at = len(self._data)
            at -= self._at
            if not self._more():
                raise self._uncertain("the file ends in")
            at += self._at

    def _scalar(self) -> bytes:
        while not (found := _SCALAR.match(self._data, self._at)):
            if len(self._data) - self._at > _UNDECIDED or not self._more():
                raise self._uncertain("no JSON value is")
        return self._taken(found.end())

    def _taken(self, end: int) -> bytes:
        found = self._data[self._at : end]
        self._at = end
        return found

    def _more(self) -> bool:
        """Reads on; False at the end of the file."""
        piece = next(self._pieces, None)
        if piece is not None:
            self._data, self._at = self._data[self._at :] + piece, 0
        return piece is not None

    def _uncertain(self, why: str) -> SourceCorrupt:
        for _ in self._pieces:  # a changed file is reported as changed, not as corrupt
            pass
        return corrupt(self._path, f"where its documents end is not certain: {why} document {self._number}")


def _is_json(document: bytes) -> bool:
    try:
        loads(document.decode("utf-8", "replace"))
    except BadRecord as bad:
        return bad.code == AMBIGUOUS_JSON
    return True
