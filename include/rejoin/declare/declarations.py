"""What a topology file has recorded: as written, unchecked, hence ``object`` where a user can pass anything; with the line of the user's file."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_EXAMPLES = f"{_PACKAGE}deployed{os.sep}"
"""In an installed package the example topologies stand below it: they call it as anybody's do."""


@dataclass(frozen=True)
class Place:
    """A line of the user's own file."""

    file: str
    line: int


def _ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_EXAMPLES)


def here() -> Place:
    """The innermost line of the call stack outside this package."""
    frame = sys._getframe(1)  # noqa: SLF001 -- the only way to a caller's line that does not read its source
    while frame.f_back is not None and _ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True, eq=False)
class SourceDeclaration:
    """A source as written: ``kind``, the name of the function that was called, and its keyword arguments, unchecked.

    ``landed_by``: the function that called it, where that is about what a tool lands in files and tables alone.
    """

    kind: str
    options: tuple[tuple[str, object], ...]
    place: Place
    landed_by: str = ""


@dataclass(frozen=True, eq=False)
class TableDeclaration:
    name: str
    key: object
    schema: object
    source: object
    place: Place
    optional: object = ()
    stream: "StreamDeclaration | None" = None


@dataclass(frozen=True, eq=False)
class StreamDeclaration:
    """What a stream says beyond a table: the columns by which it is joined, the time of its records, how late others wait for them, and how late they may come."""

    on: object
    event_time: object
    lateness: object
    retention: object


class Declared(Protocol):
    """A relation of the file: what a declaration rests on."""

    @property
    def declaration(self) -> "Declaration":
        """What it was declared by."""


@dataclass(frozen=True, eq=False)
class JoinDeclaration:
    """``kind``: inner, left, right or full. ``select=None`` means both sides, without the right side's key. ``how``: the options of ``How`` that were given."""

    left: "Declared"
    right: object
    foreign_key: object
    select: object
    kind: str
    how: Mapping[str, object]
    place: Place


@dataclass(frozen=True, eq=False)
class FilterDeclaration:
    input: "Declared"
    condition: object
    place: Place


@dataclass(frozen=True, eq=False)
class SelectDeclaration:
    input: "Declared"
    items: object
    place: Place


@dataclass(frozen=True, eq=False)
class AggregateDeclaration:
    """Groups of the rows of ``input``: what rows of one group have in common, and the columns of a group, by name."""

    input: "Declared"
    keys: tuple[object, ...]
    columns: Mapping[str, object]
    place: Place


@dataclass(frozen=True, eq=False)
class NameDeclaration:
    input: "Declared"
    name: str
    refresh: object
    max_change_share: object
    max_members: object
    place: Place


@dataclass(frozen=True, eq=False)
class ReferenceDeclaration:
    """A table or output by its name, which may be declared later."""

    name: str
    place: Place


@dataclass(frozen=True, eq=False)
class SinkDeclaration:
    """A sink as written: ``options`` are the arguments of ``kafka(...)``, ``opensearch(...)`` or ``postgres(...)``, unchecked."""

    kind: str
    options: tuple[tuple[str, object], ...]
    place: Place


@dataclass(frozen=True, eq=False)
class ToDeclaration:
    input: "Declared"
    sinks: tuple[object, ...]
    place: Place


@dataclass(frozen=True, eq=False)
class ExpectDeclaration:
    """``expectations``: ``Expected`` or objects of Great Expectations."""

    input: "Declared"
    expectations: tuple[object, ...]
    severity: object
    rows: object
    max_share: object
    place: Place


Declaration = (
    TableDeclaration
    | JoinDeclaration
    | FilterDeclaration
    | SelectDeclaration
    | AggregateDeclaration
    | NameDeclaration
    | ReferenceDeclaration
    | ToDeclaration
    | ExpectDeclaration
)
