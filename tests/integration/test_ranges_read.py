"""What is done range by range reads, for each range, the rows of that range: DuckDB takes the condition down to the files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.test_refresh import CUSTOMERS, ORDERS, Shop
from limited import limited

from rejoin.engines import deferred_relation
from rejoin.engines.deferred_relation import WHOLE, DeferredRelation
from rejoin.plan.model.policy import Fuse, Refresh

RANGES = 10


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[int, int]]]:
    """Of every range: by the columns of its rows, how many these are, and the most rows that any part of its query has had."""
    found, original = dict[str, list[tuple[int, int]]](), DeferredRelation.ordered

    def ordered(self: DeferredRelation, by: Sequence[str], within: str) -> Iterator[pa.RecordBatch]:
        if (within,) != WHOLE:
            text = f"SELECT * FROM ({self.statement}) WHERE {within}"
            with deferred_relation._asked(text, self.inputs) as (connection, query):
                plan = connection.sql(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
                rows = connection.sql(query).to_arrow_table().num_rows
            most = max(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) rows", plan))
            found.setdefault(" ".join(self.columns), []).append((rows, most))
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
