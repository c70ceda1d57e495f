"""Tasks of Spark run the statements, by DuckDB, a range of keys each; this process asks, and commits what they have written (ADR 0028)."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rejoin.engines import object_stores
from rejoin.engines.counted_relation import counting, taken
from rejoin.engines.deferred_relation import WHOLE, DeferredRelation, Range
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.landed_rows import landed
from rejoin.engines.relation import KeySpread, LocalRelation, RangeWork, Relation
from rejoin.plan.model.plan import Plan

T = TypeVar("T")


class Tasks(Protocol):
    """Tasks of a Spark job."""

    @property
    def at_once(self) -> int:
        """How many there are at one time, about."""

    def each(self, work: bytes, count: int) -> list[Any]:
        """What some work, which ``packed`` has made, comes to for each of the numbers below ``count``, a task each.

        Raises:
            NeedsSpark: a task says so, or was lost for good.
            RejoinError: a task has failed.
        """


class Exchange(Protocol):
    """Where tasks leave rows for other tasks."""

    def put(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> str:
        """Writes rows, in their order, to a file. Returns its path."""

    def rows(self, paths: Iterable[str]) -> str:
        """The rows of some files, as SQL text of DuckDB."""


class TaskEngine(DuckdbEngine):
    """DuckDB in tasks, for rows that may be many. What is small stays in this process.

    Args:
        plan: whose expressions are run.
        tasks: who works.
        exchange: where they leave rows for each other.
    """

    def __init__(self, plan: Plan, tasks: Tasks, exchange: Exchange) -> None:
        super().__init__(plan)
        self._tasks, self._exchange = tasks, exchange

    @property
    def at_once(self) -> int:
        return self._tasks.at_once

    def landed(self, schema: pa.Schema, streams: Sequence[Iterable[pa.RecordBatch]], rare: Sequence[str], by: Sequence[str]) -> Relation:
        work = _Landing(self._exchange, schema, streams, rare, by)
        return self.files(self._exchange.rows(self._asked(work, len(streams))))

    def each_range(self, rows: Relation, by: Sequence[str], work: RangeWork[T]) -> list[T] | None:
        assert isinstance(rows, DeferredRelation)
        came = self._asked(_Range(rows, by, work), len(rows.ranges))
        if (counted := counting(rows)) is not None:
            counted.restart()
            for _, counts in came:
                counted.add(counts)
        return [made for made, _ in came]

    def apart(self, rows: Relation, by: Sequence[str], lies: Callable[[], KeySpread]) -> Relation:
        return self.ranged(rows, by, lies()) if isinstance(rows, DeferredRelation) else rows

    def _exchanged(self, rows: DeferredRelation, by: Sequence[str]) -> Relation:
        """A task for each of its ranges leaves a file."""
        work = _Putting(self._exchange, rows, by or rows.ranges[0].columns)
        return self.files(self._exchange.rows(self._asked(work, len(rows.ranges))))

    @contextmanager
    def kept(self, rows: Relation) -> Iterator[Relation]:
        yield self._exchanged(rows, ()) if isinstance(rows, DeferredRelation) else LocalRelation(rows.here())

    def _asked(self, work: Callable[[int], T], count: int) -> list[T]:
        return self._tasks.each(packed(work), count)


@dataclass(frozen=True)
class _Landing:
    """Streams whose rows are left for others."""

    exchange: Exchange
    schema: pa.Schema
    streams: Sequence[Iterable[pa.RecordBatch]]
    rare: Sequence[str]
    by: Sequence[str]

    def __call__(self, number: int) -> str:
        return _put(self.exchange, landed(self.schema, [self.streams[number]], self.rare), self.by)


@dataclass(frozen=True)
class _Putting:
    """Rows that are computed once, and left for others."""

    exchange: Exchange
    rows: DeferredRelation
    by: Sequence[str]

    def __call__(self, number: int) -> str:
        return _put(self.exchange, self.rows, self.by, self.rows.ranges[number])


@dataclass(frozen=True)
class _Range:
    """Work on ranges of rows. What it comes to, and what was counted."""

    rows: DeferredRelation
    by: Sequence[str]
    work: RangeWork[Any]

    def __call__(self, number: int) -> tuple[Any, dict[str, int]]:
        counted = counting(self.rows)
        made = self.work(taken(self.rows, self.by)[number], writers=2)
        return made, {} if counted is None else dict(counted.totals)


def packed(work: Callable[[int], Any]) -> bytes:
    """Some work for a task. Rows that are few go with it."""
    text = pickle.dumps(work)
    return pickle.dumps((text, {name: store for name, store in object_stores.known().items() if name.encode() in text}))


def unpacked(parcel: bytes) -> Callable[[int], Any]:
    """The work, in a task."""
    text, stores = pickle.loads(parcel)
    object_stores.adopt(stores)
    work: Callable[[int], Any] = pickle.loads(text)
    return work


def _put(exchange: Exchange, rows: DeferredRelation, by: Sequence[str], within: Range = WHOLE[0]) -> str:
    return exchange.put(rows.schema, rows.ordered(by, within))
