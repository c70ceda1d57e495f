"""A table as a sample shows it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.discover.columns import Column


@dataclass(frozen=True)
class FoundTable:
    """What is proposed for a path.

    Attributes:
        name: an identifier.
        columns: with their guessed types.
        key: the key columns; empty where none is told.
        source: the call that reads the path, as a topology file has it.
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

    def type_of(self, name: str) -> str | None:
        """The guessed type of a column."""
        return next((column.type for column in self.columns if column.name == name), None)
