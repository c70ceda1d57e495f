"""Avro container files: header, then blocks of records, each with its length and a mark that ends it. Needs ``fastavro`` (the extra ``avro``)."""

import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rejoin.errors import SourceCorrupt
from rejoin.sources.compression import Damaged, snappy_block, unpacked
from rejoin.sources.formats.connect_json import physical_avro
from rejoin.sources.stored_files import corrupt

_META = {"type": "map", "values": "bytes"}
_MARK = 16


@dataclass(frozen=True)
class Block:
    """Records that follow each other. ``number``: of the block, from 1."""

    number: int
    count: int
    octets: bytes


class AvroFile(NamedTuple):
    """A file as it was pinned.

    Attributes:
        path: for errors.
        schema: as it stands there.
        parsed: the same, by which numbers and octets are read as they are stored.
        blocks: of its records.
    """

    path: str
    schema: Any
    parsed: Any
    blocks: Iterator[Block]

    def records(self, blocks: Iterable[Block]) -> Iterator[Any]:
        """What stands in blocks.

        Raises:
            SourceCorrupt: they are cut or damaged.
        """
        import fastavro

        for block in blocks:
            stream = io.BytesIO(block.octets)
            try:
                found: list[Any] = [fastavro.schemaless_reader(stream, self.parsed, None) for _ in range(block.count)]
                if stream.read(1):
                    raise ValueError
            except _BROKEN:
                raise _damaged(self.path, block.number) from None
            yield from found


def avro_file(data: bytes, path: str) -> AvroFile:
    """What a container file holds.

    Args:
        data: all of it.
        path: as pinned, for errors.

    Raises:
        SourceCorrupt: it is cut, damaged or of an unknown codec; of blocks also as they are asked for.
    """
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    stream = io.BytesIO(data)
    try:
        if stream.read(4) != b"Obj\x01":
            raise corrupt(path, "it is no Avro container file")
        meta: Any = fastavro.schemaless_reader(stream, _META, None)
        codec, schema = meta.get("avro.codec", b"null").decode(), json.loads(meta["avro.schema"])
        parsed = fastavro.parse_schema(physical_avro(schema))
        mark = _exactly(stream, _MARK)
    except (*_BROKEN, SchemaParseException, UnknownType) as error:
        raise corrupt(path, f"the header of the Avro file is cut or damaged ({type(error).__name__})") from None
    if codec not in _CODECS:
        raise corrupt(path, f"the Avro codec {codec!r} is unknown")
    return AvroFile(path, schema, parsed, _blocks(stream, len(data), _CODECS[codec], mark, path))


def _blocks(stream: io.BytesIO, size: int, unpack: Callable[[bytes], bytes], mark: bytes, path: str) -> Iterator[Block]:
    number = 0
    while stream.tell() < size:
        number += 1
        try:
            count, length = _long(stream), _long(stream)
            octets = unpack(_exactly(stream, length))
            if count < 0 or _exactly(stream, _MARK) != mark:
                raise ValueError
        except _BROKEN:
            raise _damaged(path, number) from None
        yield Block(number, count, octets)


def _damaged(path: str, block: int) -> SourceCorrupt:
    return corrupt(path, f"block {block} of the Avro file is cut or damaged")


def _exactly(stream: io.BytesIO, size: int) -> bytes:
    found = stream.read(size) if size >= 0 else b""
    if len(found) != size:
        raise EOFError
    return found


def _long(stream: io.BytesIO) -> int:
    """A number as Avro writes it: seven bits a byte, the sign last."""
    found = 0
    for shift in range(0, 70, 7):
        byte = _exactly(stream, 1)[0]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1)
    raise ValueError


def _snappy(data: bytes) -> bytes:
    plain = snappy_block(data[:-4])
    if zlib.crc32(plain).to_bytes(4, "big") != data[-4:]:
        raise ValueError
    return plain


def _by_content(data: bytes) -> bytes:
    return b"".join(unpacked(iter([data]), ".xz"))


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda data: data,
    "deflate": lambda data: zlib.decompress(data, wbits=-15),
    "snappy": _snappy,
    "zstandard": _by_content,
    "bzip2": _by_content,
    "xz": _by_content,
}
_BROKEN = (
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    zlib.error,
    Damaged,
)
