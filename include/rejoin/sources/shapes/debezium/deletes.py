"""Where the rows of one file were deleted: a tombstone repeats the delete before it, and has no position of its own."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from rejoin.sources.events import EventKind

Key = tuple[Any, ...]
_UPSERT, _DELETE = str(EventKind.UPSERT), str(EventKind.DELETE)


class LastDeletes(dict[Key, str]):
    """Key -> position of its last delete, as long as no other event of the key follows.

    Attributes:
        asked: a delete or a tombstone has been noted since this was set to False, so that the order of events of one key counts.
    """

    asked = False

    def note(self, key: Key, at: str) -> None:
        """A delete that a tombstone may follow."""
        self.asked = True
        self[key] = at

    def of(self, key: Key) -> str | None:
        """What a tombstone repeats; None if nothing is known."""
        self.asked = True
        return self.get(key)

    def in_order(self, events: pa.Table, key: Sequence[str]) -> pa.Table:
        """Upserts and deletes that follow each other, by columns, with the positions of tombstones. ``key``: the columns of the key."""
        if not (self or pc.any(pc.equal(events["_kind"], _DELETE)).as_py()):
            return events
        keys = zip(*(_as_converted(events[name]) for name in key), strict=True)
        found = self.followed(events["_kind"].to_pylist(), keys, events["_position"].to_pylist())
        return events.set_column(events.column_names.index("_position"), "_position", pa.array(found, pa.string()))

    def followed(self, kinds: Iterable[str], keys: Iterable[Key], positions: Sequence[str | None]) -> list[str | None]:
        """Events in their order: deletes are noted, and forgotten where their key comes back.

        Returns:
            The positions, with those of tombstones, which have none.
        """
        found = list(positions)
        for i, (kind, key) in enumerate(zip(kinds, keys, strict=True)):
            if kind == _UPSERT:
                self.pop(key, None)
            elif kind == _DELETE:
                at = positions[i]
                if at is None:
                    found[i] = self.of(key)
                else:
                    self.note(key, at)
        return found


def _as_converted(keys: pa.ChunkedArray) -> list[Any]:
    """A column of keys as converters make them: times are numbers."""
    if pat.is_date32(keys.type):
        keys = keys.cast(pa.int32())
    return list((keys.cast(pa.int64()) if pat.is_timestamp(keys.type) else keys).to_pylist())
