"""Steps that have nothing to do are registered together; every other step, and every one behind it, is done as ever."""

from pathlib import Path

import pytest
from integration.conftest import Sessions
from integration.texts import Lake

from rejoin.lake.ledger.ledger import Ledger
from rejoin.plan.model.steps import Step
from rejoin.steps.run.topology import Topology

TABLES = """
orders = t.table("orders", key="id", schema="id BIGINT, person BIGINT", source=snapshot("orders"))
people = t.table("people", key="id", schema="id BIGINT, name STRING", source=snapshot("people"))
orders.left_join(people, foreign_key="person", select=["left.*", "right.name AS name"]).named("joined")
t.table("towns", key="id", schema="id BIGINT", source=snapshot("towns")).named("places")
"""
OF_TOWNS = {"ingest.towns", "resolve.places", "validate.places"}


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that are done one by one."""
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    stage, found = Topology.stage, list[str]()

    def seen(self: Topology, spark: object, run: object, step: Step, progress: object) -> object:
        found.append(step.id)
        return stage(self, spark, run, step, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(Topology, "stage", seen)
    return found


@pytest.fixture
def lake(tmp_path: Path, sessions: Sessions, done: list[str]) -> Lake:
    made = Lake(tmp_path, sessions, TABLES)
    for name, rows in {"orders": "id,person\n1,7\n", "people": "id,name\n7,Ann\n", "towns": "id\n5\n"}.items():
        made.land(f"{name}/1.csv", rows)
    made.run()
    done.clear()
    return made


def test_a_run_without_news_does_no_step_by_itself_and_has_them_all(lake: Lake, done: list[str]) -> None:
    counts = lake.run()
    assert not done
    assert counts.keys() == {"cut", "ingest.orders", "ingest.people", "subscribe.joined", "respond.joined.people", "resolve.joined",
                             "validate.joined", *OF_TOWNS, "publish"}  # fmt: skip


def test_what_a_change_reaches_is_done_and_nothing_else(lake: Lake, done: list[str]) -> None:
    lake.land("people/2.csv", "id,name\n7,Bob\n")
    lake.run()
    assert set(done) == {"ingest.people", "respond.joined.people", "resolve.joined", "validate.joined"}
    assert lake.rows("joined")[1]["name"] == "Bob"
    done.clear()
    lake.land("towns/2.csv", "id\n5\n6\n")
    lake.run()
    assert set(done) == OF_TOWNS
    assert lake.rows("places").keys() == {5, 6}


def test_where_another_process_was_first_with_one_each_is_looked_at_by_itself(
    lake: Lake, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "register_idle", lambda *_: False)
    assert lake.run().keys() == {"cut", *done, "publish"}
    assert len(done) == 9
