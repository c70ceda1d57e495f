"""What is computed once is left for others by several tasks, where it is known by which key its rows lie."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from limited import limited
from worker_processes import InTurn

from rejoin.engines.deferred_relation import DeferredRelation
from rejoin.engines.relation import KeySpread, Relation
from rejoin.engines.task_engine import TaskEngine
from rejoin.lake.config import lake_config
from rejoin.lake.write.exchange import Exchange
from rejoin.plan.model.plan import Plan

ROWS = 5_000
NULL = 77
"""A row whose key is null."""
PLAN = Plan("t", (), ())


@pytest.fixture
def tasks() -> InTurn:
    return InTurn()


@pytest.fixture
def engine(tmp_path: Path, tasks: InTurn, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskEngine]:
    limited(monkeypatch, small_rows=0, fewest_range_rows=100)
    exchange = Exchange.of(lake_config(str(tmp_path / "lake")), "t")
    yield TaskEngine(PLAN, tasks, exchange)
    exchange.clear()
    assert not list(tmp_path.rglob("_exchange/**/*.parquet"))


@pytest.fixture
def rows(engine: TaskEngine, tmp_path: Path) -> Relation:
    """``pk`` of many rows, one of them null, and ``fk``, which lies otherwise."""
    path = tmp_path / "rows.parquet"
    duckdb.sql(f"COPY (SELECT nullif(range, {NULL}) AS pk, (range * 7919) % 13 AS fk FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
    return engine.query("SELECT fk, pk FROM of_file", of_file=engine.files(f"SELECT * FROM '{path}'"))


def seen(rows: Relation) -> list[tuple[int, int]]:
    table: pa.Table = rows.here()
    return sorted((row["fk"], -1 if row["pk"] is None else row["pk"]) for row in table.to_pylist())


EXPECTED = sorted(((n * 7919) % 13, -1 if n == NULL else n) for n in range(ROWS))


def apart(engine: TaskEngine, rows: Relation) -> Relation:
    return engine.apart(rows, ["pk"], lambda: KeySpread(rows, ["pk"], ROWS, nulls=True))


def test_rows_are_gathered_by_several_tasks_and_asked_for_by_ranges_of_the_other_key(
    engine: TaskEngine, rows: Relation, tasks: InTurn
) -> None:
    made = engine.gathered(apart(engine, rows), ["fk", "pk"], ROWS)
    assert tasks.asked == [4], "three ranges, and the one of null"
    assert isinstance(made, DeferredRelation) and {within.columns for within in made.ranges} == {("fk", "pk")}
    assert seen(made) == EXPECTED
    found = [row for within in made.ranges for batch in made.ordered(["fk", "pk"], within) for row in batch["fk"].to_pylist()]
    assert len(found) == ROWS and found == sorted(found), "each row is in one range, and they follow each other"


def test_rows_are_kept_by_several_tasks_in_the_order_of_that_key(engine: TaskEngine, rows: Relation, tasks: InTurn, tmp_path: Path) -> None:
    with engine.kept(apart(engine, rows)) as kept:
        assert tasks.asked == [4]
        assert seen(kept) == EXPECTED
        for file in tmp_path.rglob("_exchange/**/*.parquet"):
            pks = [pk for (pk,) in duckdb.sql(f"SELECT pk FROM '{file}'").fetchall()]
            assert pks == sorted(pks) if None not in pks else pks == [None]


def test_rows_of_which_nobody_knows_how_they_lie_are_the_work_of_one_task(engine: TaskEngine, rows: Relation, tasks: InTurn) -> None:
    made = engine.gathered(rows, ["fk", "pk"], ROWS)
    assert tasks.asked == [1]
    assert seen(made) == EXPECTED


def test_what_is_counted_is_counted_once(engine: TaskEngine, rows: Relation) -> None:
    observed, counts = engine.counted(rows, {"rows_": "count(*)", "of_one": "count(*) FILTER (WHERE fk = 1)"})
    made = engine.gathered(apart(engine, observed), ["fk", "pk"], ROWS)
    engine.each_range(made, ["fk", "pk"], _Nothing())
    assert counts() == {"rows_": ROWS, "of_one": sum(fk == 1 for fk, _ in EXPECTED)}


class _Nothing:
    """Work that takes the rows."""

    def __call__(self, batches: Iterator[pa.RecordBatch], writers: int) -> int:
        return sum(batch.num_rows for batch in batches)
