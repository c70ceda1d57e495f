"""A statement over many rows, asked for one range of keys after the other: together the same rows in the same order, whatever the keys."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from limited import limited

from rejoin.engines import key_ranges
from rejoin.engines.counted_relation import CountedRelation, PickedRelation, taken
from rejoin.engines.deferred_relation import DeferredRelation
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.key_ranges import WHOLE, ranges, side_by_side
from rejoin.engines.relation import KeySpread, LocalRelation

ROWS = 3_000
START = datetime(2026, 11, 1, tzinfo=UTC)
KEYS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "numbers": (pa.int64(), lambda r: r.randint(-(1 << 63), (1 << 63) - 1)),
    "few numbers": (pa.int32(), lambda r: r.randint(1, 9)),
    "texts": (pa.string(), lambda r: "".join(r.choices(["a", "'", "\0", "\\", "é", "\U0001f600", "", " ", "%"], k=r.randint(0, 6)))),
    "bytes": (pa.binary(), lambda r: bytes(r.choices([0, 39, 92, 65, 255], k=r.randint(0, 5)))),
    "decimals": (pa.decimal128(38, 9), lambda r: Decimal(r.randint(-(10**30), 10**30)).scaleb(-9)),
    "floating": (pa.float64(), lambda r: r.choice([0.0, -0.0, float("inf"), float("-inf"), float("nan"), r.gauss(0, 1e300), 5e-324])),
    "dates": (pa.date32(), lambda r: date(1, 1, 1) + timedelta(r.randint(0, 3_600_000))),
    "times": (pa.timestamp("us", "UTC"), lambda r: START + timedelta(microseconds=r.randint(0, 10**15))),
    "times without a zone": (pa.timestamp("us"), lambda r: START.replace(tzinfo=None) + timedelta(microseconds=r.randint(0, 10**15))),
    "booleans": (pa.bool_(), lambda r: r.random() < 0.5),
    "one": (pa.int64(), lambda _: 7),
    "none": (pa.int64(), lambda _: None),
}


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, range_rows=100, fewest_range_rows=10)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 8)


def shuffled(kind: str, seed: int) -> pa.Table:
    """Rows with such keys, one in ten of them null, and their numbers."""
    of, made = KEYS[kind]
    drawn = random.Random(seed)
    return pa.table(
        {"k": pa.array([None if drawn.random() < 0.1 else made(drawn) for _ in range(ROWS)], of), "n": pa.array(range(ROWS), pa.int64())}
    )


def engine() -> DuckdbEngine:
    return DuckdbEngine.__new__(DuckdbEngine)  # no plan: nothing here asks for it


@pytest.mark.parametrize("kind", KEYS)
def test_all_ranges_are_all_rows_each_once_and_in_their_order(kind: str) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rows = DeferredRelation("SELECT * FROM given", {"given": LocalRelation(shuffled(kind, seed))})
    whole = DeferredRelation("SELECT * FROM given ORDER BY k, n", rows.inputs).here()
    cut = engine().ranged(rows, ["k"], KeySpread(rows, ["k"], ROWS, nulls=True))
    assert isinstance(cut, DeferredRelation)
    parts = [
        pa.Table.from_batches(batches, whole.schema) if (batches := list(part)) else whole.slice(0, 0) for part in taken(cut, ["k", "n"])
    ]
    assert pa.concat_tables(parts)["n"].to_pylist() == whole["n"].to_pylist()
    if kind in ("numbers", "decimals", "dates", "times", "times without a zone"):
        assert len(parts) == ROWS // 100 + 1
        assert all(0 < part.num_rows < 400 for part in parts)  # the last one is that of nulls
    assert len(parts) == {"one": 2, "none": 1}.get(kind, len(parts))


@pytest.mark.parametrize("kind", ["few numbers", "texts", "none", "times"])
def test_the_ranges_of_rows_that_are_made_of_inputs_with_the_same_key_are_all_rows(kind: str) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    deferred = [DeferredRelation("SELECT * FROM given", {"given": LocalRelation(shuffled(kind, seed + i))}) for i in range(2)]
    once = "SELECT k AS {}, max(n) AS n FROM given GROUP BY k"
    a, b = (engine().query(once.format(name), given=rows) for name, rows in zip(("k_1", "other"), deferred, strict=True))
    compared = engine().query(
        "SELECT coalesce(k_1, other) AS k, a.n AS n, b.n AS m FROM a FULL JOIN b ON k_1 IS NOT DISTINCT FROM other", a=a, b=b
    )
    made = engine().keyed(compared, ["k"], {"a": ["k_1"], "b": ["other"]})
    cut = engine().ranged(made, ["k"], KeySpread(deferred[0], ["k"], ROWS, nulls=True))
    assert isinstance(cut, DeferredRelation)
    assert len(cut.ranges) > 1 or kind == "none"
    found = [tuple(row.values()) for part in taken(cut, ["k"]) for batch in part for row in batch.to_pylist()]
    whole = [
        tuple(row.values()) for row in DeferredRelation("SELECT * FROM compared ORDER BY k", {"compared": compared}).here().to_pylist()
    ]
    assert found == whole


def test_rows_of_several_ranges_are_counted_though_they_are_taken_side_by_side() -> None:
    given = DeferredRelation("SELECT k, n FROM given", {"given": LocalRelation(shuffled("numbers", 1))})
    counted = CountedRelation(given.statement, given.inputs, {"all": "count(*)", "odd": "count(CASE WHEN n % 2 = 1 THEN 1 END)"})
    picked = PickedRelation("SELECT k FROM rows_ WHERE n < 100", {"rows_": counted}, ("k",), "n < 100")
    cut = engine().ranged(picked, ["k"], KeySpread(given, ["k"], ROWS, nulls=True))
    assert isinstance(cut, DeferredRelation)
    found = side_by_side(lambda part: sum(batch.num_rows for batch in part), taken(cut, ["k"]))
    assert len(found) == ROWS // 100 + 1
    assert sum(found) == 100
    assert counted.seen() == {"all": ROWS, "odd": ROWS // 2}


@pytest.mark.parametrize("share", [0.3, 0.9, 1.0])
def test_the_rows_of_a_key_that_very_many_have_are_cut_by_the_next_column(share: float) -> None:
    drawn = random.Random(1)
    first = [5 if drawn.random() < share else None if drawn.random() < 0.1 else drawn.randrange(10) for _ in range(ROWS)]
    second = [None if drawn.random() < 0.1 else f"{drawn.randrange(ROWS):05}" for _ in range(ROWS)]
    given = LocalRelation(pa.table({"a": pa.array(first, pa.int64()), "b": second, "n": range(ROWS)}))
    whole = DeferredRelation("SELECT a, b, n FROM given ORDER BY a, b, n", {"given": given}).here()
    cut = engine().gathered(DeferredRelation("SELECT a, b, n FROM given", {"given": given}), ["a", "b"], ROWS)
    assert isinstance(cut, DeferredRelation)
    parts = [[n for batch in part for n in batch["n"].to_pylist()] for part in taken(cut, ["a", "b", "n"])]
    assert [n for part in parts for n in part] == whole["n"].to_pylist()
    assert max(map(len, parts)) < ROWS / 6


def test_rows_in_another_order_are_computed_once_for_all_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, original = list[str](), DeferredRelation.kept
    monkeypatch.setattr(DeferredRelation, "kept", lambda rows: (kept.append(rows.statement), original(rows))[1])
    rows = CountedRelation("SELECT n, -n AS k FROM given", {"given": LocalRelation(shuffled("numbers", 1))}, {"all": "count(*)"})
    cut = engine().gathered(rows, ["k"], ROWS)
    assert isinstance(cut, DeferredRelation)
    assert kept == [rows.statement]
    assert [k for part in taken(cut, ["k"]) for batch in part for k in batch["k"].to_pylist()] == list(range(1 - ROWS, 1))
    assert rows.seen() == {"all": ROWS}


def test_few_rows_and_rows_beside_many_others_are_not_cut() -> None:
    rows = DeferredRelation("SELECT * FROM given", {"given": LocalRelation(shuffled("numbers", 1))})
    assert ranges(KeySpread(rows, ["k"], 19), ["k"], 4) == WHOLE
    assert ranges(KeySpread(rows, ["k"], ROWS, beside=ROWS), ["k"], 4) == WHOLE
    assert engine().ranged(rows, ["k"], None) is rows
    assert len(ranges(KeySpread(rows, ["k"], ROWS, beside=ROWS // 4), ["k"], 4)) == 4
    assert [key_ranges.count(KeySpread(rows, ["k"], n), 4) for n in (19, 20, 60, 1_000)] == [1, 2, 4, 10]


def test_the_first_error_of_a_part_ends_the_others() -> None:
    begun = list[int]()
    failed = threading.Event()

    def work(part: int) -> int:
        begun.append(part)
        if part == 0:
            failed.set()
            raise ValueError("part 0")
        failed.wait()
        return part

    with pytest.raises(ValueError, match="part 0"):
        side_by_side(work, range(100))
    assert len(begun) < 100
    assert side_by_side(lambda part: part * 2, range(5)) == [0, 2, 4, 6, 8]
