"""Rows that are written in an order, and counted on the way."""

import random
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from rejoin.engines import counted_relation, deferred_relation
from rejoin.engines.counted_relation import CountedRelation, PickedRelation, taken
from rejoin.engines.deferred_relation import WHOLE, DeferredRelation, KeptRelation
from rejoin.engines.relation import LocalRelation, NeedsSpark

COUNT = 2 * counted_relation.COUNTED_ROWS + deferred_relation.BATCH_ROWS + 7
"""Some groups that are counted, and a part of one."""
COUNTS = {"all": "count(*)", "odd": "count(CASE WHEN n % 2 = 1 THEN 1 END)", "sum": "coalesce(sum(n), 0)"}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that DuckDB has kept."""
    made, original = list[str](), DeferredRelation.kept

    def kept(self: DeferredRelation) -> KeptRelation:
        made.append(self.statement)
        return original(self)

    monkeypatch.setattr(DeferredRelation, "kept", kept)
    return made


def shuffled(count: int = COUNT) -> DeferredRelation:
    keys = list(range(count))
    random.Random(7).shuffle(keys)
    rows = pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(keys, pa.int64())})
    return DeferredRelation("SELECT k, n, 'x' || n AS text FROM given", {"given": LocalRelation(rows)})


def counted(rows: DeferredRelation) -> CountedRelation:
    return CountedRelation(rows.statement, rows.inputs, COUNTS)


def read(ranges: Iterable[Iterator[pa.RecordBatch]]) -> list[dict[str, object]]:
    return [row for batches in ranges for batch in batches for row in batch.to_pylist()]


def test_texts_are_in_the_order_of_their_bytes() -> None:
    texts = sorted(["", " ", "A", "a", "é", "z", "\U00010000", "\uffff", "a" * 300], key=str.encode)
    given = random.Random(7).sample(texts, len(texts))
    rows = DeferredRelation("SELECT k FROM given", {"given": LocalRelation(pa.table({"k": given}))})
    assert [row["k"] for row in read([rows.ordered(["k"], *WHOLE)])] == texts


def test_rows_are_counted_while_they_are_taken_and_nobody_keeps_them(computed: list[str]) -> None:
    rows = counted(shuffled())
    found = read(taken(rows, ["k"]))
    assert found == [{"k": k, "n": k, "text": f"x{k}"} for k in range(COUNT)]
    assert rows.seen() == {"all": COUNT, "odd": COUNT // 2, "sum": COUNT * (COUNT - 1) // 2}
    assert not computed


@pytest.mark.parametrize(("where", "left"), [("n >= 0", COUNT), ("n % 2 = 1", COUNT // 2), ("n < 0", 0), ("nullif(n, 3) > 5", COUNT - 6)])
def test_what_is_picked_is_written_and_all_is_counted(where: str, left: int, computed: list[str]) -> None:
    rows = counted(shuffled())
    found = read(taken(PickedRelation(f"SELECT text, k FROM rows_ WHERE {where}", {"rows_": rows}, ("text", "k"), where), ["k"]))
    assert len(found) == left
    assert found == sorted(found, key=lambda row: int(str(row["k"])))
    assert all(list(row) == ["text", "k"] for row in found)
    assert rows.seen()["all"] == COUNT
    assert not computed


def test_rows_that_are_taken_twice_are_counted_once() -> None:
    rows = counted(shuffled(10))
    assert read(taken(rows, ["k"])) == read(taken(rows, ["k"]))
    assert rows.seen()["all"] == 10


def test_no_rows_count_as_zero(computed: list[str]) -> None:
    rows = counted(shuffled(0))
    assert not read(taken(rows, ["k"]))
    assert rows.seen() == {"all": 0, "odd": 0, "sum": 0}
    assert not computed


def test_few_rows_that_are_fetched_are_counted(computed: list[str]) -> None:
    rows = counted(shuffled(10))
    assert rows.here().num_rows == 10
    assert rows.seen() == {"all": 10, "odd": 5, "sum": 45}
    assert not computed


def test_rows_that_others_use_are_computed_once_for_all_of_them(computed: list[str]) -> None:
    rows = counted(shuffled(10))
    above = DeferredRelation("SELECT k + 1 AS k FROM rows_ WHERE n > 3", {"rows_": rows})
    assert above.columns == ["k"]
    assert above.schema == pa.schema([("k", pa.int64())])
    assert not computed  # to describe them is not to compute them
    assert [row["k"] for row in read(taken(above, ["k"]))] == [5, 6, 7, 8, 9, 10]
    assert rows.seen() == {"all": 10, "odd": 5, "sum": 45}
    assert above.here().num_rows == 6
    assert computed == [rows.statement]


def test_a_value_that_cannot_be_computed_is_left_to_spark() -> None:
    rows = DeferredRelation(
        "SELECT k, CAST('x' || k AS INTEGER) AS n FROM given",
        {"given": LocalRelation(pa.table({"k": list(range(counted_relation.BATCH_ROWS))}))},
    )
    with pytest.raises(NeedsSpark):
        read(taken(counted(rows), ["k"]))
