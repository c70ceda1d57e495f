"""What a position says of the target and of what is under way to it: killed half-way, over an edit of the columns and a compaction; made anew."""

import signal

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from integration.made import Lake, deliver, plain, publish
from integration.servers import KafkaServer
from limited import limited
from targets import rows_of
from topics import folded, read

from rejoin.errors import SinkCursorLost, SinkDown, SinksBehind, SinkTargetMissing
from rejoin.lake.ledger.deliveries import Deliveries
from rejoin.operate.compact import compact
from rejoin.steps.deliver.catch_up import Restart
from rejoin.steps.deliver.step import deliver_all

pytestmark = [pytest.mark.usefixtures("address"), pytest.mark.kafka, pytest.mark.slow]


def killed(lake: Lake, point: str, *arguments: str, sink: str = "kafka") -> None:
    """A delivery, or with arguments ``rejoin publish``, that ends by SIGKILL."""
    crash, name = {"REJOIN_CRASH": f"deliver.people.{sink}:{point}"}, f"people.{sink}"
    done = publish(lake, *arguments, sink=name, **crash) if arguments else deliver(lake, sink, **crash)
    assert done.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{done.stderr}"


def drop(broker: KafkaServer, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics([topic])[topic].result(20)


def compacted(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, merged_files=2)
    topology = lake.topology()
    done = compact(topology, lambda: pytest.fail("a fold on the driver needs no session"), "test")
    assert done is not None and "compact.people__changes" in topology.ledger.steps(done.number), "nothing was rewritten"


def test_fault_a13_a_net_catch_up_that_was_killed_half_way_loses_no_change_if_a_column_is_dropped_then(
    lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = f'kafka("{topic}", partitions=2, batch=2, catch_up="net")'
    lake.run({key: lake.row(key) if key < 12 else None for key in range(40)})
    lake.declare(sink)
    lake.topology().deliver("people.kafka")
    lake.run({key: {**lake.state[key], "share": 0.5} for key in range(4)})  # these are no change without the column
    lake.run({key: {**lake.state[key], "name": f"new {key}"} for key in range(4, 12)})
    before = len(read(broker.address, topic))
    killed(lake, "1:committed")
    assert len(read(broker.address, topic)) == before + 2, "the kill came half-way"
    lake.declare(sink, without=("share",))
    lake.run({11: {**lake.state[11], "name": "newer"}})
    compacted(lake, monkeypatch)
    lake.topology().deliver("people.kafka")
    records = read(broker.address, topic)
    assert folded(records) == plain(lake.rows())
    assert len({r.event for r in records}) == len(records), "an event came twice"
    lake.declare(sink)
    lake.run({2: lake.row(2)})
    lake.topology().deliver("people.kafka")
    assert folded(read(broker.address, topic))[2] == plain(lake.rows())[2]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(("--snapshot",), id="a snapshot again"),
        pytest.param(("--from-run", "1"), id="from a run"),
        pytest.param((), id="a first snapshot", marks=pytest.mark.nightly),
    ],
)
def test_fault_a13_other_deliveries_that_were_killed_half_way_go_on_over_a_dropped_column_and_a_compaction(
    lake: Lake, broker: KafkaServer, topic: str, again: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = f'kafka("{topic}", partitions=2, batch=3)'
    lake.declare(sink)
    if again:
        lake.topology().deliver("people.kafka")
    killed(lake, "3:flushed", *again)  # the position and three rows are committed
    killed(lake, "1:committed")
    lake.declare(sink, without=("share", "name"))
    lake.run(lake.some(12))
    compacted(lake, monkeypatch)
    killed(lake, "2:marked")
    lake.topology().deliver("people.kafka")
    found, expected = folded(read(broker.address, topic)), plain(lake.rows())
    assert {key: {c: row[c] for c in lake.columns} for key, row in found.items()} == expected


GONE = -1
"""A key that is delivered, then deleted; the first in any transaction."""


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("kind", "catch_up", "point"),
    [
        pytest.param("exactly_once", "net", "1:committed", marks=pytest.mark.nightly),  # before its rows
        ("exactly_once", "net", "2:committed"),  # amidst them
        ("exactly_once", "every", "2:committed"),
        ("at_least_once", "net", "2:committed"),
        ("postgres", "net", "1:committed"),
        ("postgres", "net", None),  # not killed
    ],
)
def test_fault_look_deliveries_again_from_a_run_take_back_what_was_delivered_and_is_gone(
    lake: Lake, broker: KafkaServer, topic: str, database: str, kind: str, catch_up: str, point: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    table, sink = f"{topic}.people", "postgres" if kind == "postgres" else "kafka"
    to_kafka = f'kafka("{topic}", partitions=2, batch=2, guarantee="{kind}", catch_up="{catch_up}")'
    lake.run({GONE: lake.row(GONE), 2: lake.row(2)})
    lake.declare(f'postgres("{table}", catch_up="{catch_up}")' if sink == "postgres" else to_kafka)
    lake.topology().deliver(f"people.{sink}")
    lake.run({GONE: None})
    if point is None:
        lake.topology().deliver(f"people.{sink}", Restart(1))
    else:
        killed(lake, point, "--from-run", "1", sink=sink)
        lake.run(lake.some(5))
        lake.topology().deliver(f"people.{sink}")
    if sink == "postgres":
        assert rows_of(database, table) == lake.rows()
    else:
        assert folded(read(broker.address, topic)) == plain(lake.rows())


def test_fault_look_at_least_once_takes_back_what_a_killed_net_delivery_has_sent(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, batch=2, guarantee="at_least_once", catch_up="net")')
    lake.topology().deliver("people.kafka")
    lake.run({GONE: lake.row(GONE)})
    lake.run(lake.some(9))
    killed(lake, "1:flushed")
    assert GONE in folded(read(broker.address, topic)), "it was sent, and nothing says so"
    lake.run({GONE: None})
    lake.topology().deliver("people.kafka")
    assert folded(read(broker.address, topic)) == plain(lake.rows())


def test_fault_look_a_guarantee_that_was_another_one_for_a_while_leaves_nothing_behind(lake: Lake, broker: KafkaServer, topic: str) -> None:
    for guarantee, row in (("exactly_once", lake.row(0)), ("at_least_once", lake.row(GONE)), ("exactly_once", None)):
        lake.declare(f'kafka("{topic}", partitions=2, guarantee="{guarantee}", catch_up="net")')
        lake.run({GONE if row is None else int(str(row["id"])): row})
        lake.topology().deliver("people.kafka")
    assert folded(read(broker.address, topic)) == plain(lake.rows())


@pytest.mark.parametrize("catch_up", ["net", "every"])
def test_fault_look_a_delivery_from_a_run_passes_over_nothing_that_was_not_delivered_yet(
    lake: Lake, broker: KafkaServer, topic: str, catch_up: str
) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, batch=2, catch_up="{catch_up}")')
    killed(lake, "3:flushed")  # of a first snapshot
    lake.run(lake.some(9))
    lake.topology().deliver("people.kafka", Restart(3))
    assert folded(read(broker.address, topic)) == plain(lake.rows()), "the rest of the snapshot too"
    for _ in range(3):
        lake.run(lake.some(9))
    lake.topology().deliver("people.kafka", Restart(7))
    assert folded(read(broker.address, topic)) == plain(lake.rows()), "runs 5 and 6 too"


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once"])
def test_fault_a15_a_topic_that_was_made_anew_is_told_also_if_nothing_is_missing_by_the_ledger(
    lake: Lake, broker: KafkaServer, topic: str, guarantee: str
) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, guarantee="{guarantee}")')
    lake.topology().deliver("people.kafka")
    assert lake.topology().deliver("people.kafka").records == 0, "nothing is missing, and the topic is the one that was delivered to"
    drop(broker, topic)
    for _ in range(2):  # by the ledger nothing is missing, then a run is
        for _ in range(2):  # the first attempt makes the topic, and the next one is no wiser
            with pytest.raises(SinkCursorLost, match=r"publish --sink people\.kafka --snapshot"):
                lake.topology().deliver("people.kafka")
            assert read(broker.address, topic) == [], "not only the newest changes"
        lake.run(lake.some(9))
    lake.topology().deliver("people.kafka", Restart(None))
    lake.run(lake.some(9))
    lake.topology().deliver("people.kafka")
    assert folded(read(broker.address, topic)) == plain(lake.rows())


def test_fault_a15_a_topic_that_is_gone_and_is_not_ours_to_make_is_missed(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, guarantee="at_least_once")')
    lake.topology().deliver("people.kafka")
    drop(broker, topic)
    lake.declare(f'kafka("{topic}", guarantee="at_least_once")')
    with pytest.raises(SinkTargetMissing, match=topic):
        lake.topology().deliver("people.kafka")


def test_a_sink_that_cannot_be_looked_at_is_told_though_nothing_is_missing_and_that_is_noted(
    lake: Lake, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, producer={{"max.block.ms": 1500}})')
    lake.topology().deliver("people.kafka")
    monkeypatch.setenv("REJOIN_SINK_KAFKA", "127.0.0.1:1")
    with pytest.raises(SinkDown):
        lake.topology().deliver("people.kafka")
    last = Deliveries(lake.topology().ledger).last("people.kafka")
    assert last is not None and str(last.failed).startswith("SINK_DOWN") and last.upto == 3


CREATED = "id bigint PRIMARY KEY, name text, paid numeric, share double precision, born date, seen timestamptz, photo bytea, active boolean"


@pytest.mark.postgres
@pytest.mark.parametrize("by_hand", [True, False], ids=["made by hand", "gone"])
def test_fault_a15_a_table_that_was_made_anew_is_told_also_if_nothing_is_missing_by_the_ledger(
    lake: Lake, topic: str, database: str, by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    lake.declare(f'postgres("{topic}.people")')
    lake.topology().deliver("people.postgres")
    assert lake.topology().deliver("people.postgres").records == 0
    with psycopg.connect(database) as db:
        db.execute(f"DROP TABLE {topic}.people")
        if by_hand:
            db.execute(f"CREATE TABLE {topic}.people ({CREATED})")
    for _ in range(2):
        with pytest.raises(SinksBehind, match=r"SINK_CURSOR_LOST(.|\n)*publish --sink people\.postgres --snapshot"):
            deliver_all(lake.topology())
        assert rows_of(database, f"{topic}.people") == {}
        lake.run(lake.some(9))
    lake.topology().deliver("people.postgres", Restart(None))
    assert rows_of(database, f"{topic}.people") == lake.rows()


@pytest.mark.postgres
@pytest.mark.parametrize("catch_up", ["every", "net"])
@pytest.mark.parametrize("seen", [True, False], ids=["delivered in between", "not delivered in between"])
def test_fault_a14_a_column_that_comes_back_has_no_old_values_in_a_table(
    lake: Lake, topic: str, database: str, catch_up: str, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    sink, table = f'postgres("{topic}.people", catch_up="{catch_up}")', f"{topic}.people"
    lake.declare(sink)
    lake.topology().deliver("people.postgres")
    assert any(row["share"] is not None for row in rows_of(database, table).values())
    lake.declare(sink, without=("share",))
    lake.run(lake.some(5))
    lake.run(lake.some(5))
    if seen:
        lake.topology().deliver("people.postgres")
        found = rows_of(database, table)
        assert {key: {c: row[c] for c in lake.columns} for key, row in found.items()} == lake.rows()
    lake.declare(sink)
    kept = min(lake.state)
    lake.run({kept: lake.row(kept)})
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()
    assert [key for key, row in lake.rows().items() if row["share"] is not None] == [kept]
    with psycopg.connect(database) as db:
        db.execute(f"UPDATE {table} SET share = 7 WHERE id <> {kept}")
    lake.run({kept: lake.row(kept)})
    lake.topology().deliver("people.postgres")
    assert {row["share"] for key, row in rows_of(database, table).items() if key != kept} == {7}, "emptied once, not with every run"
