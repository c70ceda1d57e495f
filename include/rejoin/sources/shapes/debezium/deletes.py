"""Where the rows of one file were deleted: a tombstone repeats the delete before it, and has no position of its own."""

from typing import Any

Key = tuple[Any, ...]


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
