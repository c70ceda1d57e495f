"""Rows that this process has just written, for the step that comes next: else it would read what the step before had in its hands.

Checks do not ask here: they read the files.
"""

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

from rejoin.limits import limits


class RecentWrites:
    """The rows that snapshots have added, by the snapshots' ids. Where they are too many, those that were written first go first."""

    def __init__(self) -> None:
        self._added: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = Lock()  # steps run side by side

    def keep(self, snapshot_id: int, rows: pa.Table) -> None:
        """Keeps all rows that a snapshot has added."""
        with self._lock:
            self._added[snapshot_id] = rows
            while sum(some.nbytes for some in self._added.values()) > limits().recent_bytes:
                self._added.popitem(last=False)

    def added(self, snapshot_id: int) -> pa.Table | None:
        """The rows that a snapshot has added; None if they are not here."""
        with self._lock:
            return self._added.get(snapshot_id)

    def clear(self) -> None:
        """Forgets all of them."""
        with self._lock:
            self._added.clear()
