"""Text in any encoding -> UTF-8, piece by piece. Bytes that are no text in it stay as they are, so that the record that has them is refused, and no other."""

import codecs
from collections.abc import Iterator

from rejoin.sources.stored_files import corrupt


def as_utf8(pieces: Iterator[bytes], encoding: str, path: str) -> Iterator[bytes]:
    """The pieces of a file in UTF-8.

    Raises:
        SourceCorrupt: the encoding has no single bytes, and some are no text in it: nobody knows where text begins again.
    """
    return pieces if encoding == "utf-8" else _transcoded(pieces, encoding, path)


def _transcoded(pieces: Iterator[bytes], encoding: str, path: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8", "surrogateescape")
        yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")
    except UnicodeError:
        raise corrupt(path, f"it is no text in {encoding}") from None
