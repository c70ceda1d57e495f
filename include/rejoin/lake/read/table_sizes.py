"""How many rows the tables of a cut have."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs
    from rejoin.lake.iceberg.snapshot_files import SnapshotFiles


class Sizes:
    """How many rows tables have, from metadata alone. PyIceberg is loaded by the first that was written.

    Args:
        refs: gives the tables.
        states: table -> snapshot id. A table that is not there was never written.
    """

    def __init__(self, refs: "Callable[[], Refs]", states: Mapping[str, int]) -> None:
        self._refs, self._states = refs, states
        self._known: dict[str, SnapshotFiles] = {}

    def rows(self, name: str) -> int:
        """At most so many, old versions and hidden rows included."""
        return self._files(name).rows if name in self._states else 0

    def live(self, name: str) -> int:
        """The rows of an output."""
        return self._files(name).live if name in self._states else 0

    def _files(self, name: str) -> "SnapshotFiles":
        from rejoin.lake.iceberg.snapshot_files import files_of

        if name not in self._known:
            self._known[name] = files_of(self._refs().require(name, self._states[name]), self._states[name])
        return self._known[name]
