"""Lines of one shape -> events by DuckDB, every other line by the careful decoder: the same events either way.

Some lines of a file's first chunk tell the shape (``shape_learning``); ``sql_values`` tells which values are beyond doubt. What a careful decoder remembers from line to line is
the decoder's affair: it says when a chunk has to be read by it as a whole.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Protocol, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.sql.portable import UTC
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.shape_learning import learned
from rejoin.sources.events import EventKind, Layout
from rejoin.sources.formats.line_chunks import Chunk, Numbers, RemainingLines, chunks
from rejoin.sources.formats.plain_columns import from_their_start
from rejoin.statements.dialect import DUCKDB

SAMPLE = 200
"""So many lines a shape is learned of."""
_AHEAD = 2
"""Chunks that are judged before they are asked for."""
AT = "_at"
"""A column: the number of a line in its chunk."""
_PARTS = 4
"""Batches of a chunk, for several threads."""
Numbered = tuple[int, bytes]
T = TypeVar("T")
Ahead = tuple[Chunk | RemainingLines, Callable[[], T | None]]


@dataclass(frozen=True)
class Judge:
    """SQL texts over ``j``, the struct of a line.

    Attributes:
        columns: column of an event -> its value.
        holds: conditions under which these are what the careful decoder makes of the line.
    """

    columns: dict[str, str]
    holds: tuple[str, ...]


class LineDecoder(Protocol):
    """The decoder of one file.

    Attributes:
        layout: the table's columns.
        by_batch: what becomes of a line can depend on the others of its batch (``record_runs``).
        packed: members of a line that may be texts of JSON.
    """

    layout: Layout
    by_batch: bool
    packed: tuple[str, ...]

    def batches(self, file: str, index: int, lines: Iterator[Numbered]) -> Iterator[pa.RecordBatch]:
        """Any lines -> their events."""

    def judge(self, shape: Shape) -> Judge | None:
        """How lines of a shape become events; None if that is not told."""

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[Numbered]) -> list[pa.RecordBatch] | None:
        """The events of those lines of a chunk that are not among ``fast``; None if the chunk has to be read in its order. Has no effect then."""


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """What judges lines; a thread takes a cursor of its own."""
    made = duckdb.connect()
    made.execute(f"{UTC}; SET enable_progress_bar = false; SET enable_external_access = false")
    made.execute("SET lock_configuration = true")  # what it runs is made of names that stand in the data
    return made


def by_shape(file: str, index: int, pieces: Iterator[bytes], careful: LineDecoder) -> Iterator[pa.RecordBatch]:
    """The pieces of a file -> record batches of events, as ``careful`` would give them; those of a chunk in the order of their lines."""
    parts = ahead(chunks(pieces), _judging(careful))
    for part, judged in parts:
        if isinstance(part, RemainingLines):
            yield from careful.batches(file, index, part.lines)
            continue
        found = judged()
        slow = part.lines() if found is None else _unproven(part, found)
        if careful.by_batch and any(raw.isspace() or not raw for _, raw in slow):
            # Blank lines are no records: from here on batches would begin elsewhere than in a file that is read line by line.
            yield from careful.batches(file, index, chain(part.lines(), chain.from_iterable(_lines(rest) for rest, _ in parts)))
        elif found is None:
            yield from careful.batches(file, index, part.lines())
        else:
            yield from _together(part, found, file, index, careful)


def ahead(parts: Iterator[Chunk | RemainingLines], how: Callable[[Chunk], Callable[[Chunk], T | None] | None]) -> Iterator[Ahead[T]]:
    """Every part, and what is made of it; that of the next one is made meanwhile. ``how``: asked of the first chunk; nothing is made of a ``RemainingLines``."""
    make: Callable[[Chunk], T | None] | None = None
    asked = False
    waiting: deque[Ahead[T]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for part in parts:
            if not asked and isinstance(part, Chunk):
                asked, make = True, how(part)
            if make is None or isinstance(part, RemainingLines):
                waiting.append((part, lambda: None))
            else:
                waiting.append((part, pool.submit(make, part).result))
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting


def _judging(careful: LineDecoder) -> Callable[[Chunk], Callable[[Chunk], pa.Table | None] | None]:
    """The first chunk tells the shape of all."""

    def how(first: Chunk) -> Callable[[Chunk], pa.Table | None] | None:
        query = _query(first, careful)
        return None if query is None else lambda chunk: _judged(chunk, query)

    return how


def _lines(part: Chunk | RemainingLines) -> Iterator[Numbered]:
    return part.lines if isinstance(part, RemainingLines) else part.lines()


def _unproven(chunk: Chunk, found: pa.Table) -> Iterator[Numbered]:
    for at in pc.indices_nonzero(pc.invert(found["_proven"])).to_pylist():
        yield chunk.first + at, chunk.line(chunk.first + at)


def _query(chunk: Chunk, careful: LineDecoder) -> str | None:
    """The statement over ``lines`` (``AT``, ``line``): ``AT``, the columns of events, and ``_proven``."""
    shape = learned(_sample(chunk), careful.packed)
    judge = None if shape is None else careful.judge(shape)
    if shape is None or judge is None:
        return None
    holds = ["j IS NOT NULL", *shape.guards("j", "line"), *judge.holds, f"{shape.again('j')} = line"]
    shown = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in judge.columns.items())
    return f"""
    SELECT {AT}, coalesce({" AND ".join(f"({h})" for h in holds)}, false) AS _proven, {shown}
    FROM ({shape.structs(f"(SELECT {AT}, {shape.short('line')} AS line FROM lines)", f"{AT}, line")})"""


def _sample(chunk: Chunk) -> Iterator[bytes]:
    """Lines from all over a chunk: a feed may begin with rows of a snapshot, and go on with updates that say more."""
    count = len(chunk.ends)
    return (chunk.line(chunk.first + at) for at in islice(range(0, count, max(count // SAMPLE, 1)), SAMPLE))


def _judged(chunk: Chunk, query: str) -> pa.Table | None:
    """The columns of events and ``_proven``, a row a line; None if the lines cannot be looked at together."""
    texts = None if chunk.has_controls else chunk.texts()
    if texts is None:
        return None
    try:
        return computed(pa.record_batch([texts], names=["line"]), query)
    except duckdb.ParserException:  # names in the data that no statement can be made of
        return None


def computed(lines: pa.RecordBatch, query: str) -> pa.Table:
    """What a statement over ``lines`` gives, in their order. ``query``: passes the column ``AT`` of each line on.

    DuckDB gives rows in the order in which they came, unless it makes a join of something, as of a list of five texts behind ``IN``.
    """
    numbered = lines.append_column(AT, pa.array(np.arange(lines.num_rows)))
    step = -(-lines.num_rows // _PARTS)
    parts = pa.Table.from_batches([_part(numbered, i, step) for i in range(0, lines.num_rows, step)])
    with _database().cursor() as cursor:
        cursor.register("lines", parts)
        found = cursor.sql(query).to_arrow_table()
    at = found[AT].to_numpy()
    if not np.array_equal(at, np.arange(lines.num_rows)):
        found = found.take(pc.sort_indices(found[AT]))
    return found.drop_columns([AT])


def _part(lines: pa.RecordBatch, first: int, count: int) -> pa.RecordBatch:
    part = lines.slice(first, count)
    return pa.RecordBatch.from_arrays(list(map(from_their_start, part.columns)), names=part.schema.names)


def _together(chunk: Chunk, found: pa.Table, file: str, index: int, careful: LineDecoder) -> Iterator[pa.RecordBatch]:
    proven = found["_proven"].to_numpy()
    numbers = np.flatnonzero(proven) + chunk.first
    fast = found if len(numbers) == len(proven) else found.filter(found["_proven"])
    others = careful.beside(fast, file, index, list(_unproven(chunk, found)))
    if others is None:
        yield from careful.batches(file, index, chunk.lines())
        return
    yield from together(careful.layout, fast, numbers, others, file, index)


def together(
    layout: Layout, fast: pa.Table, lines: Numbers, others: Sequence[pa.RecordBatch], file: str, index: int
) -> Iterator[pa.RecordBatch]:
    """The events of rows that are proven, which stand on ``lines``, and those of other lines, in the order of all lines."""
    both = [*([arranged(layout, fast, lines, file, index)] if fast.num_rows else []), *others]
    if len(both) > 1:
        events = pa.concat_batches(both)
        both = [events.take(pc.sort_indices(events["_arrival"]))]
    yield from both


def arranged(layout: Layout, fast: pa.Table, lines: Numbers, file: str, index: int) -> pa.RecordBatch:
    """The events of rows that are proven, which stand on ``lines``: upserts, where nothing else is said."""
    arrays = {}
    for name in fast.column_names:
        if name != "_proven":
            column = fast[name].combine_chunks()
            arrays[name] = column.cast(layout.schema.field(name).type)
    if "_kind" not in arrays:
        arrays["_kind"] = pa.repeat(str(EventKind.UPSERT), len(lines))
    return layout.arranged(arrays, lines, file, index)  # type: ignore[arg-type]
