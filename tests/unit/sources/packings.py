"""What packs files, by other people's libraries as far as these are installed: gzip, bzip2 and xz of Python, ``zstandard``, lz4 and blocks of snappy of Arrow."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from functools import partial

import google_crc32c
import pyarrow as pa
import zstandard

BLOCK = 65_536


def by_arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


def blocks(data: bytes) -> list[bytes]:
    return [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="snappy", asbytes=True))


def framed(data: bytes) -> bytes:
    """https://github.com/google/snappy/blob/main/framing_format.txt, with a chunk that is not packed, padding and one that is skipped."""
    out = [b"\xff\x06\x00\x00sNaPpY", b"\xfe\x03\x00\x00\0\0\0", b"\x80\x01\x00\x00x"]
    for at, block in enumerate(blocks(data)):
        check = google_crc32c.value(block)
        masked = ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF
        body = masked.to_bytes(4, "little") + (block if at % 2 else snappy(block))
        out.append(bytes([at % 2]) + len(body).to_bytes(3, "little") + body)
    return b"".join(out)


def by_java(data: bytes) -> bytes:
    """As ``org.xerial.snappy.SnappyOutputStream`` does."""
    packed = [snappy(block) for block in blocks(data)]
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(len(block).to_bytes(4, "big") + block for block in packed)


def by_hadoop(data: bytes) -> bytes:
    """As ``org.apache.hadoop.io.compress.BlockCompressorStream`` does; each block in two parts."""
    out = []
    for block in blocks(data):
        out.append(len(block).to_bytes(4, "big"))
        parts = [snappy(part) for part in (block[:1000], block[1000:]) if part]
        out += [len(part).to_bytes(4, "big") + part for part in parts]
    return b"".join(out)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd,
    "bzip2": bz2.compress,
    "xz": partial(lzma.compress, preset=1),
    "lz4": lambda data: by_arrow(data, "lz4"),
    "snappy framed": framed,
    "snappy-java": by_java,
    "snappy Hadoop": by_hadoop,
}
NAMED = {"snappy Hadoop": "a.jsonl.snappy"}
"""Names that are needed, as nothing in the bytes tells; the others are read under any."""
CHECKED = {"gzip", "zstd", "bzip2", "xz", "snappy framed"}
"""Those with checksums of all data."""
