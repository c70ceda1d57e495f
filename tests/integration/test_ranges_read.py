"""What is done range by range reads, for each range, the rows of that range: DuckDB takes the condition down to the files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.test_refresh import CUSTOMERS, FILE, ORDERS, Shop
from limited import limited

from rejoin.engines.deferred_relation import WHOLE, DeferredRelation, Range
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.plan.model.policy import Fuse, Refresh

RANGES = 10
KINDS = {
    "groups": 'orders.group_by("id % 400 AS part").aggregate(n="count(*)", notes="collect(note ORDER BY id)")',
}


class ShopOf(Shop):
    """The same tables, and another output."""

    def __init__(self, root: Path, sessions: Sessions, made: str) -> None:
        self._made = made
        super().__init__(root, sessions)

    def define(self, options: str) -> None:
        tables = FILE.rsplit("\n", 2)[0]
        (self.root / "t.py").write_text(f'{tables}\n{self._made}.named("enriched"{options})\n')


def taken(rows: DeferredRelation, within: Range) -> tuple[int, int]:
    """How many rows are in a range, and the most rows that any part of their query has had."""
    with rows.asked(within) as (connection, query):
        plan = connection.sql(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
        found = connection.sql(query).to_arrow_table().num_rows
    return found, max(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) rows", plan))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[int, int]]]:
    """What is ``taken`` of every range, by the columns of its rows."""
    found, original = dict[str, list[tuple[int, int]]](), DeferredRelation.ordered

    def ordered(self: DeferredRelation, by: Sequence[str], within: Range) -> Iterator[pa.RecordBatch]:
        if within not in WHOLE:
            found.setdefault(" ".join(self.columns), []).append(taken(self, within))
        yield from original(self, by, within)

    monkeypatch.setattr(DeferredRelation, "ordered", ordered)
    return found


def test_a_range_reads_its_own_rows(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, read: dict[str, list[tuple[int, int]]]
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, small_rows=100, sparse=0, fetched_bytes=0, range_rows=ORDERS // RANGES, fewest_range_rows=CUSTOMERS, row_group=20)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 4)
    shop, steps = Shop(tmp_path, sessions), list[int]()
    for what in ("load", "left", "right", "full"):
        if what == "left":
            shop.orders(range(0, ORDERS, 2), "changed")
        elif what == "right":
            shop.customers(["c0"], "changed")
        elif what == "full":
            shop.orders(range(5), "again")
        read.clear()
        shop.run(Refresh.FULL if what == "full" else Refresh.INCREMENTAL, Fuse.APPLY)
        for columns, ranges in read.items():
            assert len(ranges) >= 3, (what, columns, ranges)
            # With old versions; beside it what is read for each range: all customers, and what hides old rows.
            # Two versions of a row; whichever the range is, all customers, and what hides the rows that were changed before.
            beside = CUSTOMERS + {"right": ORDERS // 2, "full": ORDERS}.get(what, 0)
            assert all(found <= 2 * rows + beside for rows, found in ranges), (what, columns, ranges)
        steps.append(len(read))
    assert steps == [3, 4, 2, 1]
    assert shop.differences() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_ranges_of_a_result_read_together_what_one_range_would(
    kind: str, tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, small_rows=30, sparse=0, fetched_bytes=0, range_rows=ORDERS // RANGES, fewest_range_rows=1, row_group=20)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 4)
    shop, found, original = ShopOf(tmp_path, sessions, KINDS[kind]), list[DeferredRelation](), DuckdbEngine.ordered

    def ordered(self: DuckdbEngine, rows: DeferredRelation, by: Sequence[str]) -> Sequence[Iterator[pa.RecordBatch]]:
        if "_after" in rows.columns:
            ranges = [taken(rows, within) for within in rows.ranges]
            whole, most = taken(rows, *WHOLE)
            assert len(ranges) >= 3
            assert sum(rows for rows, _ in ranges) == whole > 100
            assert sum(read for _, read in ranges) <= 1.3 * most, (ranges, most)
            found.append(rows)
        return original(self, rows, by)

    monkeypatch.setattr(DuckdbEngine, "ordered", ordered)
    for what in ("load", "half", "again"):
        if what != "load":
            shop.orders(range(0, ORDERS, 2), what)
        shop.run(Refresh.INCREMENTAL, Fuse.APPLY)
    assert len(found) == 2
    assert shop.differences() == 0
