"""How a feed writes its texts of decimals, as a number or as base64: what a decoder remembers of that from line to line (``values._decimal_text``)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from rejoin.sources.decode.values import AMBIGUOUS
from rejoin.sources.events import BATCH_ROWS

Seen = dict[str, set[str]]
"""Decimal column -> how its texts have been written so far."""


class Decimals:
    """What one file has shown so far.

    Args:
        seen: the sets that the converters of the columns write to.
    """

    def __init__(self, seen: Mapping[str, set[str]]) -> None:
        self._seen = seen
        self.texts: Collection[str] = ()
        """Columns whose values are texts in proven lines."""

    def known(self) -> Seen:
        """What is known now."""
        return {name: set(seen) for name, seen in self._seen.items()}

    def forget(self, kept: Seen) -> None:
        """Remembers only what was known then."""
        for name, seen in self._seen.items():
            seen.intersection_update(kept[name])

    def apart(self, fast: pa.Table, slow: Sequence[object], read: Callable[[], Iterator[pa.RecordBatch]]) -> list[pa.RecordBatch] | None:
        """The events that ``read`` makes of the lines ``slow``, which are not proven; None if these and the proven ones say of each other how decimals
        are written, so that their order counts. Has no effect then.

        Args:
            fast: the events of the proven lines of the same chunk.
            slow: the other lines.
            read: the careful decoder of these.
        """
        if not slow:
            self._saw(fast)
            return []
        kept = self.known()
        # These are in the first batch for certain, and what is ambiguous in a batch is tried again at its end.
        self._saw(fast.slice(0, max(BATCH_ROWS - len(slow), 0)))
        first, others = self.known(), list(read())
        ambiguous = any(AMBIGUOUS in batch["_code"].unique().to_pylist() for batch in others)
        for name, seen in self._seen.items():
            settled = seen == first[name] and (seen == {"number"} or not (seen or ambiguous))
            if "number" not in kept[name] and not settled:
                self.forget(kept)
                return None
        self._saw(fast)
        return others

    def _saw(self, fast: pa.Table) -> None:
        for name, seen in self._seen.items():
            if name in self.texts and fast[name].null_count < fast.num_rows:
                seen.add("number")
