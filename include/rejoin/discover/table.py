"""What ``rejoin discover`` finds: tables, and what joins them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.discover.columns import Column

UNKNOWN = "TODO"
"""Stands in a proposal for what only a reader can say."""


@dataclass(frozen=True)
class FoundTable:
    """What is proposed for a path.

    Attributes:
        name: an identifier.
        columns: with their guessed types.
        key: the key columns; empty where none is told.
        source: the call that reads them, as a topology file has it.
        rows: the sampled rows.
        notes: what a reader should look at.
        uses: names that the call needs from rejoin.
    """

    name: str
    columns: Sequence[Column]
    key: tuple[str, ...]
    source: str
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()
    uses: Sequence[str] = ()

    @property
    def runs(self) -> bool:
        """Whether nothing is left to say before it can be read."""
        names = {column.name for column in self.columns if column.declarable}
        return bool(self.key) and names.issuperset(self.key) and UNKNOWN not in self.source

    def type_of(self, name: str) -> str | None:
        """The guessed type of a column."""
        return next((column.type for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that hold keys of another one, in the order of that key. ``because``: what says so."""

    left: str
    columns: tuple[str, ...]
    right: str
    because: str


@dataclass(frozen=True)
class Found:
    """What a place holds.

    Attributes:
        tables: each with a name of its own.
        others: what no table was made of, each with the reason.
        joins: what joins the tables.
        notes: what holds for all of them.
    """

    tables: Sequence[FoundTable]
    others: Sequence[str] = ()
    joins: Sequence[ForeignKey] = ()
    notes: Sequence[str] = ()
