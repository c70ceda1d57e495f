"""Where the files of captured tables are: which are whole, and up to where in the log a table has landed.

``<lsn>.jsonl`` has changes: all of every transaction that ends at ``lsn`` or before, and is in no older file. ``<lsn>-snapshot-<n>.parquet`` has rows of a
snapshot that was taken at ``lsn``; ``<lsn>-snapshot-<n>.jsonl`` says what no row can (an older rejoin has written rows there, too). A file appears by its last
name, after its bytes are on the disk. Hidden entries are not read by anybody else: ``.snapshot`` is being written; ``.complete`` is whole, and its files are on
their way to their place; ``.again`` asks for a new snapshot.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rejoin import crash
from rejoin.errors import CaptureBusy, CaptureRefused, SetupError
from rejoin.plan.captured_path import LANDING, CapturedPath

_CHANGES = re.compile(r"(\d{20})\.jsonl")
_SNAPSHOT = re.compile(r"(\d{20})-snapshot-\d+\.(?:parquet|jsonl)")
_BUFFER = 1 << 20


class TableFiles:
    """The directory of a table, made where there is none.

    Args:
        root: where relative paths start.
        path: the table.
    """

    def __init__(self, root: str, path: CapturedPath) -> None:
        self.directory = Path(root) / path.directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self._again, self._complete = self.directory / ".again", self.directory / ".complete"
        self.growing: GrowingFile | None = None
        for left in self.directory.glob(".*.jsonl"):
            left.unlink()

    def landed(self) -> int:
        """Up to where in the log its changes have landed; 0: there are none."""
        return max((int(m[1]) for name in self._names() if (m := _CHANGES.fullmatch(name))), default=0)

    def newest(self) -> int:
        """The newest position that any of its files has."""
        found = (_CHANGES.fullmatch(name) or _SNAPSHOT.fullmatch(name) for name in self._names())
        return max((int(m[1]) for m in found if m), default=0)

    @property
    def has_snapshot(self) -> bool:
        """Whether its rows have landed, and no new snapshot is asked for."""
        return not self._again.exists() and any(_SNAPSHOT.fullmatch(name) for name in self._names())

    @property
    def has_files(self) -> bool:
        """Whether anything has landed."""
        return bool(self.newest())

    def ask_again(self) -> None:
        """From now on a new snapshot is missing, whatever happens to this process."""
        self._again.touch()
        _sync(self.directory)

    def begin_snapshot(self) -> Path:
        """An empty directory for the files of a snapshot."""
        scratch = self.directory / ".snapshot"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return scratch

    def end_snapshot(self) -> None:
        """The snapshot that was begun is whole."""
        scratch = self.directory / ".snapshot"
        for file in scratch.iterdir():
            _sync(file)
        _sync(scratch)
        scratch.rename(self._complete)
        _sync(self.directory)
        crash.point("capture.read")

    def place_snapshot(self) -> None:
        """Moves the files of a whole snapshot to their place, also of one whose process has died on the way."""
        if not self._complete.exists():
            return
        for file in sorted(self._complete.iterdir()):
            file.rename(self.directory / file.name)
            crash.point("capture.placed")
        _sync(self.directory)
        self._again.unlink(missing_ok=True)
        self._complete.rmdir()
        _sync(self.directory)

    def write(self, line: bytes) -> None:
        """Adds a line to the file that is not whole yet."""
        if self.growing is None:
            self.growing = GrowingFile(self.directory / ".growing.jsonl")
        self.growing.write(line)

    def _names(self) -> Iterator[str]:
        return (entry.name for entry in self.directory.iterdir())

    def finish(self, end: int) -> int:
        """Gives the growing file its name, the end of its last whole transaction; what stands behind that is dropped. How many files appeared."""
        growing, self.growing = self.growing, None
        if growing is None or not growing.close():
            return 0
        growing.path.rename(self.directory / f"{end:020d}.jsonl")
        _sync(self.directory)
        return 1


class GrowingFile:
    """A file of changes that has no name yet."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, path.open("wb", buffering=_BUFFER)
        self.size = self._whole = 0

    def write(self, line: bytes) -> None:
        """Adds a line."""
        self._file.write(line)
        self.size += len(line)

    def commit(self) -> None:
        """A transaction ends here."""
        self._whole = self.size

    def close(self) -> int:
        """Puts its whole transactions onto the disk; how many bytes these are. Without any there is no file."""
        with self._file as file:
            file.flush()
            file.truncate(self._whole)
            os.fsync(file.fileno())
        if not self._whole:
            self.path.unlink()
        return self._whole


@contextmanager
def locked(root: str, at: str, topology: str) -> Iterator[str]:
    """Holds the directory of a connection, so that no other process of this machine captures into it; yields its identity, which no other directory has.

    Raises:
        CaptureBusy: another process holds it.
        CaptureRefused: another topology captures into it.
        SetupError: the root is no directory of this machine.
    """
    if "://" in root:
        raise SetupError("captured changes land in a directory, and the root is an address", next_step="pass --root with a directory")
    directory = Path(root) / LANDING / at
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".capture").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CaptureBusy(
                f"another process captures {at!r} into the same directory", next_step="wait until it ends; `--once` ends by itself"
            ) from None
        file.seek(0)
        owner, _, identity = file.read().strip().partition(" ")
        if not identity:
            owner, identity = topology, secrets.token_hex(8)
            file.truncate(0)
            file.write(f"{owner} {identity}\n")
            file.flush()
            os.fsync(file.fileno())
        if owner != topology:
            raise CaptureRefused(
                f"topology {owner!r} captures {at!r} already; {topology!r} would take its changes away",
                expected="one topology a connection",
                next_step="name a connection of its own, with the same URL, in a second [sources.<name>]",
            )
        yield identity
        os.utime(file.fileno())


def captured_at(root: str, at: str) -> float | None:
    """When the last capture of a connection into a directory ended well, in seconds since the epoch; None: none did."""
    file = Path(root) / LANDING / at / ".capture"
    return file.stat().st_mtime if file.exists() else None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
