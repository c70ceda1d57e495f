"""Lines of a CSV file with header -> records: RFC 4180, UTF-8, never a guess where a record ends.

An empty field and a quoted empty text look the same to ``csv``; the source's ``null`` text (default: empty) is what becomes null.

A quote that is not closed could swallow any number of rows. What tells it: the file ends inside the quotes (then nothing of the
file can be trusted and all of it is refused), or the quote that closes it was meant to open another field. Then it is followed by
other text than a comma, or the closing quote of that other field stands in a field without quotes, which is no CSV; in a record of
one line such a quote harms nobody and is taken as it is, as most writers and readers do.
"""

import csv
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rejoin.errors import BadRecord
from rejoin.sources.stored_files import corrupt

BAD_CSV = "BAD_CSV"
Record = tuple[int, bytes, dict[str, Any] | BadRecord | None]
_FIELD = r'(?:"[^"]*(?:""[^"]*)*"|[^",\n]*)'
_STRICT = re.compile(rf"{_FIELD}(?:,{_FIELD})*\n?")


class _Feed:
    """Lines for ``csv.reader`` that remember which lines belong to the record being read."""

    def __init__(self, lines: Iterator[tuple[int, bytes]]) -> None:
        self._lines = lines
        self.taken: list[bytes] = []
        self.first = 0
        self.utf8 = True
        self.ended = False

    def start(self) -> None:
        self.taken, self.first, self.utf8 = [], 0, True

    def __iter__(self) -> Iterator[str]:
        for number, raw in self._lines:
            if not self.taken:
                self.first = number
            self.taken.append(raw)
            try:
                yield raw.decode() + "\n"
            except UnicodeDecodeError:
                self.utf8 = False
                yield raw.decode("utf-8", "replace") + "\n"
        self.ended = True

    @property
    def raw(self) -> bytes:
        return b"\n".join(self.taken)


class CsvReader:
    """The records of a file, one at a time.

    ``lines`` is asked for no more lines than the record takes that is being read, so it may be set on another line between two records.

    Attributes:
        header: the fields of the first line; None of an empty file.
        before: how many lines the header takes, 0 or 1.
    """

    def __init__(self, lines: Iterator[tuple[int, bytes]], null: str, file: str) -> None:
        """Reads the header.

        Args:
            lines: numbered from 1.
            null: the text that means NULL.
            file: path as pinned, for errors.

        Raises:
            SourceCorrupt: the header is no CSV.
        """
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the default refuses fields over 128 KiB
        self._feed, self._null, self._file = _Feed(lines), null, file
        self._reader = csv.reader(iter(self._feed), strict=True)
        self.header = _header(self._reader, self._feed, file)
        self.before = len(self._feed.taken)

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        """The first line, the record as written, and its columns, or what is wrong with it, or None of a blank line, which is no record.

        Raises:
            SourceCorrupt: the file ends inside quotes. What was read before must be thrown away.
        """
        feed = self._feed
        if self.header is None:
            raise StopIteration
        feed.start()
        try:
            fields = next(self._reader)
        except csv.Error as error:
            if feed.ended:
                raise corrupt(self._file, f"it ends inside a quoted field; the record begins on line {feed.first}") from None
            return feed.first, feed.raw, BadRecord(BAD_CSV, f"the record is no CSV: {error}")
        return feed.first, feed.raw, _row(self.header, fields, self._null, feed) if fields else None


def csv_records(
    lines: Iterator[tuple[int, bytes]], null: str, file: str, no_records: Callable[[int], object]
) -> Iterator[tuple[int, bytes, dict[str, Any] | BadRecord]]:
    """Numbered lines -> the records as ``CsvReader`` reads them; raises what it raises. ``no_records``: told of how many lines are no records."""
    reader = CsvReader(lines, null, file)
    no_records(reader.before)
    for line, raw, row in reader:
        if row is None:
            no_records(1)
        else:
            yield line, raw, row


def plain_header(line: bytes) -> list[str] | None:
    """The fields of the first line; None if it takes a reader of more lines to say what they are, or that there are none."""
    try:
        return next(csv.reader([line.decode() + "\n"], strict=True))
    except (csv.Error, UnicodeDecodeError):
        return None


def _header(reader: Iterator[list[str]], feed: _Feed, file: str) -> list[str] | None:
    """The first line; None of an empty file."""
    try:
        header = next(reader, None)
    except csv.Error:
        raise corrupt(file, "its first line is no CSV header") from None
    if len(feed.taken) > 1:  # the cut has read one line
        raise corrupt(file, "its header is not one line")
    return header


def _row(header: list[str], fields: list[str], null: str, feed: _Feed) -> dict[str, Any] | BadRecord:
    if not feed.utf8:
        return BadRecord(BAD_CSV, "the record is not UTF-8")
    if len(fields) != len(header):
        return BadRecord(BAD_CSV, f"the record has {len(fields)} fields, the header {len(header)}")
    if len(feed.taken) > 1 and not _STRICT.fullmatch(feed.raw.decode()):
        return BadRecord(BAD_CSV, f"the record goes over {len(feed.taken)} lines and has a quote in a field without quotes")
    return {name: None if field == null else field for name, field in zip(header, fields, strict=True)}
