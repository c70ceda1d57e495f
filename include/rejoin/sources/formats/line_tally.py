"""Every line of a file is the header, blank, or part of exactly one record: the part of I4 before records are counted."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import InvariantBroken
from rejoin.sources.formats.line_chunks import Chunk, RemainingLines


class Tally:
    """Counts the lines of one file on their way in, and those of the records that come out."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._read = self._placed = 0

    def lines(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The lines as they are."""
        for line in lines:
            self._read += 1
            yield line

    def parts(self, parts: Iterator[Chunk | RemainingLines]) -> Iterator[Chunk | RemainingLines]:
        """The same of lines in chunks."""
        for part in parts:
            if isinstance(part, RemainingLines):
                yield RemainingLines(self.lines(part.lines))
            else:
                self._read += len(part.ends)
                yield part

    def no_records(self, lines: int) -> bool:
        """So many lines belong to no record (a header, blank ones). Always False, to be used in a filter."""
        self._placed += lines
        return False

    def checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches as they are.

        Raises:
            InvariantBroken: after the last one, if their records do not make up the lines that were read.
        """
        for batch in batches:
            self._placed += pc.sum(batch["_lines"]).as_py() or 0
            yield batch
        if self._placed != self._read:
            raise InvariantBroken(
                f"source file {self._file!r}: {self._read} lines read, {self._placed} accounted for; nothing was committed",
                expected="every line is the header, blank, or part of exactly one record (I4)",
                next_step="report it, with the shape of the file",
            )
