"""What steps come to: kept by the ledger and read again, also where an older rejoin has registered the step."""

import sqlite3
from dataclasses import fields
from pathlib import Path

import pytest

from rejoin import Topology, snapshot
from rejoin.lake.ledger import schema
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord
from rejoin.plan.change.fingerprint import DEFINITION
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import Ending, Ingested, Resolved, Responded, Result, Subscribed, Validated
from rejoin.steps.ingest.fates import Fate

RESULTS = [
    Ingested(read=9, skipped=1, truncates=1, applied=2, noop=1, superseded=1, duplicate=1, stale=1, quarantined=1, changes=2, live=3),
    Subscribed(subscribed=2, unsubscribed=1),
    Responded(responses=4),
    Responded(ending=Ending.DEFERRED),
    Resolved(inserted=1, updated=2, deleted=3, unchanged=4, stale=5),
    Resolved(ending=Ending.PROPOSED, inserted=1, held_before=2, uncomputable=3),
    Resolved(ending=Ending.KEPT, withheld=2**40),
    Validated(inserted=1, held_back=2, released=3),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", "town")


def opened(ledger: Ledger) -> int:
    town = Topology("town")
    town.table("persons", key="id", schema="id BIGINT, name STRING", source=snapshot("p")).filter("name <> ''").named("people")
    return ledger.open("a", compile(town), {"people": "f1"}).number


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: f"{type(r).__name__}-{r.ending}")
def test_a_result_comes_back_from_the_ledger_as_it_was(ledger: Ledger, result: Result) -> None:
    run = opened(ledger)
    ledger.register(run, StepRecord("s", result.counts, 0.1, 1, {"why": "x"}, result.ending), "first", ())
    step = ledger.steps(run)["s"]
    assert type(result).of(step.counts, step.ending) == result


def test_every_fate_of_a_record_is_accounted_for_once() -> None:
    assert {str(f) for f in Fate} <= {f.name for f in fields(Ingested)}
    for name in (*map(str, Fate), "skipped", "truncates"):
        assert Ingested.of({name: 3}).accounted == 3
    assert Ingested(read=3, changes=3, deleted=3, implied=3, live=3).accounted == 0


def test_the_counts_of_changes_hold_their_sum() -> None:
    assert Resolved(inserted=1, updated=2, deleted=3, unchanged=9).counts["changes"] == 6
    assert Validated(inserted=1, held_back=5).counts["changes"] == 1


@pytest.mark.parametrize(
    ("counts", "ending"),
    [
        ('{"changes": 0, "held": 0}', Ending.KEPT),
        ('{"changes": 3, "held_before": 0, "uncomputable": 0}', Ending.PROPOSED),
        ('{"responses": 0, "left_out": 1}', Ending.DEFERRED),
        ('{"changes": 3}', Ending.DONE),
    ],
)
def test_a_run_that_an_older_rejoin_left_open_goes_on_with_what_its_steps_came_to(tmp_path: Path, counts: str, ending: Ending) -> None:
    database = tmp_path / "ledger.db"
    url = f"sqlite:///{database}"
    run = opened(Ledger(url, "town"))
    with sqlite3.connect(database) as db:  # as that version made it: the table has no such column
        db.execute("ALTER TABLE rejoin_steps DROP COLUMN ending")
        db.execute("INSERT INTO rejoin_steps VALUES ('town', ?, 's', 'first', ?, 0.1, 1, 1.0, NULL)", (run, counts))
    schema.connected(url).dispose()
    again = f"sqlite:///{tmp_path}/./ledger.db"  # a pool of its own: what another process would open
    assert Ledger(again, "town").steps(run)["s"].ending is ending


def test_every_field_of_a_node_is_part_of_its_definition_or_known_not_to_be() -> None:
    assert {f.name for f in fields(Node)} - set(DEFINITION) == {"name", "used", "published", "policy", "sinks", "expectations", "null_keys"}
