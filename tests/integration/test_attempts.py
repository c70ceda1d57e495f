"""Two attempts of one stage, zombies, and responses that were made for another row: the end is the same (I2, F2, V14)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from integration.conftest import Go, Sessions
from integration.shop import Shop, check, output
from sqlalchemy import create_engine, text

from rejoin.engines.spark.engine import SparkEngine
from rejoin.errors import RunCommitted, RunSuperseded
from rejoin.lake import table_names
from rejoin.lake.ledger.records import StepRecord
from rejoin.plan.model.steps import Verb, steps
from rejoin.steps.run.attempt import Attempt

pytestmark = [pytest.mark.slow, pytest.mark.by_spark]


def shop_with_a_run(root: Path, go: Go) -> Shop:
    shop = Shop(root)
    shop.next_batch()
    go(shop.topology())
    shop.next_batch()
    return shop


@pytest.mark.invariant("I2")
def test_every_stage_done_by_two_attempts_at_once_ends_like_one(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    shop = shop_with_a_run(tmp_path, go)
    topology = shop.topology()
    spark, run = sessions(topology), topology.open("both")
    topology.cut(run)
    for step in [s for s in steps(run.plan) if s.verb not in (Verb.CUT, Verb.PUBLISH)]:
        attempts = [Attempt(topology.start(run), topology.refs) for _ in range(2)]
        gate = threading.Barrier(2)

        def both(attempt: Attempt, step=step, gate=gate) -> bool:  # type: ignore[no-untyped-def]
            outcome = attempt.execute(SparkEngine(spark), step)
            gate.wait(400)  # not for ever: the other attempt may have failed
            return topology.ledger.register(
                run.number, StepRecord(step.id, outcome.result.counts, 0.0, 0, ending=outcome.result.ending), attempt.id, outcome.writes
            )

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(both, attempts)) == [False, True], step.id
    topology.publish(run)
    check(shop)
    branches = {ref for t in topology.refs.tables() for ref in topology.refs.table(t).refs() if table_names.is_branch_of(ref, run.number)}  # type: ignore[union-attr]
    assert branches == set(), "the loser's branches are dropped with the winner's"


def test_a_zombie_that_ends_after_the_publish_changes_nothing(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    shop = shop_with_a_run(tmp_path, go)
    topology = shop.topology()
    spark, run = sessions(topology), topology.open("owner")
    topology.cut(run)
    spark_steps = [s for s in steps(run.plan) if s.verb not in (Verb.CUT, Verb.PUBLISH)]
    for step in spark_steps[:-2]:
        topology.stage(lambda: spark, run, step)
    zombie = Attempt(topology.start(run), topology.refs)
    outcome = zombie.execute(SparkEngine(spark), spark_steps[-2])  # it wrote its branches of the output, and then was paused
    for step in spark_steps[-2:]:
        topology.stage(lambda: spark, run, step)
    topology.publish(run)
    before = output(topology)
    with pytest.raises(RunSuperseded, match="this attempt changed nothing"):
        topology.ledger.register(run.number, StepRecord("late", outcome.result.counts, 0.0, 0), zombie.id, outcome.writes)
    with pytest.raises(RunCommitted):
        topology.ledger.abandon(run.number, "too late")
    assert output(topology) == before
    check(shop)
    shop.next_batch()
    go(shop.topology())
    check(shop)


@pytest.mark.invariant("I6", "I7")
def test_an_abandoned_run_shows_nothing_and_its_input_is_taken_by_the_next(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    shop = shop_with_a_run(tmp_path, go)
    topology = shop.topology()
    before, spark, run = output(topology), sessions(topology), topology.open("gives up")
    topology.cut(run)
    for step in [s for s in steps(run.plan) if s.verb not in (Verb.CUT, Verb.PUBLISH)]:
        topology.stage(lambda: spark, run, step)
    topology.ledger.abandon(run.number, "test")
    with pytest.raises(RunSuperseded):
        topology.publish(run)
    assert output(topology) == before
    shop.next_batch()
    go(shop.topology())
    check(shop)


def test_a_stale_response_is_dropped_and_counted_and_the_right_row_is_looked_up(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    shop = shop_with_a_run(tmp_path, go)
    topology = shop.topology()
    go(topology)
    spark = sessions(topology)
    table = "enriched__subscriptions__customers"
    # Damage: every subscription pretends to have been made for another version of its left row.
    spark.sql(f"UPDATE lake.shop.{table} SET _hash = unhex('00')")
    damaged = topology.refs.table(table).current_snapshot().snapshot_id  # type: ignore[union-attr]
    with create_engine(topology.config.ledger).begin() as db:
        head = topology.ledger.head()
        db.execute(
            text("UPDATE rejoin_states SET snapshot_id = :s WHERE table_name = :t AND run = :r"), {"s": damaged, "t": table, "r": head}
        )
    for key in shop.customers:
        shop.customers[key] = f"renamed {key}"
    shop.batch += 1
    rows = "".join(f"{k},{v}\n" for k, v in sorted(shop.customers.items()))
    (shop.root / "landing" / "customers" / f"{shop.batch:04}.csv").write_text("id,name\n" + rows)
    run = go(shop.topology())
    counts = topology.ledger.steps(run.number)["resolve.enriched"].counts
    assert counts["stale"] > 0, "the fault did not fire"
    assert counts["stale"] == topology.ledger.steps(run.number)["respond.enriched.customers"].counts["responses"]
    check(shop)
