"""Statements over few rows: one query for those that rest on each other, and no statement is computed twice."""

from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from rejoin.engines import deferred_relation, duckdb_engine
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation, NeedsSpark
from rejoin.plan.model.plan import Plan

NUMBERS = LocalRelation(pa.table({"n": pa.array([3, 1, 2], pa.int64())}))


@pytest.fixture
def engine() -> DuckdbEngine:
    return DuckdbEngine(Plan("t", (), ()))


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that DuckDB has computed."""
    found: list[str] = []
    answer = deferred_relation.answer

    def told(connection: object, text: str) -> pa.Table:
        found.append(text)
        return answer(connection, text)  # type: ignore[arg-type]

    monkeypatch.setattr(deferred_relation, "answer", told)
    return found


def test_statements_that_rest_on_each_other_are_one_query(engine: DuckdbEngine, queries: list[str]) -> None:
    large = engine.query("SELECT n FROM found WHERE n > 1", found=NUMBERS)
    doubled = engine.query("SELECT 2 * n AS n FROM found", found=large)  # an input of the same name
    assert not queries
    assert sorted(doubled.here()["n"].to_pylist()) == [4, 6]
    assert len(queries) == 1


def test_what_two_statements_use_is_computed_once(engine: DuckdbEngine, queries: list[str]) -> None:
    large = engine.query("SELECT n FROM found WHERE n > 1", found=NUMBERS)
    both = engine.query("SELECT count(*) AS c FROM a JOIN b USING (n)", a=large, b=engine.query("SELECT n FROM rows", rows=large))
    assert both.here()["c"].to_pylist() == [2]
    assert sum("n > 1" in text for text in queries) == 1
    large.here(), both.here()
    assert len(queries) == 2


def test_rows_that_were_asked_for_are_not_computed_again_by_who_uses_them(engine: DuckdbEngine, queries: list[str]) -> None:
    large = engine.query("SELECT n FROM found WHERE n > 1", found=NUMBERS)
    assert large.columns == ["n"]
    assert engine.one("SELECT sum(n) AS s FROM large", large=large) == {"s": 5}
    assert sum("n > 1" in text for text in queries) == 1


def test_what_is_counted_and_written_is_computed_once(engine: DuckdbEngine, queries: list[str]) -> None:
    rows, counts = engine.counted(engine.query("SELECT n FROM found WHERE n > 1", found=NUMBERS), {"rows": "count(*)"})
    assert (counts(), rows.here().num_rows) == ({"rows": 2}, 2)
    assert sum("n > 1" in text for text in queries) == 1


def test_a_value_that_cannot_be_computed_is_said_when_rows_are_asked_for(engine: DuckdbEngine) -> None:
    wrong = engine.query("SELECT CAST(t AS BIGINT) AS n FROM found", found=LocalRelation(pa.table({"t": ["x"]})))
    with pytest.raises(NeedsSpark, match="cannot be computed"):
        engine.query("SELECT n FROM wrong", wrong=wrong).here()


def test_a_table_that_is_let_go_while_the_database_starts_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    start, asked = deferred_relation._database, list[object]()

    def collecting() -> object:
        if not asked:  # as Python does it, at any allocation: what finalizes a kept table asks for the database
            asked.append(None)
            asked.append(deferred_relation.database())
        return start()

    monkeypatch.setattr(deferred_relation, "_database", collecting)
    thread = Thread(target=deferred_relation.database, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert len(asked) == 2


def test_printed_plans_that_another_step_clears_at_the_same_time_are_printed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cleared(dict[int, Any]):
        def __setitem__(self, key: int, value: Any) -> None:
            super().__setitem__(key, value)
            self.clear()

    monkeypatch.setattr(duckdb_engine, "_PRINTED", Cleared())
    assert duckdb_engine._spoken(Plan("t", (), ())) == {}
