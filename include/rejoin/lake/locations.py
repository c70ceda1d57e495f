"""Paths on this machine as every engine understands them: as they are written, or refused before anything is made."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOTDIR
from os import strerror
from pathlib import Path

from rejoin.errors import SetupError

FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""Control characters, backslashes (DuckDB knows no pattern for one beside a star), and bytes that are no UTF-8."""


def allowed(what: str, path: str) -> str:
    """The path, if it can be one of ours.

    Raises:
        SetupError: it is empty, or has a letter that not all engines take for a part of a name.
    """
    if not path.strip():
        raise SetupError(f"the path of the {what} is empty", next_step="name a directory")
    if FORBIDDEN.search(path):
        shown = FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", path)
        raise SetupError(
            f"the path of the {what} cannot be used: {shown}",
            expected="no control characters, no backslashes, only UTF-8",
            next_step="choose another directory; nothing was written",
        )
    return path


def made(what: str, path: str) -> Path:
    """The directory, with everything above it; made if it is not there.

    Raises:
        SetupError: it cannot be made, or is something else.
    """
    with _usable(what, path):
        directory = _resolved(what, path)
        directory.mkdir(parents=True, exist_ok=True)
        return directory


def existing(what: str, path: str) -> Path | None:
    """The directory; None if it is not there.

    Raises:
        SetupError: it is something else, or cannot be looked at.
    """
    with _usable(what, path):
        directory = _resolved(what, path)
        if directory.exists() and not directory.is_dir():
            raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR))
        return directory if directory.exists() else None


def _resolved(what: str, path: str) -> Path:
    directory = Path(allowed(what, path)).expanduser().resolve()
    allowed(what, str(directory))
    return directory


@contextmanager
def _usable(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # RuntimeError: ~ of a user who does not exist, or a ring of links
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise SetupError(
            f"the {what} cannot be at {path}: {why}",
            expected="a directory, or a place where one can be made",
            next_step="choose another path",
        ) from None


def whole(what: str, location: str) -> str:
    """The address of a warehouse, if it means the same wherever it is read.

    Raises:
        SetupError: it is relative, or a ``file:`` of another machine.
    """
    allowed(what, location)
    if native(location) is None and not location.startswith("file:"):
        return location
    if not Path(native(location) or "").is_absolute():
        raise SetupError(f"{what} is no whole path: {location}", expected="/a/path, file:///a/path, or a URL of a store such as s3://")
    return location


def native(path: str) -> str | None:
    """The path of a file as this process can open it; None if it is not on a file system of this machine."""
    local = re.sub("^file:(//(?=/)|(?=/[^/]))", "", path)
    return None if "://" in local else local
