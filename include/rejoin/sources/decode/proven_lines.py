"""Lines of one shape -> events by DuckDB, every other line by the careful decoder: the same events either way.

Some lines of a file's first chunk tell the shapes (``shape_learning``); ``sql_values`` tells which values are beyond doubt. What a careful decoder remembers from line to line is
the decoder's affair: it says when a chunk has to be read by it as a whole.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.sql.portable import UTC
from rejoin.sources.decode.line_shape import Shape
from rejoin.sources.decode.proven_rows import AT, Proven, events, places, which_proven
from rejoin.sources.decode.shape_learning import Habits, learned
from rejoin.sources.events import Layout
from rejoin.sources.formats.line_chunks import Chunk, RemainingLines, chunks
from rejoin.sources.formats.plain_columns import from_their_start
from rejoin.statements.dialect import DUCKDB

if TYPE_CHECKING:
    import duckdb

SAMPLE = 200
"""So many lines a shape is learned of."""
SHAPES = 8
"""So many shapes the lines of a dialect may have whose tables are told apart."""
_MANY, _TRIES = 10, 4
"""Where one in so many lines has none of these shapes, others are learned; so often of a file."""
_AHEAD = 2
"""Chunks that are judged before they are asked for."""
_PARTS = 4
"""Batches of a chunk, for several threads."""
Numbered = tuple[int, bytes]
T = TypeVar("T")
Ahead = tuple[Chunk | RemainingLines, Callable[[], T | None]]


@dataclass(frozen=True)
class Judge:
    """How lines of a shape become events.

    Attributes:
        columns: column of an event -> its value, as SQL over ``given``. Without ``_kind`` all are upserts. ``proven_rows`` says how a row tells of two changes.
        holds: conditions over ``given`` under which these are what the careful decoder makes of the line.
        given: names -> SQL over ``j``, the struct of a line, and ``line``, its text. Those of ``unnest`` make several rows of a line.
    """

    columns: Mapping[str, str]
    holds: Sequence[str]
    given: Mapping[str, str] = field(default_factory=lambda: {"j": "j", "line": "line"})


class LineDecoder(Protocol):
    """The decoder of one file.

    Attributes:
        layout: the table's columns.
        by_batch: what becomes of a line can depend on the others of its batch (``record_runs``).
        habits: what is known of how lines are written.
    """

    layout: Layout
    by_batch: bool
    habits: Habits

    def batches(self, file: str, index: int, lines: Iterator[Numbered]) -> Iterator[pa.RecordBatch]:
        """Any lines -> their events."""

    def judge(self, shape: Shape) -> Judge | None:
        """How lines of a shape become events; None if that is not told."""

    def beside(self, fast: pa.Table, file: str, index: int, slow: Sequence[Numbered]) -> list[pa.RecordBatch] | None:
        """The events of those lines of a chunk that are not among ``fast``, the rows of the most common shape; None if the chunk has to be read in its order. Has
        no effect then.
        """


@cache
def _database() -> "duckdb.DuckDBPyConnection":
    """What judges lines; a thread takes a cursor of its own."""
    import duckdb  # a cut needs none

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


def _judging(careful: LineDecoder) -> Callable[[Chunk], Callable[[Chunk], Proven | None] | None]:
    """The first chunk tells the shapes of all."""

    def how(first: Chunk) -> Callable[[Chunk], Proven | None] | None:
        queries = list(_queries(first, careful))
        if careful.habits.tables:
            return _Followed(careful, queries).judged
        return (lambda chunk: _judged(chunk, queries)) if queries else None

    return how


@dataclass
class _Followed:
    """Of a dialect that tells tables apart, a chunk with many lines of no known shape tells new ones: a file may begin with rows of a bootstrap, and go on
    with updates, which say more. Chunks that are judged at once may do so both: what they find is the same.
    """

    careful: LineDecoder
    queries: list[str]
    tries: int = _TRIES

    def judged(self, chunk: Chunk) -> Proven | None:
        """What is proven of a chunk."""
        found = _judged(chunk, self.queries)
        if self.tries == 0 or (found is not None and len(found.others) * _MANY < len(chunk.ends)):
            return found
        self.tries -= 1
        self.queries = list(_queries(chunk, self.careful))
        return _judged(chunk, self.queries)


def _lines(part: Chunk | RemainingLines) -> Iterator[Numbered]:
    return part.lines if isinstance(part, RemainingLines) else part.lines()


def _unproven(chunk: Chunk, found: Proven) -> Iterator[Numbered]:
    for at in found.others.tolist():
        yield chunk.first + at, chunk.line(chunk.first + at)


def _queries(chunk: Chunk, careful: LineDecoder) -> Iterator[str]:
    """The statements over ``lines`` (``AT``, ``line``), one a shape: ``AT``, the columns of events, and ``_proven``."""
    shapes = learned(_sample(chunk), careful.habits)
    for shape in shapes[: SHAPES if careful.habits.tables else 1]:
        judge = careful.judge(shape)
        if judge is not None:
            yield _query(shape, judge)


def _query(shape: Shape, judge: Judge) -> str:
    of_shape = ["j IS NOT NULL", *shape.guards("j", "line"), f"{shape.again('j')} = line"]
    given = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in judge.given.items())
    shown = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in judge.columns.items())
    lines = f"(SELECT {AT}, {shape.short('line')} AS line FROM lines)"
    return f"""
    SELECT {AT}, {_all(["_of_shape", *judge.holds])} AS _proven, {shown}
    FROM (SELECT {AT}, {_all(of_shape)} AS _of_shape, {given} FROM ({shape.structs(lines, f"{AT}, line")}))"""


def _all(conditions: Iterable[str]) -> str:
    return f"coalesce({' AND '.join(f'({condition})' for condition in conditions)}, false)"


def _sample(chunk: Chunk) -> Iterator[bytes]:
    """Lines from all over a chunk: a feed may begin with rows of a snapshot, and go on with updates that say more. At random places, lest what comes with every
    fifth line is in none of them.
    """
    count = len(chunk.ends)
    return (chunk.line(chunk.first + at) for at in Random(count).sample(range(count), min(count, SAMPLE)))


def _judged(chunk: Chunk, queries: Sequence[str]) -> Proven | None:
    """What is proven of a chunk, by one statement after the other; None if its lines cannot be looked at together."""
    import duckdb

    texts = None if chunk.has_controls else chunk.texts()
    if texts is None:
        return None
    rows, left = list[pa.Table](), np.arange(len(texts))
    for query in queries:
        lines = texts if len(left) == len(texts) else texts.take(pa.array(left))
        try:
            found = _answered(pa.record_batch([lines, pa.array(left)], names=["line", AT]), query)
        except (duckdb.ParserException, duckdb.BinderException):  # names in the data that no statement can be made of
            continue
        proven = which_proven(found, len(texts))
        rows.append(found.filter(pa.array(proven[found[AT].to_numpy()])))
        left = left[~proven[left]]
        if not len(left):
            break
    return Proven(rows, left) if rows else None


def computed(lines: pa.RecordBatch, query: str) -> pa.Table:
    """What a statement over ``lines`` gives, a row a line, in their order. ``query``: passes the column ``AT`` of each line on."""
    return _answered(lines.append_column(AT, pa.array(np.arange(lines.num_rows))), query).drop_columns([AT])


def _answered(lines: pa.RecordBatch, query: str) -> pa.Table:
    """The same with ``AT``, which ``lines`` have already; rows of one line follow each other.

    DuckDB gives rows in the order in which they came, unless it makes a join of something, as of a list of five texts behind ``IN``.
    """
    step = -(-lines.num_rows // _PARTS)
    parts = pa.Table.from_batches([_part(lines, i, step) for i in range(0, lines.num_rows, step)])
    with _database().cursor() as cursor:
        cursor.register("lines", parts)
        found = cursor.sql(query).to_arrow_table()
    order = places(found)
    return found if bool(np.all(order[1:] > order[:-1])) else found.take(pa.array(np.argsort(order)))


def _part(lines: pa.RecordBatch, first: int, count: int) -> pa.RecordBatch:
    part = lines.slice(first, count)
    return pa.RecordBatch.from_arrays(list(map(from_their_start, part.columns)), names=part.schema.names)


def _together(chunk: Chunk, found: Proven, file: str, index: int, careful: LineDecoder) -> Iterator[pa.RecordBatch]:
    others = careful.beside(found.rows[0], file, index, list(_unproven(chunk, found)))
    if others is None:
        yield from careful.batches(file, index, chunk.lines())
        return
    fast = [batch for rows in found.rows for batch in events(careful.layout, rows, chunk.first, file, index)]
    yield from together([*fast, *others])


def together(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events in the order in which they arrived, as one batch if there are any."""
    if len(batches) > 1:
        joined = pa.concat_batches(batches)
        batches = [joined.take(pc.sort_indices(joined["_arrival"]))]
    yield from batches
