"""What is done range by range reads, for each range, the rows of that range: DuckDB takes the condition down to the files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.test_refresh import CUSTOMERS, FILE, ORDERS, Shop
from limited import limited
from worker_processes import InTurn, by

from rejoin.engines.deferred_relation import WHOLE, DeferredRelation, Range
from rejoin.plan.model.policy import Fuse, Refresh

pytestmark = pytest.mark.slow
RANGES = 10
OTHERS = 'others = t.table("others", key="id", schema="id BIGINT, customer STRING, note STRING", source=debezium("landing/orders"))'
EVENTS = (
    'events = t.stream("events", id="id", key="customer", event_time="timestamp_millis(id)", '
    'schema="id BIGINT, customer STRING, note STRING", source=debezium("landing/orders"))'
)
KINDS = {  # the output, and which runs make it in ranges
    "full": (
        'orders.full_join(customers, foreign_key="customer", select=["left.id AS id", "right.id AS customer", "note", "name"])',
        ["load", "full", "half", "again"],
    ),
    "groups": ('orders.group_by("id % 400 AS part").aggregate(n="count(*)", notes="collect(note ORDER BY id)")', ["half", "again"]),
    "same key": (
        f'{OTHERS}\norders.full_join(others, select=["left.id", "left.note", "right.customer"])',
        ["load", "full", "half", "again"],
    ),
    "as of": (f'{EVENTS}\nevents.left_join(customers, as_of="run", select=["left.id", "left.note", "right.name"])', ["load", "more"]),
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


def test_a_task_that_computes_for_others_reads_its_own_rows_also_of_a_key_that_half_of_all_have(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, read: dict[str, list[tuple[int, int]]]
) -> None:
    limited(monkeypatch, sparse=0, range_rows=ORDERS // RANGES, fewest_range_rows=CUSTOMERS, row_group=20)
    shop = Shop(tmp_path, sessions)
    by(InTurn(), shop.topology.config, monkeypatch)
    shop.run()
    for what in ("left", "right"):
        if what == "left":
            shop.orders(range(0, ORDERS, 2), "changed")
        else:
            shop.customers(["c0"], "changed")
        read.clear()
        shop.run(Refresh.INCREMENTAL, Fuse.APPLY)
        of_keys = read["fk_1 pk_1 left_hash right"]
        assert len(of_keys) >= 3, what
        assert max(found for found, _ in of_keys) <= sum(found for found, _ in of_keys) // 2, (what, of_keys)
        # A range has a tenth of what is stored, two versions of a row; most have no row of c0, which alone has changed on the right.
        assert all(found <= 2 * max(rows, ORDERS // RANGES) + CUSTOMERS for rows, found in of_keys), (what, of_keys)
    assert shop.differences() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_ranges_of_a_result_read_together_what_one_range_would(
    kind: str, tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, small_rows=30, sparse=0, fetched_bytes=0, range_rows=ORDERS // RANGES, fewest_range_rows=1, row_group=20)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 4)
    (made, by_ranges), found = KINDS[kind], dict[str, tuple[DeferredRelation, list[tuple[int, int]]]]()
    shop, original, what = ShopOf(tmp_path, sessions, made), DeferredRelation.ordered, ""

    def ordered(self: DeferredRelation, by: Sequence[str], within: Range) -> Iterator[pa.RecordBatch]:
        if within not in WHOLE and not {"_version", "pk_1"} & set(self.columns):  # neither a table nor subscriptions and responses
            found.setdefault(what, (self, []))[1].append(taken(self, within))
        yield from original(self, by, within)

    monkeypatch.setattr(DeferredRelation, "ordered", ordered)
    changed = {"full": range(ORDERS, ORDERS + 100), "half": range(0, ORDERS, 2), "again": range(0, ORDERS, 2)}
    if kind == "as of":  # records that are known change nothing
        changed = {"more": range(ORDERS, 2 * ORDERS)}
    for what in ("load", *changed):
        if what in changed:
            shop.orders(changed[what], what)
        shop.run(Refresh.FULL if what == "full" else Refresh.INCREMENTAL, Fuse.APPLY)
        if what in found:
            rows, ranges = found[what]
            whole, most = taken(rows, *WHOLE)
            assert len(ranges) >= 3
            assert sum(rows for rows, _ in ranges) == whole > 100
            beside = CUSTOMERS + (ORDERS // 2 if what == "again" else 0)  # all customers, and what hides the rows that were changed before
            assert sum(read for _, read in ranges) <= 1.5 * most + len(ranges) * beside, (ranges, most)
    assert list(found) == by_ranges
    assert shop.differences() == 0
