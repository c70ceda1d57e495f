"""Text in any encoding -> UTF-8, piece by piece. Bytes that are no text in it stay as they are, so that the record that has them is refused, and no other.

And which texts of Arrow's are none.
"""

import codecs
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pat

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


def no_utf8(values: pa.Array) -> pa.BooleanArray | None:
    """Which texts are none; None if all are."""
    try:
        values.validate(full=True)
        return None
    except pa.ArrowInvalid:
        plain = values.dictionary_decode() if pat.is_dictionary(values.type) else values
        large = pa.large_binary() if pat.is_large_string(plain.type) else pa.binary()
        return pa.array([value is not None and not _is_text(value) for value in plain.view(large).to_pylist()], pa.bool_())


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
