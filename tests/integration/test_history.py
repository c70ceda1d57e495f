"""The page's reads of a ledger in PostgreSQL: the same as from SQLite, and never a write."""

import pytest
from servers import postgres
from sqlalchemy import text
from sqlalchemy.exc import InternalError

from rejoin import Topology, snapshot
from rejoin.lake.ledger import history
from rejoin.lake.ledger.history import History, heads, owned
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.plan.check.compile import compile
from rejoin.plan.pin import Part, Pin

pytestmark = pytest.mark.postgres


def test_runs_are_read_from_postgresql_and_nothing_can_be_written() -> None:
    town = Topology("town")
    town.table("persons", key="id", schema="id BIGINT, name STRING", source=snapshot("p")).filter("name <> ''").named("people")
    with postgres() as url:
        assert heads(url) == {}
        ledger = Ledger(url, "town")
        run = ledger.open("airflow:a_b:r", compile(town), {"people": "f"})
        ledger.pin(run.number, {"persons": Pin("snapshot", (Part("p/1.csv", 3, {"sha256": "x"}),), 1).to_dict()})
        ledger.register(run.number, StepRecord("cut", {"files": 1}, 0.1, 0), "x", (Write("people", 2**60),))
        ledger.publish(run.number)
        reads = History(url, "town")
        assert heads(url) == {"town": 1}
        assert (owned(url, "airflow:a_b:", 5), owned(url, "airflow:a%", 5)) == ([("town", 1, "airflow:a_b:r")], [])
        assert [(r.number, [s.record.step for s in r.steps]) for r in reads.runs(5)] == [(1, ["cut"])]
        assert (reads.states(1), reads.writers(reads.states(1))) == ({"people": 2**60}, {"people": 1})
        newest = reads.newest_input("persons")
        assert newest is not None
        assert newest.files == (("p/1.csv", 3),)
        with history.connected(url).connect() as db, pytest.raises(InternalError, match="read-only transaction"):
            db.execute(text("DELETE FROM rejoin_runs"))
        history.connected(url).dispose()
