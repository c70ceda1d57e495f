"""Which runs' states an expiry keeps: the newest, young ones, what a sink still has to get, and what those need that took its place meanwhile."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import small_lake
from click.testing import CliRunner
from sqlalchemy import create_engine, text

from rejoin import Topology as Declared
from rejoin import debezium, kafka, snapshot
from rejoin.cli import main
from rejoin.errors import LedgerConflict, RunBusy, RunSuperseded
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.deliveries import Deliveries
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.read.newest_run import TRIES, of_newest
from rejoin.lake.write.exchange import Exchange
from rejoin.operate.expire import expire
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.sinks.position import Content, Position
from rejoin.steps.run.topology import Topology


def with_sink() -> Plan:
    shop = Declared("shop")
    orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"))
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
    enriched = orders.left_join(customers, foreign_key="customer_id", select=["left.id", "note", "right.name AS customer"]).named(
        "enriched"
    )
    enriched.to(kafka("enriched"))
    return compile(shop)


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """Runs 1 and 2 are committed, the third has failed; then two more runs that change the notes of all orders."""
    made = Topology(with_sink(), lake_config(small_lake.make(tmp_path)), str(tmp_path))
    made.ledger.abandon(3, "test")
    for number in (4, 5):
        a_run(made, f"run {number}")
    return made


def a_run(topology: Topology, owner: str) -> int:
    run = topology.ledger.open(owner, topology.plan, small_lake.prints())
    rows = [{"id": i, "note": owner, "_run": run.number} for i in range(1, 7)]
    topology.ledger.register(run.number, StepRecord("all", {}, 0.1, 0), "a", (small_lake.append(topology.refs, "enriched", rows),))
    topology.ledger.publish(run.number)
    return run.number


def there(topology: Topology) -> list[int]:
    """The committed runs whose state can be read."""
    found = []
    for run in sorted(topology.ledger.committed()):
        states = topology.ledger.states(run)
        tables = [topology.refs.table(name) for name in states]
        if all(t is not None and t.snapshot_by_id(s) for t, s in zip(tables, states.values(), strict=True)):
            found.append(run)
    for run in found:
        for name, state in topology.ledger.states(run).items():
            topology.refs.require(name, state).scan(snapshot_id=state).to_arrow()
    return found


@pytest.mark.parametrize(
    ("keep", "ages", "kept"),
    [
        pytest.param(timedelta(0), {}, [5, 6], id="nothing but the newest"),
        pytest.param(timedelta(days=1), {}, [1, 2, 4, 5, 6], id="all are young"),
        pytest.param(timedelta(days=7), {1: 10, 2: 9, 4: 8, 5: 6}, [4, 5, 6], id="the newest seven days ago was the third"),
        pytest.param(timedelta(days=7), {1: 19, 2: 18, 4: 17}, [4, 5, 6], id="an old one was the newest until today"),
        pytest.param(timedelta(days=7), {1: 19, 2: 18, 4: 17, 5: 16}, [5, 6], id="the newest is old, too"),
    ],
)
def test_the_newest_state_and_those_that_were_the_newest_not_long_ago_stay(
    topology: Topology, keep: timedelta, ages: dict[int, int], kept: list[int]
) -> None:
    position = Position.at(5)
    deliveries = Deliveries(topology.ledger)
    deliveries.move(deliveries.begin("enriched.kafka"), position.to_json(), position.needs)
    with create_engine(topology.config.ledger).begin() as db:
        for run, days in ages.items():
            db.execute(text("UPDATE rejoin_runs SET closed_at = closed_at - 86400 * :d WHERE run = :r"), {"d": days, "r": run})
    assert expire(topology, "test", keep) is not None
    assert there(topology) == kept


def test_who_reads_the_newest_run_while_it_is_expired_reads_the_next_one_and_is_told_to_try_again_if_that_is_expired_too(
    topology: Topology,
) -> None:
    read: list[int] = []

    def reader(run: int) -> int:
        read.append(run)
        if len(read) < times:
            a_run(topology, f"beside {len(read)}")
            expire(topology, "test", timedelta(0))
            for name, state in topology.ledger.states(run).items():
                topology.refs.require(name, state)
        return run

    times = TRIES
    assert of_newest(topology.ledger, topology.refs, reader) == read[-1] == topology.ledger.head()
    times, read[:] = 99, []
    with pytest.raises(LedgerConflict, match="was expired"):
        of_newest(topology.ledger, topology.refs, reader)
    assert len(set(read)) == TRIES


def test_what_fails_for_another_reason_is_told_as_it_is(topology: Topology) -> None:
    def broken(_: int) -> None:
        a_run(topology, "beside")
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        of_newest(topology.ledger, topology.refs, broken)


@pytest.mark.parametrize(
    ("position", "kept"),
    [
        pytest.param(Position.at(5), [5, 6], id="it has everything"),
        pytest.param(Position.at(3), [4, 5, 6], id="it has to get the changes of run 4"),
        pytest.param(Position(0, 2, 3, Content.ROWS), [2, 4, 5, 6], id="it is getting the rows of run 2"),
        pytest.param(None, [5, 6], id="it has nothing yet"),
    ],
)
def test_what_a_sink_still_has_to_get_stays(topology: Topology, position: Position | None, kept: list[int]) -> None:
    if position is not None:
        deliveries = Deliveries(topology.ledger)
        deliveries.move(deliveries.begin("enriched.kafka"), position.to_json(), position.needs)
    expire(topology, "test", timedelta(0))
    assert there(topology) == kept


def test_what_a_sink_has_to_get_stays_though_the_newest_run_that_failed_had_a_topology_without_it(topology: Topology) -> None:
    position, deliveries = Position(0, 2, 3, Content.ROWS), Deliveries(topology.ledger)
    deliveries.move(deliveries.begin("enriched.kafka"), position.to_json(), position.needs)
    failed = topology.ledger.open("an edit", small_lake.plan(), small_lake.prints())
    topology.ledger.fail(failed.number, "no source")
    done = CliRunner().invoke(main, ["expire", "--lake", topology.config.location, "--keep-days", "0"])
    assert done.exit_code == 0, done.output
    assert there(topology) == [2, 4, 5, 7]


def test_an_expiry_that_another_process_has_replaced_drops_nothing_more(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    forget, looked = Refs.forget, list[str]()

    def stopped(self: Refs, name: str, kept: set[int], ours: Callable[[], None]) -> object:
        looked.append(name)
        if name == "enriched":  # the first of all
            topology.ledger.fail(6, "its lease ran out")
            for number in (7, 8):
                a_run(topology, f"run {number}")
        return forget(self, name, kept, ours)

    monkeypatch.setattr(Refs, "forget", stopped)
    with pytest.raises(RunSuperseded):
        expire(topology, "test", timedelta(0))
    assert looked == ["enriched"] and there(topology) == [1, 2, 4, 5, 7, 8]


def test_nothing_is_expired_beside_a_run_that_is_alive(topology: Topology) -> None:
    topology.ledger.open("somebody else", topology.plan, small_lake.prints())
    with pytest.raises(RunBusy):
        expire(topology, "test", timedelta(0))
    assert there(topology) == [1, 2, 4, 5]
    assert {r.kind for r in topology.ledger.runs()} == {RunKind.RUN}


def test_what_lost_tasks_have_left_for_others_goes_when_it_is_old(topology: Topology) -> None:
    rows = pa.table({"n": [1, 2]})
    young, old = (Exchange.of(topology.config, "shop") for _ in range(2))
    kept, gone = (Path(one.put(rows.schema, iter(rows.to_batches())).removeprefix("file://")) for one in (young, old))
    os.utime(gone, (0, 0))
    expire(topology, "test", timedelta(days=7))
    assert kept.exists() and not gone.exists()
