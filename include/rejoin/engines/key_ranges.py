"""Many rows by ranges of their key: one statement, asked for each range apart, several side by side (ADR 0027).

A range is a condition over the result of the statement, so whatever the statement is, the rows of all ranges are its rows. DuckDB takes the condition down to what is read, also
through joins and windows by that key: so a range costs its own rows, and memory holds as many ranges as are worked on at once.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import pyarrow as pa

from rejoin.engines.deferred_relation import WHOLE, Range, bound
from rejoin.engines.relation import KeySpread
from rejoin.limits import limits
from rejoin.plan.sql.portable import quoted
from rejoin.statements.dialect import DUCKDB

T = TypeVar("T")
U = TypeVar("U")
Bound = tuple[int, str]
"""One of a ``Range``."""
SAMPLE = 10_000
"""Keys that tell where to cut: with so many, of twenty ranges each holds its share of rows to within some percent."""


def count(spread: KeySpread, workers: int) -> int:
    """How many ranges are worth it: as many as ``workers`` work on at once, and so many that few rows are in memory at once; none so small that what all ranges read costs more than its own rows."""
    wanted = max(workers, -(-spread.rows // limits().range_rows))
    useful = spread.rows // max(limits().fewest_range_rows, spread.beside)
    return max(1, min(wanted, useful))


def at_once() -> int:
    """How many ranges are worked on at once: one for every two cores. DuckDB and the writing of files keep two busy with one; two at once on two cores take more CPU."""
    return max(1, int(pa.cpu_count()) // 2)


def ranges(spread: KeySpread, by: Sequence[str], workers: int) -> tuple[Range, ...]:
    """Ranges of the columns ``by``, in their order, null last: each row is in one of them, and each has about as many rows. The rows of a first column's value
    that very many have are cut by the next column.
    """
    wanted = count(spread, workers)
    if wanted == 1:
        return WHOLE
    keys = DUCKDB.names(spread.columns)
    texts = ", ".join(f"CAST({DUCKDB.name(c)} AS VARCHAR) AS text_{i}" for i, c in enumerate(spread.columns))
    first = DUCKDB.name(spread.columns[0])
    sampled = f"SELECT {keys} FROM keys USING SAMPLE reservoir({SAMPLE} ROWS)"
    with bound(f"SELECT {texts}, {keys} FROM ({sampled}) WHERE {first} IS NOT NULL ORDER BY {keys}", {"keys": spread.keys}) as query:
        kinds, found = query.types[len(spread.columns) :], query.to_arrow_table()
    rows = list(zip(*(column.to_pylist() for column in found.columns[: len(spread.columns)]), strict=True))
    columns = [_Column(at, str(kind)) for at, kind in enumerate(kinds)]
    return tuple(Range(tuple(by), found) for found in _cut(rows, columns, -(-len(rows) // wanted), nulls=spread.nulls)) if rows else WHOLE


@dataclass(frozen=True)
class _Column:
    """A column of the key: its number, and its type."""

    at: int
    kind: str

    def __call__(self, comparison: str, value: str) -> Bound:
        return self.at, f"{comparison} CAST({quoted(value)} AS {self.kind})"


@dataclass
class _Span:
    """The values from ``start`` to the next span's. ``alone``: only that value, which has so many rows that they are cut further."""

    start: str
    rows: list[tuple[str | None, ...]]
    alone: bool


def _cut(rows: Sequence[tuple[str | None, ...]], columns: Sequence[_Column], size: int, *, nulls: bool) -> Iterator[list[Bound]]:
    """Bounds that cut such rows, which are in their order, into ranges of about ``size`` of them."""
    column, spans = columns[0], list(_spans(rows, size, last=len(columns) == 1))
    for at, span in enumerate(spans):
        low, high = at > 0, [column("<", after.start) for after in spans[at + 1 : at + 2]]
        if not span.alone:
            yield [*([column(">=", span.start)] if low else []), *high] or [(column.at, "IS NOT NULL")]
            continue
        if not low:
            yield [column("<", span.start)]
        rest = [row[1:] for row in span.rows]
        yield from ([column("=", span.start), *one] for one in _cut(rest, columns[1:], size, nulls=nulls))
        yield [column(">", span.start), *high]
    if nulls:
        yield [(column.at, "IS NULL")]  # apart: DuckDB takes no OR through joins


def _spans(rows: Sequence[tuple[str | None, ...]], size: int, *, last: bool) -> Iterator[_Span]:
    span: _Span | None = None
    for value, group in groupby((row for row in rows if row[0] is not None), key=itemgetter(0)):
        same = list(group)
        if "\0" not in value and not last and len(same) >= 2 * size:
            yield from [span] if span else []
            yield _Span(value, same, alone=True)
            span = None
        elif span is None or (len(span.rows) >= size and "\0" not in value):
            yield from [span] if span else []
            span = _Span(value, same, alone=False)
        else:
            span.rows += same
    yield from [span] if span else []


def side_by_side(work: Callable[[T], U], parts: Sequence[T]) -> list[U]:
    """What some work comes to of each part, in their order; on all cores. After an error no other part is begun."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(at_once()) as pool:
        done = [pool.submit(work, part) for part in parts]
        wait(done, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    failed = next((error for one in done if not one.cancelled() and (error := one.exception()) is not None), None)
    if failed is not None:
        raise failed
    return [one.result() for one in done]
