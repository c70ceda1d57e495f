"""How a table's files lie, and which of them a compaction rewrites. Pure: from file statistics to a decision.

A table is a *base*, large files whose key ranges do not overlap, and *deltas*, the small files that runs append, which lie across all of it.
A base file's *unit* is its key range up to the next file's. A unit is folded, that is rewritten with the delta rows of its range, when these
(and rows that delete files hide) have grown to a share of its rows: so a row of the base is rewritten once in so many changes, and only
where changes fall. Deltas are merged with each other when many of one size have come together, so that a lookup meets few files.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import total_ordering
from itertools import groupby
from typing import Any

from rejoin.limits import limits


@total_ordering
class _Nulls:
    """Where null stands among the values of a key column: behind all of them."""

    def __eq__(self, other: object) -> bool:
        return other is self

    def __lt__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


NULLS = _Nulls()


@dataclass(frozen=True)
class FileBounds:
    """One data file: its place in the caller's list, its rows, the bounds of its first key column (None: unknown; ``NULLS``: null), its bytes."""

    index: int
    rows: int
    low: Any
    high: Any
    size: int = 0


@dataclass(frozen=True)
class Unit:
    """Base files that share a key range: their places and rows, and where the range starts (None: at the smallest key)."""

    files: tuple[int, ...]
    rows: int
    start: Any


@dataclass(frozen=True)
class Layout:
    """The units in key order, and the places of the deltas."""

    units: tuple[Unit, ...]
    deltas: tuple[int, ...]


def layout(files: Sequence[FileBounds]) -> Layout:
    """Which files are the base: the largest ones, as far as their ranges do not overlap. Files that only touch share a unit."""
    base: list[FileBounds] = []  # in key order
    for file in sorted(files, key=lambda f: (-f.rows, f.index)):
        if file.low is None or (file.rows < limits().base_rows and file.size < limits().base_bytes):
            continue
        at = bisect_right(base, (file.low, file.high), key=lambda f: (f.low, f.high))
        if (at == 0 or base[at - 1].high <= file.low) and (at == len(base) or file.high <= base[at].low):
            base.insert(at, file)
    groups: list[list[FileBounds]] = []
    for file in base:
        if groups and groups[-1][-1].high >= file.low:
            groups[-1].append(file)
        else:
            groups.append([file])
    units = [Unit(tuple(f.index for f in g), sum(f.rows for f in g), None if n == 0 else g[0].low) for n, g in enumerate(groups)]
    chosen = {f.index for f in base}
    return Layout(tuple(units), tuple(f.index for f in files if f.index not in chosen))


def to_fold(units: Sequence[Unit], changed: Sequence[int]) -> list[int]:
    """Which units to fold.

    Args:
        units: the units.
        changed: for each unit, its delta rows and hidden rows.
    """
    return [n for n, (unit, rows) in enumerate(zip(units, changed, strict=True)) if rows >= limits().fold_share * unit.rows]


def to_merge(files: Sequence[FileBounds], deltas: Sequence[int]) -> list[int]:
    """The places of the deltas to merge into one: all that are not larger than a crowd of about one size."""
    small = sorted((f for f in files if f.index in set(deltas)), key=lambda f: f.rows)
    crowded = [tier for tier, group in groupby(small, key=_tier) if len(list(group)) >= limits().merged_files]
    return [f.index for f in small if crowded and _tier(f) <= max(crowded)]


def _tier(file: FileBounds) -> int:
    tier, rows = 0, max(file.rows, 1)
    while rows >= limits().merged_files:
        tier, rows = tier + 1, rows // limits().merged_files
    return tier
