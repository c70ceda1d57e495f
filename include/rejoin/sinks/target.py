"""What delivering needs from a sink of any kind."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from rejoin.sinks.position import Position

Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Gives the changes to write, as often as it is called (a transaction that is tried again reads them again)."""


class Target(Protocol):
    """A sink that is connected."""

    at_once: int | None
    """Changes in one ``write`` at most; None: all of a run, or of a snapshot, in one."""

    identity: str
    """What tells the target from an earlier one of its name; known after ``take_over``."""

    def take_over(self, known: Position | None) -> Position | None:
        """Ends whatever an older attempt has under way, and tells how far the sink is; None if nothing says so. The position may be
        that of an earlier target of this name.

        Args:
            known: the ledger's copy; a sink that keeps no cursor of its own gives it back.
        """

    def write(self, rows: Rows, position: Position, *, whole: bool, cleared: Sequence[str] = ()) -> int:
        """Writes changes and the position after them, both or neither. Returns their number.

        Args:
            rows: the changes.
            position: after them.
            whole: the rows are all that the target shall hold.
            cleared: columns in which the target shall hold nothing but these rows' values, whatever it holds there.
        """

    def summary(self) -> dict[str, Any]:
        """What the delivery was like, in numbers, for people."""

    def close(self) -> None:
        """Ends the connection; what is not committed is dropped."""
