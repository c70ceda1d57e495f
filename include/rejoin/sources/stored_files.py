"""Where source files are and how their bytes are read: local paths inside the root, or URIs through ``pyarrow.fs``.

A path without scheme starts at the root and may not leave it, neither by ``..`` nor by a symbolic link. A URI (``s3a://``,
``hdfs://``, ``file://``) is taken as given: who writes one names another store on purpose.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from rejoin.errors import SourceCorrupt, SourceFileChanged, SourceFileMissing, SourceOutsideRoot
from rejoin.plan.model.sources import NamedFields, Source

CHUNK = 1 << 20
BOM = b"\xef\xbb\xbf"
_AT_ONCE = 4
# What other kinds of files begin with; where that could be text, too, with what follows it there.
_BINARY = re.compile(
    rb"(?P<zstd>\x28\xb5\x2f\xfd)|(?P<gzip>\x1f\x8b)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\x00)|(?P<zip>PK\x03\x04)"
    rb"|(?P<Parquet>PAR1[\x00-\x08\x0e-\x1f])|(?P<Avro>Obj\x01)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Longest first: the format of a name is the first that it ends with.
_FORMATS = {
    ".csv.gz": "csv",
    ".jsonl.gz": "json",
    ".ndjson.gz": "json",
    ".json.gz": "json",
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
}


@dataclass(frozen=True)
class PinnedFile:
    """One file as a run reads it: ``path`` relative to the root or an absolute URI, its size and its SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Place:
    """A file or directory: ``label`` is what a pin and an error call it, ``native`` what its file system calls it."""

    fs: Any
    native: str
    label: str

    @property
    def name(self) -> str:
        return self.label.rstrip("/").rsplit("/", 1)[-1]

    def info(self) -> Any:
        return self.fs.get_file_info(self.native)

    def exists(self) -> bool:
        return bool(self.info().type != pafs.FileType.NotFound)

    def is_directory(self) -> bool:
        return bool(self.info().type == pafs.FileType.Directory)


def format_of(path: str) -> str | None:
    """csv, json or parquet by the end of the name; None for any other file."""
    return next((format_ for end, format_ in _FORMATS.items() if path.endswith(end)), None)


def written_as(source: Source, path: str) -> str | None:
    """csv, json or parquet: what a source says of all its files, else what the name of the file says; None if neither does."""
    declared = source.format if isinstance(source, NamedFields) else None
    return format_of(path) if declared is None else declared.kind


def place(root: str, path: str) -> Place:
    """Where ``path`` is, seen from ``root``; SourceOutsideRoot if it is a path that leaves the root."""
    if _SCHEME.match(path):
        return _remote(path)
    if _SCHEME.match(root):
        if ".." in path.split("/"):
            raise _outside(path)
        return _remote(root.rstrip("/") + "/" + path.strip("/"))
    # os.path, as pathlib cannot drop `..` without following links, and both views of the path are needed.
    base = os.path.abspath(root)  # noqa: PTH100
    full = os.path.normpath(os.path.join(base, path))  # noqa: PTH118
    real, real_base = os.path.realpath(full), os.path.realpath(base)
    if os.path.commonpath([real, real_base]) != real_base:
        raise _outside(path)
    label = os.path.relpath(full, base) if os.path.commonpath([full, base]) == base else os.path.relpath(real, real_base)
    return Place(pafs.LocalFileSystem(), full, label.replace(os.sep, "/"))


def children(root: str, directory: Place) -> list[Place]:
    """The entries of a directory in name order, without hidden ones (``_`` or ``.`` first)."""
    entries = directory.fs.get_file_info(pafs.FileSelector(directory.native))
    names = sorted(entry.base_name for entry in entries)
    front = "" if directory.label == "." else directory.label.rstrip("/") + "/"
    return [place(root, front + name) for name in names if not name.startswith(("_", "."))]


def pin_file(file: Place) -> PinnedFile:
    """The file as it is now. Reads all of it."""
    digest, size = hashlib.sha256(), 0
    for chunk in _raw(file):
        digest.update(chunk)
        size += len(chunk)
    return PinnedFile(file.label, size, digest.hexdigest())


def pin_files(files: Sequence[Place]) -> tuple[PinnedFile, ...]:
    """Files as they are now, in their order; several are read side by side."""
    if len(files) < 2:
        return tuple(map(pin_file, files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(pin_file, files))


def open_pinned(root: str, file: PinnedFile) -> Iterator[bytes]:
    """The content of a pinned file of text in pieces, unpacked if its name ends in ``.gz``.

    Raises SourceFileMissing, SourceFileChanged (other size or checksum, known at the latest after the last piece) or
    SourceCorrupt (broken gzip, no text). What was read before an error must be thrown away.
    """
    where = place(root, file.path)
    digest = hashlib.sha256()
    raw = _hashed(where, file, digest)
    try:
        yield from _text(_unzipped(raw, file.path) if file.path.endswith(".gz") else raw, file.path)
    except SourceCorrupt:
        for _ in raw:  # a changed file is reported as changed, not as corrupt
            pass
        raise


def verify(root: str, file: PinnedFile) -> None:
    """Reads a pinned file once to see that it still has the pinned bytes."""
    for _ in _hashed(place(root, file.path), file, hashlib.sha256()):
        pass


def check_size(root: str, file: PinnedFile) -> None:
    """The cheap part of ``verify``: the file exists and has the pinned size."""
    info = place(root, file.path).info()
    if info.type == pafs.FileType.NotFound:
        raise _missing(file.path)
    if info.size != file.size:
        raise changed(file.path, "has another size")


def open_file(file: Place) -> Iterator[bytes]:
    """The content of a file that is not pinned yet in pieces, unpacked if it is packed."""
    raw = _raw(file)
    return _unzipped(raw, file.label) if file.label.endswith(".gz") else raw


def first_lines(file: Place, limit: int) -> Iterator[bytes]:
    """The first lines of a file that is not pinned yet."""
    for number, line in lines(open_file(file)):
        if number > limit:
            return
        yield line


def lines(pieces: Iterator[bytes], first: int = 1) -> Iterator[tuple[int, bytes]]:
    """Pieces of a file, from line ``first`` on -> its lines, numbered, without the line feed. A byte order mark before line 1 is dropped."""
    number, open_line = first - 1, [b""]
    for piece in pieces:
        if b"\n" not in piece:
            open_line.append(piece)
            continue
        found = (b"".join(open_line) + piece).split(b"\n")
        open_line = [found.pop()]
        for line in found:
            number += 1
            yield number, line.removeprefix(BOM) if number == 1 else line
    last = b"".join(open_line)
    if last:
        yield number + 1, last.removeprefix(BOM) if number == 0 else last


def changed(path: str, how: str) -> SourceFileChanged:
    return SourceFileChanged(
        f"source file {path!r} {how} since it was pinned",
        expected="files of a source are written once and never changed",
        next_step="restore the file, or deliver the new content as a new file",
    )


def corrupt(path: str, why: str) -> SourceCorrupt:
    return SourceCorrupt(
        f"source file {path!r} cannot be read: {why}",
        expected="a complete file of the format its name says",
        next_step="deliver the file again under a new name, or remove it",
    )


def _hashed(where: Place, file: PinnedFile, digest: Any) -> Iterator[bytes]:
    size = 0
    for chunk in _raw(where):
        digest.update(chunk)
        size += len(chunk)
        yield chunk
    if size != file.size or digest.hexdigest() != file.sha256:
        raise changed(file.path, "has other bytes")


def _raw(file: Place) -> Iterator[bytes]:
    try:
        with file.fs.open_input_stream(file.native, compression=None) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except FileNotFoundError:
        raise _missing(file.label) from None


def _text(pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
    """The same pieces; SourceCorrupt if they begin as a packed or binary file does, which has line feeds by chance only."""
    first = next(pieces, b"")
    if known := _BINARY.match(first):
        raise corrupt(path, f"it holds {known.lastgroup} data, not lines of text")
    if first:
        yield first
    yield from pieces


def _unzipped(raw: Iterator[bytes], path: str) -> Iterator[bytes]:
    """Gzip of one or more members; anything cut or damaged is SourceCorrupt."""
    engine = zlib.decompressobj(wbits=31)
    try:
        for chunk in raw:
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
        raise corrupt(path, "the gzip data is damaged") from None
    if not engine.eof:
        raise corrupt(path, "the gzip data is cut")


def _remote(uri: str) -> Place:
    uri = uri.rstrip("/")
    try:
        fs, native = pafs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", uri))
    except (pa.ArrowException, OSError) as error:
        raise SourceFileMissing(f"source path {uri!r} cannot be opened: {type(error).__name__}") from None
    return Place(fs, native, uri)


def _missing(path: str) -> SourceFileMissing:
    return SourceFileMissing(
        f"source file {path!r} was pinned by the cut and is gone", next_step="restore the file, or abandon the run and start another"
    )


def _outside(path: str) -> SourceOutsideRoot:
    return SourceOutsideRoot(
        f"source path {path!r} leaves the root", expected="a path inside the root, or a URI with a scheme such as s3a://"
    )
