"""Pieces of a file -> chunks of whole lines that can be looked at as one column of texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from rejoin.sources.events import BATCH_ROWS
from rejoin.sources.stored_files import BOM, lines

LINES = 4 * BATCH_ROWS
"""Lines in a chunk: whole batches of the careful way, so that its batches are the same whether or not it reads single chunks."""
FEWEST = 2_000
"""A file of fewer lines is read the careful way before a statement is made for it."""
LARGEST = 256 << 20
"""Bytes of a chunk; what has longer lines is read the careful way."""
_PIECE = 1 << 18
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Chunk:
    """Whole lines.

    Attributes:
        first: the number of the first one.
        data: the bytes, a line feed behind each line.
        ends: where these stand.
    """

    first: int
    data: memoryview
    ends: Numbers

    def texts(self) -> pa.StringArray | None:
        """The lines, each with its line feed; None if some are no UTF-8."""
        offsets = np.zeros(len(self.ends) + 1, np.int32)
        offsets[1:] = self.ends + 1
        found = pa.StringArray.from_buffers(len(self.ends), pa.py_buffer(offsets.tobytes()), pa.py_buffer(self.data))
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            return None
        return found

    @property
    def has_controls(self) -> bool:
        """Whether there is a control character but the line feeds."""
        octets = np.frombuffer(self.data, np.uint8)
        # In pieces, whose comparisons take memory that is at hand: a new one of the size of the chunk takes longer than comparing.
        return sum(int(np.count_nonzero(octets[i : i + _PIECE] < ord(" "))) for i in range(0, len(octets), _PIECE)) != len(self.ends)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines with their numbers."""
        start = 0
        for number, end in enumerate(self.ends.tolist(), self.first):
            yield number, bytes(self.data[start:end])
            start = end + 1

    def line(self, number: int) -> bytes:
        """One line."""
        at = number - self.first
        return bytes(self.data[int(self.ends[at - 1]) + 1 if at else 0 : int(self.ends[at])])


@dataclass(frozen=True)
class RemainingLines:
    """All that is left of a file, line by line."""

    lines: Iterator[tuple[int, bytes]]


def chunks(pieces: Iterator[bytes]) -> Iterator[Chunk | RemainingLines]:
    """Chunks of ``LINES`` lines, the last one shorter; or a ``RemainingLines`` where the file is too small, or its lines too long."""
    number, parts, found, count, size = 1, list[bytes](), list[Numbers](), 0, 0
    for piece in pieces:
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n"))
        parts.append(piece)
        found.append(ends + size)
        count, size = count + len(ends), size + len(piece)
        if count < LINES and size >= LARGEST:
            yield _rest(number, chain(parts, pieces))
            return
        if count >= LINES:
            data, ends = _together(parts), np.concatenate(found)
            start = _after_mark(number, data)
            for at in range(0, len(ends) - LINES + 1, LINES):
                stop = int(ends[at + LINES - 1]) + 1
                yield Chunk(number, data[start:stop], ends[at : at + LINES] - start)
                number, start = number + LINES, stop
            parts, found = [bytes(data[start:])], [ends[len(ends) - len(ends) % LINES :] - start]
            count, size = len(found[0]), len(parts[0])
    if count < FEWEST:
        yield _rest(number, iter(parts))
    else:
        if not next(filter(None, reversed(parts)), b"").endswith(b"\n"):
            parts, found = [*parts, b"\n"], [*found, np.array([size])]
        data = _together(parts)
        start = _after_mark(number, data)
        yield Chunk(number, data[start:], np.concatenate(found) - start)


def _together(parts: list[bytes]) -> memoryview:
    """The bytes one after the other. NumPy asks for large pages of memory: with usual ones the machine takes six times as long to give them as to copy."""
    return np.concatenate([np.frombuffer(part, np.uint8) for part in parts]).data


def _after_mark(number: int, data: memoryview) -> int:
    """Where line ``number`` begins, the first of ``data``: a byte order mark before line 1 is dropped."""
    return len(BOM) if number == 1 and data[: len(BOM)] == BOM else 0


def _rest(number: int, pieces: Iterator[bytes]) -> RemainingLines:
    return RemainingLines(lines(pieces, number))
