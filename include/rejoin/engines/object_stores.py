"""Files that are not on this machine, for DuckDB: read by ranges of bytes through the table's own way to files, PyIceberg's ``FileIO``.

DuckDB sees names without a secret in them: what a FileIO is called, and the path. Iceberg's files never change, so what is opened stays open, and
what DuckDB has read of a file (its footer) holds for the life of the process.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import uuid4

from fsspec import AbstractFileSystem
from pyiceberg.io import FileIO

SCHEME = "store"
NEVER_CHANGES = datetime(2000, 1, 1, tzinfo=UTC)
"""When a file of Iceberg's was changed last."""
MOST_OPEN = 500
"""Files that are kept open; each is a name and a size, no connection, and the end of the file."""
LONGEST_END = 1 << 20
"""The end of a file, with its footer, is kept if it is no longer than so many bytes: two databases of this process read it."""

_IOS: dict[str, FileIO] = {}
_CALLED: dict[Hashable, str] = {}
_ADDING = threading.Lock()


class Source(Protocol):
    """An open file."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def read(self, size: int = -1, /) -> bytes: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...


def name(io: FileIO, path: str) -> str:
    """The name by which DuckDB opens a file of a table. The same file has the same name as long as its table is opened in the same way."""
    settings = type(io), frozenset(io.properties.items())
    with _ADDING:
        if settings not in _CALLED:
            _CALLED[settings] = uuid4().hex
            _IOS[_CALLED[settings]] = io
        return f"{SCHEME}://{_CALLED[settings]}/{quote(path, safe='/')}"


def known() -> dict[str, FileIO]:
    """What the names of this process lead to: whoever gets such names needs it (``adopt``)."""
    with _ADDING:
        return dict(_IOS)


def adopt(others: Mapping[str, FileIO]) -> None:
    """From now on names that another process has given lead here to the same files."""
    with _ADDING:
        _IOS.update(others)


class Stores(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """All files that have a ``name``, for reading."""

    protocol, cachable = SCHEME, False

    def open(self, path: str, mode: str = "rb", **_: Any) -> "Handle":
        """A file.

        Raises:
            PermissionError: to write it.
        """
        if mode != "rb":
            raise PermissionError(mode)
        return Handle(_opened(path), lambda: _there(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """A file's size."""
        return {"name": path, "size": _opened(path).size, "type": "file"}

    def modified(self, path: str) -> datetime:  # noqa: ARG002
        """Iceberg's files are never written twice."""
        return NEVER_CHANGES

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file of that name: a pattern's letters are escaped in names."""
        return [path]


class Opened:
    """An open file that any thread reads at any place."""

    def __init__(self, source: Source) -> None:
        self._source, self._lock = source, threading.Lock()
        self._read_at = getattr(source, "read_at", None)  # PyArrow's: a request of its own, several at once
        self.size, self._end = source.seek(0, 2), b""

    def at(self, offset: int, size: int) -> bytes:
        """Up to so many bytes from a place on."""
        size, end = max(0, min(size, self.size - offset)), self._end
        if offset >= (start := self.size - len(end)):
            return end[offset - start : offset - start + size]
        found = self._asked(offset, size)
        if offset + size >= start and self.size - offset <= LONGEST_END:  # a long footer is read in two parts
            self._end = found + end[offset + size - start :]
        return found

    def close(self) -> None:
        """Ends it, for all who read it."""
        self._source.close()

    def _asked(self, offset: int, size: int) -> bytes:
        if self._read_at is not None:
            found: bytes = self._read_at(size, offset)
            return found
        with self._lock:
            self._source.seek(offset)
            return self._source.read(size)


class Handle:
    """A file as DuckDB reads it. Its position is each thread's own: DuckDB's threads share it, and read at one place what they have sought at another.

    ``unread`` is called when the file could not be read, and may raise what says why.
    """

    def __init__(self, opened: Opened, unread: Callable[[], None] = lambda: None) -> None:
        self.opened, self._unread, self._at = opened, unread, dict[int, int]()

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self.tell(), self.opened.size)[whence]
        self._at[threading.get_ident()] = base + offset
        return base + offset

    def tell(self) -> int:
        return self._at.get(threading.get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        try:
            found = self.opened.at(self.tell(), size if size >= 0 else self.opened.size)
        except OSError:
            self._unread()
            raise
        self.seek(len(found), 1)
        return found

    def close(self) -> None:
        """The file itself stays open for the next reader."""


@lru_cache(MOST_OPEN)
def _opened(path: str) -> Opened:
    called, _, rest = path.removeprefix(f"{SCHEME}://").partition("/")
    return Opened(_IOS[called].new_input(unquote(rest)).open())


def _there(path: str) -> None:
    """Asks the store for a file that could not be read, whose answer to a read may have no words for it; forgets what is open, for it may be gone.

    Raises:
        FileNotFoundError: the store has no such file.
    """
    _opened.cache_clear()
    _opened(path)
