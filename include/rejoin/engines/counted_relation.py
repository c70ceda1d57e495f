"""Rows that are counted while they are written, so that nobody keeps them to read them twice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.engines.arrow_tables import in_parts
from rejoin.engines.deferred_relation import BATCH_ROWS, DeferredRelation, Range
from rejoin.engines.relation import LocalRelation, Relation
from rejoin.statements.dialect import DUCKDB, aggregated

COUNTED_ROWS = 250_000
"""Rows that are counted together: a statement for fewer takes as long."""


@dataclass(frozen=True, eq=False)
class CountedRelation(DeferredRelation):
    """Rows that are counted when somebody takes them in an order (``taken``); any other statement that uses them uses what is kept of them.

    Attributes:
        counts: name -> aggregate over their columns; the counts of some rows and of others add up.
        totals: what they have come to so far.
        adding: held by who adds to them, as ranges are counted side by side.
    """

    counts: Mapping[str, str] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    adding: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[Callable[..., "CountedRelation"], tuple[object, ...]]:
        """Another process counts its own rows from the beginning."""
        return partial(CountedRelation, ranges=self.ranges, key=self.key, keyed=self.keyed), (self.statement, self.inputs, self.counts)

    @cached_property
    def settled(self) -> DeferredRelation:
        return self.kept()

    def here(self) -> pa.Table:
        found = super().here()
        self.restart()
        self.count(found)
        return found

    def seen(self) -> dict[str, int]:
        """The counts of all rows."""
        if not self.totals:
            self._add(self.settled)
        return dict(self.totals)

    def restart(self) -> None:
        """Counts from the beginning."""
        self.totals.update(dict.fromkeys(self.counts, 0))

    def count(self, some: pa.Table) -> None:
        """Counts these rows as well."""
        self._add(LocalRelation(some))

    def _add(self, some: Relation) -> None:
        (found,) = DeferredRelation(aggregated(DUCKDB, self.counts, "counted"), {"counted": some}).here().to_pylist()
        self.add(found)

    def add(self, found: Mapping[str, int]) -> None:
        """Adds what somebody has counted."""
        with self.adding:
            self.totals.update({name: self.totals.get(name, 0) + int(value) for name, value in found.items()})


@dataclass(frozen=True, eq=False)
class PickedRelation(DeferredRelation):
    """The columns ``names`` of those rows of its only input for which ``where`` holds."""

    names: Sequence[str] = ()
    where: str = ""


def counting(rows: DeferredRelation) -> CountedRelation | None:
    """What is counted while these rows are taken: they, if they are ``CountedRelation``, or what they are picked of; None: nothing."""
    below: Relation = rows
    if isinstance(rows, PickedRelation):
        (below,) = rows.inputs.values()
    return below if isinstance(below, CountedRelation) else None


def taken(rows: DeferredRelation, by: Sequence[str]) -> list[Iterator[pa.RecordBatch]]:
    """The rows in the order of some columns, a range after the other, each by itself; counted, if they are to be (``counting``)."""
    below = counting(rows)
    if below is None:
        return [rows.ordered(by, within) for within in rows.ranges]
    below.restart()
    return [_counted(below, by, within, rows if isinstance(rows, PickedRelation) else None) for within in rows.ranges]


def _counted(rows: CountedRelation, by: Sequence[str], within: Range, picked: PickedRelation | None) -> Iterator[pa.RecordBatch]:
    for some in in_parts(rows.ordered(by, within), COUNTED_ROWS):
        rows.count(some)
        yield from (some if picked is None else those(some, picked.names, picked.where)).to_batches(BATCH_ROWS)


def those(rows: pa.Table, names: Sequence[str], where: str) -> pa.Table:
    """The columns ``names`` of those rows for which ``where`` holds. Nothing is copied where it holds for all."""
    (mask,) = DeferredRelation(f"SELECT coalesce({where}, false) AS holds FROM counted", {"counted": LocalRelation(rows)}).here().columns
    shown = rows.select(list(names))
    return shown if pc.all(mask).as_py() else shown.filter(mask)
