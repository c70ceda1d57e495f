"""Connections that a process keeps of databases, as long as they are the same databases: a file of SQLite's may be deleted and made again."""

from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from sqlalchemy.engine import make_url

from rejoin.lake.ledger.sqlite import is_sqlite

T = TypeVar("T")
_File = tuple[int, int]


class Connections(Generic[T]):
    """One connection, or pool of them, a database and process.

    ``close`` closes what is kept; whoever has it may go on with it.
    """

    def __init__(self, close: Callable[[T], None]) -> None:
        self._close, self._lock = close, Lock()
        self._kept: dict[Hashable, tuple[_File | None, T]] = {}

    def of(self, key: Hashable, url: str, make: Callable[[], T]) -> T:
        """What is kept under ``key`` of the database at ``url`` (empty: of a service); made if there is none, or its file is gone or another one.

        A file that is deleted keeps its number as long as a connection has it open, so that no other file has the same.
        """
        with self._lock:
            file, made = self._kept.get(key, (None, None))
            if made is not None and file == _file(url):
                return made
            if made is not None:
                self._close(made)
            made = make()
            self._kept[key] = _file(url), made
            return made

    def forget(self, key: Hashable) -> None:
        """Closes what is kept, and keeps it no more."""
        with self._lock:
            _, made = self._kept.pop(key, (None, None))
            if made is not None:
                self._close(made)


def _file(url: str) -> _File | None:
    """Which file a database of SQLite is; None for others, and as long as there is none."""
    place = make_url(url) if url else None
    if place is None or not is_sqlite(place) or not place.database:
        return None
    try:
        found = Path(place.database).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
