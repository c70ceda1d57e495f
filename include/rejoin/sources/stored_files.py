"""Where source files are and how their bytes are read: local paths inside the root, or URIs through ``pyarrow.fs``.

A path without scheme starts at the root and may not leave it, neither by ``..`` nor by a symbolic link. A URI (``s3a://``,
``hdfs://``, ``file://``) is taken as given: who writes one names another store on purpose.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from rejoin.errors import SourceCorrupt, SourceFileChanged, SourceFileMissing, SourceOutsideRoot
from rejoin.plan.model.sources import NamedFields, Source
from rejoin.sources.compression import CHUNK, PACKED, Damaged, unpacked

BOM = b"\xef\xbb\xbf"
_AT_ONCE = 4
# What other kinds of files begin with, packed twice or binary; where that could be text, too, with what follows it there.
_BINARY = re.compile(
    rb"(?P<zstd>\x28\xb5\x2f\xfd)|(?P<gzip>\x1f\x8b)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\x00)|(?P<zip>PK\x03\x04)"
    rb"|(?P<Parquet>PAR1[\x00-\x08\x0e-\x1f])|(?P<Avro>Obj\x01)|(?P<ORC>ORC[\x00-\x08\x0e-\x1f])"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_FORMAT = re.compile(rf"\.(?:(?P<parquet>parquet)|(?:(?P<csv>csv)|(?P<json>jsonl|ndjson|json))(?:{'|'.join(map(re.escape, PACKED))})?)\Z")


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
    """csv, json or parquet by the end of the name, before that of a packed file (``compression.PACKED``); None for any other file."""
    found = _FORMAT.search(path)
    return found and found.lastgroup


def written_as(source: Source, path: str) -> str | None:
    """csv, json, parquet or the name of an installed format: what a source says of all its files, else what the name of the file says; None if neither does."""
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


class Entry(NamedTuple):
    """What stands in a directory. ``size``: of a file, as the listing has it; None of a link that leads nowhere."""

    name: str
    is_directory: bool
    size: int | None


def entries(root: str, directory: Place) -> Iterator[Entry]:
    """What stands in a directory, in one listing and any order, without hidden names (``is_hidden``).

    Raises:
        SourceOutsideRoot: a link leads out of the root.
    """
    if isinstance(directory.fs, pafs.LocalFileSystem):
        yield from _local_entries(root, directory)
        return
    for info in directory.fs.get_file_info(pafs.FileSelector(directory.native)):
        if not is_hidden(info.base_name):
            yield Entry(info.base_name, info.type == pafs.FileType.Directory, info.size)


def _local_entries(root: str, directory: Place) -> Iterator[Entry]:
    with os.scandir(directory.native) as found:
        for entry in found:
            if is_hidden(entry.name):
                continue
            try:
                if entry.is_symlink():
                    place(root, child(directory, entry.name).label)
                yield Entry(entry.name, entry.is_dir(), entry.stat().st_size)
            except FileNotFoundError:  # moved away since it was listed
                if entry.is_symlink():
                    yield Entry(entry.name, is_directory=False, size=None)


def is_hidden(name: str) -> bool:
    """Whether a name is of something that is not meant for readers: ``.`` or ``_`` first, but for a partition (``_day=1``), as Spark has it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def child(directory: Place, name: str) -> Place:
    """What has this name in a directory."""
    front = "" if directory.label == "." else directory.label.rstrip("/") + "/"
    return Place(directory.fs, f"{directory.native.rstrip('/')}/{name}", front + name)


def children(root: str, directory: Place) -> list[Place]:
    """The entries of a directory in name order."""
    return [child(directory, entry.name) for entry in sorted(entries(root, directory))]


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


def open_pinned(root: str, file: PinnedFile, *, binary: bool = False) -> Iterator[bytes]:
    """The content of a pinned file in pieces, unpacked if it is packed (``compression``); of text, if it may not be ``binary``.

    Raises SourceFileMissing, SourceFileChanged (other size or checksum, known at the latest after the last piece) or
    SourceCorrupt (packed data that is cut or damaged, no text). What was read before an error must be thrown away.
    """
    where = place(root, file.path)
    digest = hashlib.sha256()
    raw = _hashed(where, file, digest)
    try:
        yield from (_unpacked if binary else _text)(raw, file.path)
    except SourceCorrupt:
        for _ in raw:  # a changed file is reported as changed, not as corrupt
            pass
        raise


def pinned_bytes(root: str, file: PinnedFile) -> Iterator[bytes]:
    """The bytes of a pinned file as they are stored; raises as ``open_pinned`` does of missing and changed files."""
    return _hashed(place(root, file.path), file, hashlib.sha256())


def verify(root: str, file: PinnedFile) -> None:
    """Reads a pinned file once to see that it still has the pinned bytes."""
    for _ in pinned_bytes(root, file):
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
    return _unpacked(_raw(file), file.label)


def first_lines(file: Place, limit: int) -> Iterator[bytes]:
    """The first lines of a file that is not pinned yet."""
    yield from (line for _, line in islice(lines(open_file(file)), limit))


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


def _text(raw: Iterator[bytes], path: str) -> Iterator[bytes]:
    """The content of a file; SourceCorrupt if it begins as a packed or binary file does, which has line feeds by chance only."""
    pieces = _unpacked(raw, path)
    first = next(pieces, b"")
    if known := _BINARY.match(first):
        raise corrupt(path, f"it holds {known.lastgroup} data, not lines of text")
    if first:
        yield first
    yield from pieces


def _unpacked(raw: Iterator[bytes], path: str) -> Iterator[bytes]:
    try:
        yield from unpacked(raw, path)
    except Damaged as error:
        raise corrupt(path, str(error)) from None


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
