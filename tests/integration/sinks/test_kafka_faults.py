"""A broker that is down, stopped, slow, full, or refuses: a coded error each, nothing lost, other sinks unaffected (P1, P2, P9)."""

import signal

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from integration.made import Lake, plain
from integration.servers import KafkaServer
from targets import Hook, rows_of
from topics import check_once_and_in_order, folded, read

from rejoin.errors import (
    SetupError,
    SinkBufferFull,
    SinkCursorAhead,
    SinkCursorLost,
    SinkDown,
    SinkMessageTooLarge,
    SinksBehind,
    SinkSlow,
    SinkTargetMissing,
)
from rejoin.lake.ledger.deliveries import Deliveries
from rejoin.steps.deliver.catch_up import Restart
from rejoin.steps.deliver.step import deliver_all, oldest_needed

pytestmark = [pytest.mark.usefixtures("address"), pytest.mark.kafka, pytest.mark.slow]

QUICK = '{"max.block.ms": 1500, "delivery.timeout.ms": 1500, "request.timeout.ms": 1000, "transaction.timeout.ms": 10000}'
"""Gives up soon, where a broker does not answer. One that has come back is given the usual time: it may be slow at first."""


def check(lake: Lake, broker: KafkaServer, topic: str) -> None:
    records = read(broker.address, topic)
    check_once_and_in_order(records)
    assert folded(records) == plain(lake.rows())


def test_a_broker_that_is_down_holds_up_neither_the_other_sink_nor_later_runs(
    lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("database")
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    lake.declare(f'kafka("{topic}", partitions=3, batch=9, producer={QUICK}), postgres("{topic}.people")')
    deliver_all(lake.topology())
    broker.stop()
    try:
        for behind in (1, 2):
            run = lake.run(lake.some(15))
            with pytest.raises(SinksBehind, match="1 of 2 sinks") as raised:
                deliver_all(lake.topology())
            assert "people.kafka: SINK_DOWN" in str(raised.value)
            assert rows_of(database, f"{topic}.people") == lake.rows(), "the other sink has everything"
            assert oldest_needed(lake.topology()) == run - behind + 1, "what the broker has not got is still needed"
    finally:
        broker.start()
    lake.declare(f'kafka("{topic}", partitions=3, batch=9), postgres("{topic}.people")')
    deliver_all(lake.topology())
    check(lake, broker, topic)
    assert oldest_needed(lake.topology()) is None
    last = Deliveries(lake.topology().ledger).last("people.kafka")
    assert last is not None and last.failed is None and last.detail["record-send-total"] == last.records


@pytest.mark.parametrize("where", [pytest.param(":2:first", marks=pytest.mark.nightly), ":2:flushed"])
def test_a_broker_that_dies_within_a_transaction_gets_all_of_it_again(
    lake: Lake, broker: KafkaServer, topic: str, where: str, at: Hook
) -> None:
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=9, producer={QUICK})')
    at(where, lambda: broker.stop(signal.SIGKILL))
    try:
        with pytest.raises((SinkDown, SinkSlow)):
            lake.topology().deliver("people.kafka")
    finally:
        broker.start()
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=9)')
    lake.topology().deliver("people.kafka")
    check(lake, broker, topic)


def test_a_broker_that_answers_too_slowly_is_told_as_slow_and_gets_all_of_it_again(
    lake: Lake, broker: KafkaServer, topic: str, at: Hook
) -> None:
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=9, producer={QUICK})')
    at(":2:begun", lambda: broker.signal(signal.SIGSTOP))
    try:
        with pytest.raises((SinkSlow, SinkDown)) as raised:
            lake.topology().deliver("people.kafka")
    finally:
        broker.signal(signal.SIGCONT)
    assert isinstance(raised.value, SinkSlow)
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=9)')
    lake.topology().deliver("people.kafka")
    check(lake, broker, topic)


def test_a_full_buffer_waits_for_max_block_ms_and_then_says_so(lake: Lake, broker: KafkaServer, topic: str, at: Hook) -> None:
    wide = {key: {**lake.row(key), "name": "x" * 9_000} for key in range(60)}
    lake.run(wide)  # type: ignore[arg-type]
    tight = '"buffer.memory": 100000, "max.request.size": 60000, "delivery.timeout.ms": 20000'
    lake.declare(f'kafka("{topic}", partitions=3, batch=100, producer={{"max.block.ms": 1500, {tight}}})')
    at(":2:begun", lambda: broker.signal(signal.SIGSTOP))
    try:
        with pytest.raises(SinkBufferFull, match=r"buffer\.memory.* was full for 1\.5 s"):
            lake.topology().deliver("people.kafka")
    finally:
        broker.signal(signal.SIGCONT)
    lake.declare(f'kafka("{topic}", partitions=3, batch=100, producer={{{tight}}})')
    done = lake.topology().deliver("people.kafka")
    check(lake, broker, topic)
    assert done.detail["buffer-available-bytes"] < 100_000


@pytest.mark.parametrize("limit", ["the producer's", "the topic's"])
def test_a_record_that_is_too_large_stops_the_sink_before_anything_of_its_transaction_and_can_be_cured(
    lake: Lake, broker: KafkaServer, topic: str, limit: str
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    config = {"max.message.bytes": "20000"} if limit == "the topic's" else {}
    admin.create_topics([NewTopic(topic, 3, 1, config=config)])[topic].result(20)
    small = '{"max.request.size": 20000}' if limit == "the producer's" else "{}"
    lake.declare(f'kafka("{topic}", producer={small})')
    lake.topology().deliver("people.kafka")
    before = len(read(broker.address, topic))
    lake.run({1: {**lake.row(1), "name": "x" * 60_000}, 2: lake.row(2)})
    with pytest.raises(SinkMessageTooLarge) as raised:
        lake.topology().deliver("people.kafka")
    assert "xxx" not in str(raised.value)
    assert len(read(broker.address, topic)) == before
    lake.declare(f'kafka("{topic}", value="key", producer={small})')
    lake.topology().deliver("people.kafka")
    assert len(read(broker.address, topic)) == before + 2


def test_a_topic_that_does_not_exist_is_missed_or_made(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}")')
    with pytest.raises(SinkTargetMissing, match=topic):
        lake.topology().deliver("people.kafka")
    lake.declare(f'kafka("{topic}", partitions=5)')
    lake.topology().deliver("people.kafka")
    assert {r.partition for r in read(broker.address, topic)} == set(range(5))


def test_a_sink_without_an_address_says_where_to_write_it(lake: Lake, topic: str) -> None:
    lake.declare(f'kafka("{topic}", name="elsewhere")')
    with pytest.raises(SetupError, match="REJOIN_SINK_ELSEWHERE"):
        lake.topology().deliver("people.elsewhere")


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_that_was_delivered_to(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=3)')
    lake.topology().deliver("people.kafka")
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics([topic])[topic].result(20)
    lake.run(lake.some(5))
    with pytest.raises(SinkCursorLost, match="made anew"):
        lake.topology().deliver("people.kafka")
    lake.topology().deliver("people.kafka", Restart(None))
    check(lake, broker, topic)


def test_a_lost_marker_is_not_taken_for_a_new_sink_and_a_snapshot_puts_the_topic_right(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=3)')
    lake.topology().deliver("people.kafka")
    admin = AdminClient({"bootstrap.servers": broker.address})
    marker = f"rejoin.cursor.{topic}.people.kafka"
    admin.delete_topics([marker])[marker].result(20)
    lake.run(dict.fromkeys(list(lake.state)[:5]) | {99: lake.row(99)})
    with pytest.raises(SinkCursorLost, match="--snapshot"):
        lake.topology().deliver("people.kafka")
    lake.topology().deliver("people.kafka", Restart(None))
    assert folded(read(broker.address, topic)) == plain(lake.rows()), "rows that were deleted meanwhile are gone too"


def test_a_sink_that_is_ahead_of_the_lake_is_refused(
    lake: Lake, broker: KafkaServer, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake.declare(f'kafka("{topic}", partitions=3)')
    lake.topology().deliver("people.kafka")
    older = Lake(tmp_path_factory.mktemp("older"), lake.sinks, name=topic)
    older.declare(f'kafka("{topic}", partitions=3)')
    older.run(older.some(5))
    for restart in (None, Restart(1)):
        with pytest.raises(SinkCursorAhead, match=r"run 3(.|\n)*--snapshot"):
            older.topology().deliver("people.kafka", restart)


def test_changes_are_delivered_again_from_a_run_with_the_same_ids(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", start="changes", partitions=3)')
    lake.topology().deliver("people.kafka")
    first = read(broker.address, topic)
    lake.topology().deliver("people.kafka", Restart(2))
    again = read(broker.address, topic)
    assert sorted(r.event for r in again) == sorted([r.event for r in first] + [r.event for r in first if r.run >= 2])
    assert folded(again) == plain(lake.rows())


def test_a_sink_that_missed_runs_gets_one_change_a_key_if_asked(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", catch_up="net", partitions=3, batch=7)')
    lake.topology().deliver("people.kafka")
    before = len(read(broker.address, topic))
    for _ in range(4):
        lake.run(lake.some(20, keys=25))
    lake.run({1000: lake.row(1000)})
    lake.run({1000: None})
    done = lake.topology().deliver("people.kafka")
    records = read(broker.address, topic)
    check(lake, broker, topic)
    missed = [r.id for r in sorted(records, key=lambda r: r.run) if r.run > 3]
    assert len(missed) == len(set(missed)) == done.records == len(records) - before
    assert [r.value for r in records if r.id == 1000] == [None], "a key that came and went: the topic might have had it"


def test_at_least_once_may_repeat_after_a_crash_but_loses_nothing_and_says_the_same_ids(
    lake: Lake, broker: KafkaServer, topic: str
) -> None:
    from integration.made import deliver

    lake.declare(f'kafka("{topic}", guarantee="at_least_once", start="changes", partitions=3, batch=6)')
    for point in ("1:flushed", "2:committed", "1:first"):
        killed = deliver(lake, "kafka", REJOIN_CRASH=f"deliver.people.kafka:{point}")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    lake.topology().deliver("people.kafka")
    records = read(broker.address, topic)
    assert folded(records) == plain(lake.rows())
    once = list({r.event: r for r in records}.values())
    assert len(once) < len(records), "the crash came after records were sent"
    check_once_and_in_order(once)
