"""Formats of files that installed packages bring (docs/extending.md)."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from rejoin.errors import BadRecord, RejoinError
from rejoin.plan.extensions.formats import row_format
from rejoin.plan.model.sources import InstalledFormat
from rejoin.sources.stored_files import corrupt

Row = tuple[int, bytes, Mapping[str, str | None] | BadRecord]
"""The line on which a record begins, or its number; the record as it is written; its fields as texts, or why it has none."""


class RowFormat(Protocol):
    """How files are written. Made of the options that a topology states; refuses them by ``TypeError`` or ``ValueError``."""

    def rows(self, pieces: Iterator[bytes]) -> Iterator[Row]:
        """The records of a file, in their order. Also reads one record again by itself, as it is written.

        Args:
            pieces: the bytes of the file, unpacked.
        """


def rows(written: InstalledFormat, pieces: Iterator[bytes], file: str) -> Iterator[Row]:
    """The same by the package's class.

    Raises:
        SetupError: the package is not installed here.
        SourceCorrupt: it cannot read the file.
    """
    made = row_format(written)
    try:
        yield from made.rows(pieces)
    except RejoinError:
        raise
    except Exception as error:
        raise corrupt(file, f"the format {written.kind!r} cannot read it ({type(error).__name__})") from error
