"""Which files below the path of a source are its own.

A path without ``*`` is a file or a directory. Of a directory all files count, and those in its sub-directories that are partitions: ``name=value``
(Hive's, and Kafka Connect's ``partition=0``) and parts of dates (``2026-11-21``, ``2026/11/21/10``). A path with ``*`` is a pattern: ``*`` stands for
any part of a name, a whole ``**`` for any directories, ``?`` and ``[...]`` for one character. It may lead to files, and to directories, which are
read as any other. Files that are not finished, and hidden names, are in no layout.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from rejoin.sources.stored_files import Place, child, entries, place

UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")
_DATED = re.compile(r"\d{1,4}(?:[-_]?\d{2}){0,5}(?:T\d{2,6}Z?)?")
CONNECT = re.compile(r"(?P<topic>[^+/]+)\+(?P<partition>\d+)\+(?P<offset>\d+)\.[^+/]+")
"""Names that Kafka Connect gives to files."""


class Listed(NamedTuple):
    """A file as its directory lists it."""

    directory: Place
    name: str
    size: int | None

    @property
    def place(self) -> Place:
        return child(self.directory, self.name)


class Layout(NamedTuple):
    """What stands below a path. ``where``: the path, of a pattern the part before its first ``*``; ``files``: by their labels; ``others``: what is not looked into."""

    where: Place
    files: dict[str, Listed]
    others: list[str]


def natural(name: str) -> tuple[str | int, ...]:
    """The order of names, numbers in them by value: ``9.csv`` is before ``10.csv``. Dates and padded numbers sort as texts do."""
    return tuple(int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name)))


def reading_order(path: str) -> tuple[object, ...]:
    """Sorts files: those that Kafka Connect names (``<topic>+<partition>+<offset>.json``) by these three, wherever they lie, then others by their paths."""
    if found := CONNECT.fullmatch(path.rsplit("/", 1)[-1]):
        return 0, found["topic"], int(found["partition"]), int(found["offset"]), path
    return 1, natural(path), path


def layout(root: str, path: str, readable: Callable[[str], bool]) -> Layout | None:
    """What stands below a path, in one listing a directory; None if the path, or of a pattern the part before its first ``*``, does not exist.

    Args:
        root: the root of sources.
        path: as declared.
        readable: whether a file of this name is read.
    """
    parts = path.split("/")
    fixed = list(takewhile(lambda part: "*" not in part, parts))
    where = place(root, "/".join(fixed) or ("/" if path.startswith("/") else "."))
    if not where.exists():
        return None
    pattern = _Pattern(parts[len(fixed) :]) if len(fixed) < len(parts) else None
    if not where.is_directory():
        return Layout(where, {}, [where.label]) if pattern else Layout(where, {where.label: _single(where)}, [])
    made = Layout(where, {}, [])
    _Walk(root, pattern, readable, made).into(where, "", of_source=pattern is None)
    return made


def _single(file: Place) -> Listed:
    directory, _, name = file.native.rpartition("/")
    return Listed(Place(file.fs, directory, file.label.rpartition("/")[0] or "."), name, file.info().size)


class _Pattern:
    """The part of a path from its first ``*`` on."""

    def __init__(self, parts: list[str]) -> None:
        from fsspec.utils import glob_translate  # hardly any path is a pattern

        self._whole = re.compile(glob_translate("/".join(parts)))
        self._front = [re.compile(glob_translate(part)) for part in takewhile(lambda part: part != "**", parts)]
        self._most = len(parts) if len(self._front) == len(parts) else None

    def matches(self, below: str) -> bool:
        return self._whole.match(below) is not None

    def leads_on(self, below: str) -> bool:
        """Whether something in the directory can match."""
        names = below.split("/")
        deep = self._most is not None and len(names) >= self._most
        return not deep and all(part.match(name) for part, name in zip(self._front, names, strict=False))


class _Walk(NamedTuple):
    root: str
    pattern: _Pattern | None
    readable: Callable[[str], bool]
    made: Layout

    def into(self, directory: Place, below: str, *, of_source: bool) -> None:
        """Looks at a directory. ``of_source``: its files are read whatever they are called."""
        front = child(directory, "").label
        for entry in entries(self.root, directory):
            name, label = entry.name, front + entry.name
            matches = self.pattern is not None and self.pattern.matches(below + name)
            if entry.is_directory:
                of_it = matches or (of_source and is_partition(name))
                if of_it or (self.pattern is not None and self.pattern.leads_on(below + name)):
                    self.into(child(directory, name), f"{below}{name}/", of_source=of_it)
                else:
                    self.made.others.append(label)
            elif name.endswith(UNFINISHED):
                continue
            elif (of_source or matches) and self.readable(name):
                self.made.files[label] = Listed(directory, name, entry.size)
            else:
                self.made.others.append(label)


def is_partition(name: str) -> bool:
    """Whether a directory of this name holds a part of the files of the one above it."""
    return "=" in name[1:] or _DATED.fullmatch(name) is not None
