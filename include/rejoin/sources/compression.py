"""Packed bytes -> the bytes that were packed. What packed them is told by what they begin with; a name counts only where nothing tells.

Known are gzip, zstd, bzip2, xz, lz4 frames, and snappy in its three framings: its own, ``snappy-java``'s (of many Java programs), and Hadoop's blocks
(of Spark), which have no mark and need the name. Several members, frames or streams in a row are one file. Anything cut or damaged is
``Damaged``, as far as the format has checksums.
"""

import codecs
import io
import re
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from itertools import chain
from lzma import LZMADecompressor, LZMAError

import google_crc32c
import pyarrow as pa

CHUNK = 1 << 20
PACKED = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".lz4": "lz4",
    ".snappy": "snappy",
    ".sz": "snappy",
}
"""Ends of names of packed files, and what they say."""
_HEAD = 18  # bytes that tell
_MARKS = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)|(?P<bzip2>BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90))"
    rb"|(?P<xz>\xfd7zXZ\x00)|(?P<lz4>\x04\x22\x4d\x18)|(?P<framed>\xff\x06\x00\x00sNaPpY)|(?P<java>\x82SNAPPY\x00)"
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f]")
_LARGEST = 1 << 28  # of a block of snappy: only damaged lengths ask for more


class Damaged(Exception):
    """Packed bytes are cut, damaged, or not what the name says; the text says which, and may stand in messages."""


def packing(name: str) -> str:
    """The end of a name that says how the file is packed; empty if none does."""
    return next((end for end in PACKED if name.endswith(end)), "")


def unpacked(raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The content of a file in pieces of bounded size, unpacked if it is packed.

    A file whose name says that it is packed may be plain text as well, but neither empty nor begin with bytes that text has not.

    Raises:
        Damaged: at the latest after the last piece.
    """
    head = _head(raw)
    pieces, mark, named = chain([head] if head else [], raw), _MARKS.match(head), PACKED.get(packing(name))
    if mark:
        return _READERS[str(mark.lastgroup)](pieces)
    if named == "snappy" and head.startswith(b"\x00"):  # the size of a block, which is less than 16 MiB
        return _hadoop(pieces)
    if named and not head:
        raise Damaged(f"the {named} data is cut")
    if named and not _is_text(head):
        raise Damaged(f"its name says {named}, and it begins like no {named} data that is read, nor like text")
    return pieces


def _is_text(head: bytes) -> bool:
    try:
        return not _NO_TEXT.search(codecs.getincrementaldecoder("utf-8")().decode(head))
    except UnicodeDecodeError:
        return False


def _head(raw: Iterator[bytes]) -> bytes:
    head = b""
    while len(head) < _HEAD and (piece := next(raw, None)) is not None:
        head += piece
    return head


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    engine = zlib.decompressobj(wbits=31)
    try:
        for chunk in pieces:
            rest = chunk
            while rest:
                if engine.eof:
                    engine = zlib.decompressobj(wbits=31)
                if piece := engine.decompress(rest, 16 * CHUNK):
                    yield piece
                rest = engine.unused_data if engine.eof else engine.unconsumed_tail
        if rest := engine.flush():
            yield rest
    except zlib.error:
        raise Damaged("the gzip data is damaged") from None
    if not engine.eof:
        raise Damaged("the gzip data is cut")


def _streams(engine_of: Callable[[], BZ2Decompressor | LZMADecompressor], name: str) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    def read(pieces: Iterator[bytes]) -> Iterator[bytes]:
        engine = engine_of()
        for chunk in pieces:
            rest = chunk
            while rest or not (engine.needs_input or engine.eof):
                if engine.eof:
                    engine = engine_of()
                try:
                    piece = engine.decompress(rest, 16 * CHUNK)
                except (OSError, LZMAError):
                    raise Damaged(f"the {name} data is damaged") from None
                if piece:
                    yield piece
                rest = engine.unused_data if engine.eof else b""
        if not engine.eof:
            raise Damaged(f"the {name} data is cut")

    return read


def _by_arrow(codec: str) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    def read(pieces: Iterator[bytes]) -> Iterator[bytes]:
        stored = _Stored(pieces)
        try:
            with pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec) as stream:
                while piece := stream.read(CHUNK):
                    yield piece
        except (OSError, pa.ArrowException) as error:
            if stored.failed is not None:
                raise stored.failed from None
            raise Damaged(f"the {codec} data is {'cut' if 'Truncated' in str(error) else 'damaged'}") from None

    return read


class _Stored(io.RawIOBase):
    """Pieces as a file. ``failed``: the error of who gives the pieces, if there was one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = _Bytes(pieces)
        self.failed: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            return self._pieces.take(size)
        except Exception as error:
            self.failed = error
            raise


class _Bytes:
    """Pieces of which so many bytes can be taken as are asked for."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest, self._at = pieces, b"", 0

    def take(self, size: int) -> bytes:
        """The next bytes; fewer at the end only."""
        parts = [self._rest[self._at : self._at + size]]
        have = len(parts[0])
        self._at += have
        while have < size and (piece := next(self._pieces, None)) is not None:
            self._rest, self._at = piece, min(size - have, len(piece))
            parts.append(piece[: self._at])
            have += self._at
        return b"".join(parts)

    def exactly(self, size: int) -> bytes:
        """The next bytes of snappy's; Damaged if there are fewer."""
        if size > _LARGEST:
            raise Damaged("the snappy data is damaged")
        found = self.take(size)
        if len(found) < size:
            raise Damaged("the snappy data is cut")
        return found

    def lengths(self) -> Iterator[bytes]:
        """Four bytes again and again, up to the end; Damaged if fewer are left there."""
        while head := self.take(4):
            if len(head) < 4:
                raise Damaged("the snappy data is cut")
            yield head


def _framed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Snappy's framing format: chunks of a type and a length, those with data also of a checksum."""
    stored = _Bytes(pieces)
    for head in stored.lengths():
        kind, data = head[0], stored.exactly(int.from_bytes(head[1:], "little"))
        if kind in (0, 1):
            plain = snappy_block(data[4:]) if kind == 0 else data[4:]
            if _masked(plain).to_bytes(4, "little") != data[:4]:
                raise Damaged("the snappy data is damaged")
            yield plain
        elif kind < 0x80 or (kind == 0xFF and data != b"sNaPpY"):
            raise Damaged("the snappy data is damaged")


def _masked(plain: bytes) -> int:
    check = int(google_crc32c.value(plain))
    return ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _java(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Of ``snappy-java``: a head of 16 bytes, again where streams were put together, and blocks behind their lengths. It has no checksums."""
    stored = _Bytes(pieces)
    for head in stored.lengths():
        if head == b"\x82SNA":
            stored.exactly(12)
        else:
            yield snappy_block(stored.exactly(int.from_bytes(head, "big")))


def _hadoop(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Of Hadoop: the size of a block before it was packed, then packed parts behind their lengths, up to that size. It has no checksums."""
    stored = _Bytes(pieces)
    for head in stored.lengths():
        left = int.from_bytes(head, "big")
        while left > 0:
            plain = snappy_block(stored.exactly(int.from_bytes(stored.exactly(4), "big")))
            left -= len(plain)
            yield plain
        if left:
            raise Damaged("the snappy data is damaged")


def snappy_block(data: bytes) -> bytes:
    """A block of snappy without any framing."""
    size = 0
    for at, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            break
    try:
        if size <= _LARGEST:
            return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))
    except (OSError, pa.ArrowException):
        pass
    raise Damaged("the snappy data is damaged")


_READERS: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "zstd": _by_arrow("zstd"),
    "bzip2": _streams(BZ2Decompressor, "bzip2"),
    "xz": _streams(LZMADecompressor, "xz"),
    "lz4": _by_arrow("lz4"),
    "framed": _framed,
    "java": _java,
}
