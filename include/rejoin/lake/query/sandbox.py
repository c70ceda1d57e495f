"""A database for queries that somebody else wrote: they read the files that they are given, by number, and nothing else of this machine.

Files come to DuckDB through a file system that cannot write, whatever the query says: Iceberg's own, so that those of an object store are read as
those of a disk.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import duckdb
from fsspec import AbstractFileSystem
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile

from rejoin.engines.duckdb_connection import fresh
from rejoin.engines.object_stores import NEVER_CHANGES, Handle, Opened

_SCHEME = "lake"


class Closed(PermissionError):
    """What a query may not open."""


class Files(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The files that a query may read, as ``lake://<number>.parquet``."""

    protocol, cachable = _SCHEME, False

    def __init__(self) -> None:
        super().__init__()
        self._known: list[tuple[FileIO, str, int]] = []

    def added(self, io: FileIO, files: Iterable[DataFile]) -> dict[str, str]:
        """Lets queries read these files. Returns path -> the name that they have for a query."""
        names = {}
        for file in files:
            names[file.file_path] = f"{_SCHEME}://{len(self._known)}.parquet"
            self._known.append((io, file.file_path, file.file_size_in_bytes))
        return names

    def open(self, path: str, mode: str = "rb", **_: Any) -> Handle:
        """A file, for reading only.

        Raises:
            Closed: to write it, or any other.
        """
        if mode != "rb":
            raise Closed(mode)
        io, location = self._file(path)[:2]
        return _Own(Opened(io.new_input(location).open()))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """A file's size."""
        return {"name": path, "size": self._file(path)[2], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Iceberg's files are never written twice."""
        self._file(path)
        return NEVER_CHANGES

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file of that name: there are no patterns."""
        self._file(path)
        return [path]

    def _file(self, path: str) -> tuple[FileIO, str, int]:
        number = path.removeprefix(f"{_SCHEME}://").removesuffix(".parquet")
        if not number.isdecimal() or int(number) >= len(self._known):
            raise Closed(path)
        return self._known[int(number)]


class _Own(Handle):
    """A file that nobody else reads."""

    def close(self) -> None:
        self.opened.close()


def connected(files: Files) -> duckdb.DuckDBPyConnection:
    """A database in memory that opens no files but these, knows no variables of this process, loads no extensions and keeps these settings."""
    made = fresh()
    made.register_filesystem(files)
    for setting, value in {
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allowed_directories": f"['{_SCHEME}://']",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }.items():
        made.execute(f"SET {setting} = {value}")
    return made
