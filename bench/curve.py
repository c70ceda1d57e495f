"""The curve of one size: what change sets from nothing to half of all rows cost, in rejoin and in every baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from engines import Engine, Lake, Rejoin, by_spark, lake_of
from first_load import PlainLoad
from full import Full, full_engines
from incremental import IndexedDuckdb, SparkMerge
from measure import Done, Row, Spent, row, save, saved_rows, spend, tracked
from storage import stored
from work import Work

PARTS = ("load", "duckdb", "spark", "engine", "incremental", "storage")
"""What can be left out; rejoin's own curve is always measured."""
NAMES = {
    "load": ("spark load, plain",),
    "duckdb": ("duckdb full",),
    "spark": ("spark full, shuffle", "spark full, broadcast", "spark full, grouped by key"),
    "engine": ("rejoin, spark",),
    "incremental": ("spark merge, upsert", "spark merge, update only", "duckdb indexed"),
}
"""The engines of a part."""
TIDY_EVERY = 20
"""Change sets between two compactions."""
COUNTED, COUNTED_LARGE = 5, 2
"""Repeats that count; a small change set has one more before, to warm up."""
SHARES_WITH_FULL = (0.0, 0.01, 0.5)
"""After which change sets the full recomputations are repeated."""


def change_sizes(n: int) -> list[int]:
    """The k of one curve."""
    return sorted(k for k in {0, 100, 1_000, 10_000, 100_000, n // 100, n // 10, n // 2} if k <= n // 2)


@dataclass
class Curve:
    """The measurements of one size.

    Args:
        n: left rows.
        root: an empty directory.
        parts: which of ``PARTS`` to measure.
        sizes: the k to measure.
        counted: repeats of a small change set that count.
        out: where the results are saved, after every step; saved rows of engines that are not measured this time stay.
        tidy_every: change sets between two compactions.
    """

    n: int
    root: Path
    parts: Sequence[str]
    sizes: list[int]
    counted: int
    out: Path
    tidy_every: int = TIDY_EVERY
    rows: list[Row] = field(default_factory=list)
    storage: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = Work(self.n, self.root)
        self.lake: Lake = lake_of(self.root)
        self._lakes = [self.lake]
        self.engines: list[Engine] = [Rejoin(self.lake, "rejoin")]
        self.full: list[Full] = []
        self._file = self.out / f"curve-{self.n}.json"
        self._others = self._saved_before()
        self._recomputed: dict[str, list[Spent]] = {}
        self._since_tidy = 0

    def measure(self) -> None:
        """Everything, in order."""
        self.load()
        for k in tracked(self.sizes, f"{self.n:,} rows"):
            for side in ("left", "right") if k else ("left",):
                self.point(k, side)
            if self.full and k in self._sizes_with_full():
                self.recompute(1 if self.n > 10_000_000 else 2)
        self.rows += [row(name, self.n, self.n, "full", spent) for name, spent in self._recomputed.items()]
        if "storage" in self.parts:
            self._keep("after the curve")
            self.rows.append(self._once("rejoin", 0, "tidy", self.engines[0].tidy))
            self._keep("after a compaction")
        self._save()

    def load(self) -> None:
        """The first load of every engine, and its compaction; warms the full recomputations up."""
        self.work.first_rows()
        self._add(self.engines[0])
        if "engine" in self.parts:
            self._lakes.append(by_spark(self.lake))
            self.engines.append(Rejoin(self._lakes[-1], *NAMES["engine"]))
            self._add(self.engines[-1])
        if "load" in self.parts:
            plain = PlainLoad(self.work, self.lake.spark)
            self.rows.append(self._once(plain.name, self.n, "load", plain.load))
            plain.close()
        self.work.landed()
        if "storage" in self.parts:
            self._keep("after the first load")
        if "incremental" in self.parts:
            made: list[Engine] = [SparkMerge(self.work, self.lake.spark, upsert=upsert) for upsert in (True, False)]
            for engine in [*made, IndexedDuckdb(self.work)]:
                self._add(engine)
                self.engines.append(engine)
        self._tidy(self.n)
        self.full = [engine for engine in full_engines(self.work, self.lake.spark) if engine.name in self._names()]
        if self.full:
            self.recompute(1)
            self._recomputed.clear()
        self._save()

    def point(self, k: int, side: str) -> None:
        """One k of one side in every engine, in turns, on the same change sets."""
        large = k >= self.n // 10
        counted = min(self.counted, COUNTED_LARGE if self.n <= 1_000_000 else 1) if large else self.counted
        warm = 0 if large or self.counted == 1 else 1
        for engine in [e for e in self.engines if k > e.largest * self.n]:
            self.engines.remove(engine)  # who passes a change set over cannot go on
            engine.close()
        spent: dict[str, list[Spent]] = {e.name: [] for e in self.engines}
        for turn in range(warm + counted):
            change = self.work.change(side, k)
            first = turn % len(self.engines)  # nobody is always the one who finds the files cold
            for engine in self.engines[first:] + self.engines[:first]:
                spent[engine.name].append(spend(partial(engine.apply, change)))
            self.work.landed()
        self.rows += [row(name, self.n, k, side, all_[warm:]) for name, all_ in spent.items()]
        self._since_tidy += warm + counted
        if self._since_tidy >= self.tidy_every:
            self._tidy()
        self._save()

    def recompute(self, repeats: int) -> None:
        """Every full recomputation, on the sources as they are now."""
        self.work.refresh()
        for engine in self.full:
            for _ in range(repeats):
                engine.clear()
                self._recomputed.setdefault(engine.name, []).append(spend(engine.recompute))

    def check(self) -> None:
        """Fails if an output of rejoin is not what its SQL says."""
        for lake in self._lakes:
            lake.check()

    def close(self) -> None:
        """Removes everything but the results."""
        for engine in self.engines:
            engine.close()
        self.work.close()

    def _add(self, engine: Engine) -> None:
        self.rows.append(self._once(engine.name, self.n, "load", engine.load))

    def _tidy(self, k: int = 0) -> None:
        self._since_tidy = 0
        self.rows += [self._once(engine.name, k, "tidy", engine.tidy) for engine in self.engines]

    def _once(self, name: str, k: int, side: str, work: Callable[[], Done]) -> Row:
        return row(name, self.n, k, side, [spend(work)])

    def _keep(self, when: str) -> None:
        self.work.refresh()
        self.storage.append(stored(when, self.work, self.lake))

    def _sizes_with_full(self) -> set[int]:
        """The k nearest to ``SHARES_WITH_FULL``."""
        return {min(self.sizes, key=lambda k: abs(k - share * self.n)) for share in SHARES_WITH_FULL}

    def _names(self) -> set[str]:
        """The engines that are measured."""
        return {"rejoin"} | {name for part in self.parts for name in NAMES.get(part, ())}

    def _saved_before(self) -> list[Row]:
        return [r for r in saved_rows(self._file) if r.engine not in self._names()] if self._file.exists() else []

    def _save(self) -> None:
        save([*self._others, *self.rows], self._file)
        if self.storage:
            save(self.storage, self.out / f"storage-{self.n}.json")
