"""How many rows the tables of a cut have."""

from collections.abc import Mapping

from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, files_of


class Sizes:
    """How many rows tables have, from metadata alone.

    Args:
        refs: the tables.
        states: table -> snapshot id. A table that is not there was never written.
    """

    def __init__(self, refs: Refs, states: Mapping[str, int]) -> None:
        self._refs, self._states = refs, states
        self._known: dict[str, SnapshotFiles] = {}

    def rows(self, name: str) -> int:
        """At most so many, old versions and hidden rows included."""
        return self._files(name).rows

    def live(self, name: str) -> int:
        """The rows of an output."""
        return self._files(name).live

    def _files(self, name: str) -> SnapshotFiles:
        if name not in self._states:
            return SnapshotFiles((), ())
        if name not in self._known:
            self._known[name] = files_of(self._refs.require(name, self._states[name]), self._states[name])
        return self._known[name]
