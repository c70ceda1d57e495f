"""What becomes of rows for which an expression has no value. Here nobody computes: a case says which rows these are."""

from pathlib import Path

import pytest
from attempts import attempt, relation
from statement_tables import check_rows
from stored_tables import StoredTables

from rejoin import Topology, computable, debezium
from rejoin.context import uncomputable_rows
from rejoin.context.uncomputable_rows import UncomputableRows
from rejoin.joins.kind import JoinResults
from rejoin.lake.ledger.records import StepRecord
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Verb
from rejoin.steps.resolve.step import Resolving

ROW = "STRUCT(s INT, o INT, c INT, _hash BLOB)"


def _plan() -> Plan:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT", debezium("orders"))
    customers = made.table("customers", "k", "k INT, name STRING", debezium("customers"))
    out = orders.left_join(customers, foreign_key="c", select=["left.s", "left.o", "12 / left.c AS share", "right.name"], name="out")
    out.expect(computable(), severity="quarantine", max_share=1.0)
    return compile(made)


PLAN = _plan()
OUT = PLAN.node("out")


@pytest.fixture
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UncomputableRows:
    """Of each relation the second row has no value."""
    monkeypatch.setattr(uncomputable_rows, "without_value", lambda *_: {1: ZeroDivisionError()})
    steps = [StepRecord(step, {}, 0.1, 0) for step in ("ingest.orders", "ingest.customers", "subscribe.out", "respond.out.customers")]
    return UncomputableRows(attempt(StoredTables(tmp_path, "shop"), PLAN, *steps), OUT, Verb.RESOLVE)


def test_left_rows_without_a_value_are_none(aside: UncomputableRows) -> None:
    given = relation(f"s INT | o INT | _row {ROW}\n 1 | 1 | {{s: 1, o: 1, c: 7, _hash: h}}\n 1 | 2 | {{s: 1, o: 2, c: 0, _hash: h}}")
    found = aside.lefts(given, ("s", "o"), "_row")
    check_rows(found.here(), "s | o | _row.c\n 1 | 1 | 7\n 1 | 2 | NULL")
    assert list(aside.why) == [(1, 2)]


def test_results_without_a_value_have_no_row(aside: UncomputableRows) -> None:
    state = relation("pk_1 INT | pk_2 INT | c INT\n 1 | 1 | 4\n 1 | 2 | 0\n 1 | 3 | 6")
    engine = aside.work.engine
    made = aside.joined(state, ["pk_1", "pk_2"], lambda rows: engine.query("SELECT pk_1, pk_2, 12 // c AS new FROM rows_", rows_=rows))
    check_rows(made.here(), "pk_1 | pk_2 | new\n 1 | 1 | 3\n 1 | 2 | NULL\n 1 | 3 | 2")


def test_rows_that_cannot_be_computed_are_counted_among_the_candidates(aside: UncomputableRows) -> None:
    resolving = Resolving(aside.work, OUT)
    resolving._sieve, aside.why[1, 2] = aside, "why"
    image = "STRUCT(s INT, o INT, share DOUBLE, name VARCHAR, _hash BLOB)"
    difference = relation(
        f"""
        s INT | o INT | _op | _before {image} | _after {image}                                       | _place BIGINT
        1     | 1     | I   | NULL            | {{s: 1, o: 1, share: 3, name: Ann, _hash: h}}  | NULL
        1     | 2     | N   | NULL            | NULL                                                 | NULL
        1     | 3     | I   | NULL            | {{s: 1, o: 3, share: 2, name: Bob, _hash: h}}  | NULL
        """
    )
    outcome = resolving._write_candidates(difference, JoinResults(difference, None, None, 3))
    assert (outcome.result.uncomputable, outcome.result.inserted) == (1, 2)
