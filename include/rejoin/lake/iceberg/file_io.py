"""PyIceberg's way to files, where it differs from Spark's, or asks an object store more often than need be."""

import os
import threading
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyarrow.fs import FileSystem
from pyiceberg.io import InputStream, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from rejoin.lake.locations import native

KEPT_FILE, KEPT = 256 << 10, 64 << 20
"""Files of up to so many bytes that this process wrote need not be read again, as long as they are together no more than so many."""
MOST_SIZES = 100_000
"""Files whose length is remembered."""

_STORES = ("s3.", "client.", "gcs.", "adls.", "hdfs.")
"""How properties begin that say where a store is, and who asks."""
_S3 = ("s3", "s3a", "s3n")


_Elsewhere = tuple[Callable[[Properties], PyArrowFileIO], tuple[Properties]]
"""How another process makes a FileIO."""


def _reaching(properties: Properties) -> Properties:
    """What it takes to reach a store. The other settings are the catalog's, some of them secret: no other process gets them."""
    return {name: value for name, value in properties.items() if name.startswith(_STORES)}


class LocalFileIO(PyArrowFileIO):
    """PyIceberg's, but a path behind ``file:`` is taken as it is written, as Hadoop does: PyIceberg's own ends at a ``#`` or ``?``."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Scheme, host and path."""
        local = native(location)
        return PyArrowFileIO.parse_location(location, properties) if local is None else ("file", "", os.path.abspath(local))  # noqa: PTH100

    def __reduce__(self) -> "_Elsewhere":
        return LocalFileIO, (_reaching(self.properties),)


class StoreFileIO(PyArrowFileIO):
    """PyIceberg's, for an object store, where every request counts: a small file is written by one, and not read by the process that wrote it.

    Each file has a name of its own and never changes, so nobody has to ask whether there is one, how long it became, or what is in it.
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._settings = tuple(sorted((k, str(v)) for k, v in _reaching(properties).items()))

    def __reduce__(self) -> "_Elsewhere":
        return StoreFileIO, (_reaching(self.properties),)

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        return _filesystem(scheme, netloc, self._settings)

    def new_input(self, location: str) -> PyArrowFile:
        """A file to read."""
        return self._file(location)

    def new_output(self, location: str) -> PyArrowFile:
        """A file to write."""
        return self._file(location)

    def _file(self, location: str) -> PyArrowFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _File(location, path, self.fs_by_scheme(scheme, netloc), _known(self._settings))


@cache
def _filesystem(scheme: str, netloc: str | None, settings: tuple[tuple[str, str], ...]) -> FileSystem:
    """One a process, with its connections; PyIceberg makes one for each table that it opens."""
    made = PyArrowFileIO(dict(settings)).fs_by_scheme(scheme, netloc)
    if scheme not in _S3 or "s3.retry-strategy-impl" in dict(settings):  # which a copy would not have
        return made
    again, (stated,) = made.__reduce__()
    copy: FileSystem = again({**stated, "allow_delayed_open": True})  # a small file takes one request, not three
    return copy


class _Known:
    """What this process wrote: how long each file is, and what is in the small ones."""

    def __init__(self) -> None:
        self._lock, self._size, self._content, self._kept = threading.Lock(), dict[str, int](), dict[str, bytes](), 0

    def remember(self, location: str, size: int, content: bytes | None) -> None:
        with self._lock:
            if len(self._size) >= MOST_SIZES:
                self._size.clear()
            self._size[location] = size
            if content is None:
                return
            if self._kept + size > KEPT:
                self._content.clear()
                self._kept = 0
            self._content[location] = content
            self._kept += size

    def size(self, location: str) -> int | None:
        return self._size.get(location)

    def content(self, location: str) -> bytes | None:
        return self._content.get(location)


@cache
def _known(settings: tuple[tuple[str, str], ...]) -> _Known:  # noqa: ARG001
    """Of the store that these settings lead to."""
    return _Known()


class _File(PyArrowFile):
    def __init__(self, location: str, path: str, filesystem: FileSystem, known: _Known) -> None:
        super().__init__(location, path, filesystem)
        self._known = known

    def __len__(self) -> int:
        size = self._known.size(self.location)
        return super().__len__() if size is None else size

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002 -- PyIceberg asks so
        """The file for reading."""
        content = self._known.content(self.location)
        if content is None:
            return super().open(seekable)
        found: InputStream = pa.BufferReader(content)
        return found

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002, FBT001, FBT002 -- likewise
        """The file for writing; there is none of its name."""
        stream = super().create(overwrite=True)
        return _Writing(stream, lambda size, content: self._known.remember(self.location, size, content))


class _Writing:
    """A file that is being written; the store has it, or has it not, when it is closed."""

    def __init__(self, stream: OutputStream, done: Callable[[int, bytes | None], None]) -> None:
        self._stream, self._done, self.closed = stream, done, False
        self._at, self._small = 0, list[bytes]()

    def write(self, data: Any) -> int:
        written = bytes(data)
        self._stream.write(written)
        self._at += len(written)
        if self._at <= KEPT_FILE:
            self._small.append(written)
        return len(written)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing is to be seen before the end."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        self._done(self._at, b"".join(self._small) if self._at <= KEPT_FILE else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
