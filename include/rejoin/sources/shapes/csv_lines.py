"""Plain lines of a CSV file -> events by columns, every other record by the careful decoder: the same events either way.

Plain is a line without quotes, escapes and control characters that has as many fields as the header. Only those make a record go over lines. So the
careful reader is set on the first line that is not proven, and takes as many lines as its record has; on the next line a record begins again.
What a quote that is not closed swallows is swallowed here, too.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from rejoin.plan.model.sources import CsvFormat
from rejoin.plan.sql.portable import duckdb_type, quoted
from rejoin.sources.decode.proven_lines import Ahead, Numbered, ahead, computed, together
from rejoin.sources.decode.proven_rows import AT, arranged
from rejoin.sources.decode.record_runs import Format, batches
from rejoin.sources.decode.sql_values import of_text
from rejoin.sources.events import Layout
from rejoin.sources.formats.csv_text import CsvReader, Record, named, plain_header
from rejoin.sources.formats.line_chunks import Chunk, Numbers, RemainingLines, chunks
from rejoin.sources.formats.line_tally import Tally
from rejoin.sources.stored_files import corrupt
from rejoin.statements.dialect import DUCKDB

_LF, _CR = b"\n\r"


@dataclass(frozen=True)
class CsvFile:
    """A file and how its records become events.

    Attributes:
        file, index: path as pinned, and place in the pin.
        layout: the table's columns.
        written: how it is written.
        position: of every row; None: events are records as they were read, with their texts, and the columns are fields.
        how: the careful decoder.
    """

    file: str
    index: int
    layout: Layout
    written: CsvFormat
    position: str | None
    how: Format[Record]

    def careful(self, records: Iterator[Record]) -> Iterator[pa.RecordBatch]:
        return batches(self.layout, self.file, self.index, records, self.how)


@dataclass(frozen=True)
class _Found:
    """What was made of the plain lines of a chunk.

    Attributes:
        at: which lines these are, from 0 in the chunk.
        rows: their columns of events and ``_proven``.
    """

    at: Numbers
    rows: pa.Table


def by_columns(of: CsvFile, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The pieces of a file -> record batches of events, in the order of their lines. Raises what ``CsvReader`` and ``Tally`` raise."""
    tally = Tally(of.file)
    lines = _Lines(ahead(tally.parts(chunks(pieces)), partial(_judging, of)))
    reader = CsvReader(lines, of.written, of.file)
    if of.position is None and reader.header is not None and len(set(reader.header)) < len(reader.header):
        raise corrupt(of.file, "its header names a field twice")  # of snapshots and records the cut has seen that
    tally.no_records(reader.before)
    yield from tally.checked(_events(of, lines, reader, tally))


class _Lines(Iterator[Numbered]):
    """The lines of a file one by one, from where it is set.

    Attributes:
        part: the part of the file that the next line is in; None behind the last one.
        at: which line of a chunk is the next one, from 0.
    """

    part: Chunk | RemainingLines | None
    judged: Callable[[], _Found | None]
    at: int

    def __init__(self, parts: Iterator[Ahead[_Found]]) -> None:
        self._parts = parts
        self.skip()

    def skip(self) -> None:
        """Goes on to the next part."""
        self.part, self.judged = next(self._parts, (None, lambda: None))
        self.at = 0

    def within(self, part: Chunk | RemainingLines) -> bool:
        """Whether the next line may be one of ``part``."""
        return self.part is part and (isinstance(part, RemainingLines) or self.at < len(part.ends))

    def __next__(self) -> Numbered:
        while (part := self.part) is not None:
            if isinstance(part, Chunk) and self.at < len(part.ends):
                number = part.first + self.at
                self.at += 1
                return number, part.line(number)
            if isinstance(part, RemainingLines) and (line := next(part.lines, None)):
                return line
            self.skip()
        raise StopIteration


# --- records ----------------------------------------------------------------------------------------------------------------


def _events(of: CsvFile, lines: _Lines, reader: CsvReader, tally: Tally) -> Iterator[pa.RecordBatch]:
    while (part := lines.part) is not None:
        found = lines.judged()
        if isinstance(part, RemainingLines) or found is None:
            yield from of.careful(_records(part, lines, reader, tally))
        else:
            yield from _both_ways(of, part, found, lines, reader, tally)
        if lines.part is part:
            lines.skip()


def _records(part: Chunk | RemainingLines, lines: _Lines, reader: CsvReader, tally: Tally) -> Iterator[Record]:
    """The records that begin in a part, from the next line on."""
    while lines.within(part) and (record := next(reader, None)) is not None:
        if record[2] is not None or tally.no_records(1):
            yield record


def _both_ways(of: CsvFile, chunk: Chunk, found: _Found, lines: _Lines, reader: CsvReader, tally: Tally) -> Iterator[pa.RecordBatch]:
    free = np.zeros(len(chunk.ends), np.bool_)
    free[found.at[found.rows["_proven"].to_numpy()]] = True
    free[: lines.at] = False
    slow: list[Record] = []
    for at in np.flatnonzero(~free).tolist():
        if at < lines.at:
            continue  # part of the record before
        if not lines.within(chunk):
            break
        lines.at = at
        record = next(reader)
        free[at : lines.at if lines.part is chunk else None] = False
        if record[2] is not None or tally.no_records(1):
            slow.append(record)
    kept = free[found.at]
    fast = found.rows if kept.all() else found.rows.filter(pa.array(kept))
    rows = fast.drop_columns(["_proven"])
    proven = [arranged(of.layout, rows, np.flatnonzero(free) + chunk.first, of.file, of.index)] if fast.num_rows else []
    yield from together([*proven, *of.careful(iter(slow))])


# --- columns ----------------------------------------------------------------------------------------------------------------


def _judging(of: CsvFile, first: Chunk) -> Callable[[Chunk], _Found | None] | None:
    """What judges the chunks of a file; None if none of its lines can be told."""
    header = named(plain_header(first.line(first.first), of.written) or None, of.written, of.file)
    if not header:
        return None
    places = dict(zip(header, range(len(header)), strict=True))  # of a name that stands there twice the last one counts
    wanted = {c.name: places[c.name] for c in (*of.layout.key, *of.layout.values) if c.name in places}
    query = _query(of, wanted)
    return None if query is None else lambda chunk: _judged(of, chunk, len(header), wanted.values(), query)


def _judged(of: CsvFile, chunk: Chunk, fields: int, wanted: Collection[int], query: str) -> _Found | None:
    """None if no line is plain, or some are no UTF-8."""
    at, starts, ends = _plain(chunk, fields, of.written)
    if not len(at):
        return None
    # Each field is followed by what stands between it and the next one, so that all of them are one array of texts.
    texts = _texts(chunk, starts, ends)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return None
    columns = {_name(i): texts.take(pa.array(np.arange(2 * i, len(texts), 2 * fields))) for i in wanted}
    if of.position is None:
        whole = _texts(chunk, starts[:, :1], ends[:, -1:])
        columns["_raw"] = whole.take(pa.array(np.arange(0, len(whole), 2)))
    return _Found(at, computed(pa.record_batch(columns), query))


def _texts(chunk: Chunk, starts: Numbers, ends: Numbers) -> pa.StringArray:
    """What stands between starts and ends, and what stands between those."""
    offsets = np.stack([starts, ends], axis=-1).astype(np.int32).reshape(-1)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.tobytes()), pa.py_buffer(chunk.data))


def _plain(chunk: Chunk, fields: int, how: CsvFormat) -> tuple[Numbers, Numbers, Numbers]:
    """Which lines of a chunk are plain ones, from 0; and where their fields start and end, a row a line."""
    data = np.frombuffer(chunk.data, np.uint8)
    delimiter, marked = ord(how.delimiter), data < ord(" ")
    for sign in (how.delimiter, how.quote, how.escape):
        if sign is not None:
            marked |= data == ord(sign)
    marks = np.flatnonzero(marked)
    kinds = data[marks]
    is_end, is_comma = kinds == _LF, kinds == delimiter
    line = np.cumsum(is_end) - is_end
    before_end = np.append(is_end[1:] & (marks[1:] == marks[:-1] + 1), False) & (kinds == _CR)
    count, stops = len(chunk.ends), chunk.ends.copy()
    stops[line[before_end]] -= 1
    starts = np.append(0, chunk.ends[:-1] + 1)
    odd = np.bincount(line[~(is_end | is_comma | before_end)], minlength=count)
    commas = np.bincount(line[is_comma], minlength=count)
    plain = (odd == 0) & (commas == fields - 1) & (stops > starts)
    at = np.flatnonzero(plain)
    inner = marks[is_comma & plain[line]].reshape(len(at), fields - 1)
    return at, np.column_stack([starts[at], inner + 1]), np.column_stack([inner, stops[at]])


def _query(of: CsvFile, places: dict[str, int]) -> str | None:
    """The statement over ``lines`` (the fields of ``places``): the columns of events, and ``_proven``. None if some column is not told."""
    if not places:
        return None
    shown, holds = {"_raw": "_raw"} if of.position is None else {"_position": f"'{of.position}'"}, ["true"]
    if of.position is None:
        absent = ", ".join(quoted(c.name) for c in of.layout.values if c.name not in places)
        shown["_absent"] = f"CAST([{absent}] AS VARCHAR[])"
    for column in (*of.layout.key, *of.layout.values):
        is_key, type_ = column in of.layout.key, str(column.type)
        if column.name not in places:
            if is_key:
                return None
            shown[column.name] = f"CAST(NULL AS {duckdb_type(type_)})"
            continue
        written = _name(places[column.name])
        found = of_text(written, type_)
        if found is None:
            return None
        shown[column.name] = found.value
        holds.append(f"{written} IS NOT NULL AND {found.holds}" if is_key else f"({written} IS NULL OR {found.holds})")
    listed = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in shown.items())
    # A text with control characters stands in no plain line.
    written = "trim({0}, ' ')" if of.written.trim else "{0}"
    is_null = (
        f"nullif({written}, {quoted(of.written.null)}) AS {{0}}" if min(of.written.null, default=" ") >= " " else f"{written} AS {{0}}"
    )
    fields = ", ".join([*(is_null.replace("{0}", _name(i)) for i in places.values()), *(["_raw"] if of.position is None else [])])
    proven = f"coalesce({' AND '.join(f'({h})' for h in holds)}, false) AS _proven"
    return f"SELECT {AT}, {proven}, {listed} FROM (SELECT {AT}, {fields} FROM lines)"


def _name(field: int) -> str:
    return f"f{field}"
