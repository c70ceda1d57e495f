"""Lines of a CSV file -> records: RFC 4180, or as declared (``CsvFormat``), never a guess where a record ends.

Lines are UTF-8 here, whatever the file is (``encoded_text``). An empty field and a quoted empty text look the same to ``csv``; the source's ``null``
text (default: empty) is what becomes null.

A quote that is not closed could swallow any number of rows. What tells it: the file ends inside the quotes (then nothing of the
file can be trusted and all of it is refused), or the quote that closes it was meant to open another field. Then it is followed by
other text than a comma, or the closing quote of that other field stands in a field without quotes, which is no CSV; in a record of
one line such a quote harms nobody and is taken as it is, as most writers and readers do.
"""

import csv
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from rejoin.errors import BadRecord
from rejoin.plan.model.sources import CsvFormat
from rejoin.sources.stored_files import corrupt

BAD_CSV = "BAD_CSV"
Record = tuple[int, bytes, dict[str, Any] | BadRecord | None]
SPACES = " \t"
"""What stands around a field and does not count, where that is declared."""


@cache
def _strict(how: CsvFormat) -> re.Pattern[str]:
    """A record all of whose quotes are where quotes may be."""
    delimiter, quote, escape = (re.escape(sign or "") for sign in (how.delimiter, how.quote, how.escape))
    if how.quote is None:
        return re.compile(".*", re.DOTALL)
    inner = rf"(?:[^{quote}{escape}]|{escape}.)*" if how.escape else f"[^{quote}]*(?:{quote}{quote}[^{quote}]*)*"
    open_ = rf"(?:[^{quote}{delimiter}{escape}\n]|{escape}.)*" if how.escape else rf"[^{quote}{delimiter}\n]*"
    field = f"(?:{' *' if how.trim else ''}{quote}{inner}{quote}|{open_})"
    return re.compile(rf"{field}(?:{delimiter}{field})*\r?\n?", re.DOTALL)


def _reader(lines: Iterator[str], how: CsvFormat) -> Iterator[list[str]]:
    return csv.reader(
        lines,
        delimiter=how.delimiter,
        quotechar=how.quote or '"',
        escapechar=how.escape,
        doublequote=how.escape is None,
        skipinitialspace=how.trim,
        quoting=csv.QUOTE_MINIMAL if how.quote is not None else csv.QUOTE_NONE,
        strict=True,
    )


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
        """The record without the end of its line."""
        return b"\n".join(self.taken).removesuffix(b"\r")


class CsvReader:
    """The records of a file, one at a time.

    ``lines`` is asked for no more lines than the record takes that is being read, so it may be set on another line between two records.

    Attributes:
        header: the fields of the first line; None of an empty file.
        before: how many lines the header takes, 0 or 1.
    """

    def __init__(self, lines: Iterator[tuple[int, bytes]], how: CsvFormat, file: str) -> None:
        """Reads the header.

        Args:
            lines: numbered from 1.
            how: how they are written.
            file: path as pinned, for errors.

        Raises:
            SourceCorrupt: the header is no CSV.
        """
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the default refuses fields over 128 KiB
        self._feed, self._how, self._file = _Feed(lines), how, file
        self._reader = _reader(iter(self._feed), how)
        written = _header(self._reader, self._feed, file) if how.header else None
        self.header = named(written, how, file)
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
        return feed.first, feed.raw, _row(self.header, fields, self._how, feed) if fields else None


def csv_records(
    lines: Iterator[tuple[int, bytes]], how: CsvFormat, file: str, no_records: Callable[[int], object]
) -> Iterator[tuple[int, bytes, dict[str, Any] | BadRecord]]:
    """Numbered lines -> the records as ``CsvReader`` reads them; raises what it raises. ``no_records``: told of how many lines are no records."""
    reader = CsvReader(lines, how, file)
    no_records(reader.before)
    for line, raw, row in reader:
        if row is None:
            no_records(1)
        else:
            yield line, raw, row


def named(written: list[str] | None, how: CsvFormat, file: str) -> list[str] | None:
    """The names of the fields of a file whose first line has these; None of an empty file.

    Raises:
        SourceCorrupt: there are more or fewer names than fields of the header that they replace.
    """
    if not how.header:
        return list(how.names)
    if written is None:
        return None
    if how.names and len(how.names) != len(written):
        raise corrupt(file, f"its header has {len(written)} fields, declared are {len(how.names)} names")
    return list(how.names) or ([name.strip(SPACES) for name in written] if how.trim else written)


def plain_header(line: bytes, how: CsvFormat) -> list[str] | None:
    """The fields of the first line; None if it takes a reader of more lines to say what they are, or that there are none."""
    try:
        return next(_reader(iter([line.decode() + "\n"]), how))
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


def _row(header: list[str], fields: list[str], how: CsvFormat, feed: _Feed) -> dict[str, Any] | BadRecord:
    if not feed.utf8:
        return BadRecord(BAD_CSV, f"the record is not {how.encoding.upper()}")
    if len(fields) != len(header):
        return BadRecord(BAD_CSV, f"the record has {len(fields)} fields, {'declared are' if how.names else 'the header'} {len(header)}")
    # Where quotes are not doubled, csv takes what follows a closing quote for more of the field.
    if (len(feed.taken) > 1 or how.escape) and not _strict(how).fullmatch(feed.raw.decode()):
        over = f"goes over {len(feed.taken)} lines and " if len(feed.taken) > 1 else ""
        return BadRecord(BAD_CSV, f"the record {over}has a quote in a field without quotes")
    if how.trim:
        fields = [field.strip(SPACES) for field in fields]
    return {name: None if field == how.null else field for name, field in zip(header, fields, strict=True)}
