"""kill -9 around and within every transaction, attempts side by side, zombies: a reader of committed records sees every change once (F1, F2, P1, P3)."""

import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from integration.made import Lake, deliver, delivering, plain
from integration.servers import KafkaServer
from targets import Hook
from topics import check_once_and_in_order, folded, read

from rejoin.errors import SinkFenced, SinkSlow
from rejoin.sinks.kafka.producer_metrics import Metrics
from rejoin.sinks.kafka.records import EVENT, OP, RUN

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

ADDRESS = "REJOIN_SINK_KAFKA"


def check(lake: Lake, broker: KafkaServer, topic: str) -> None:
    """What is committed is exactly the output's history, and its fold the output."""
    records = read(broker.address, topic)
    check_once_and_in_order(records)
    assert folded(records) == plain(lake.rows())


@pytest.mark.parametrize("every", [pytest.param(1, id="every one", marks=pytest.mark.nightly), pytest.param(6, id="every sixth")])
def test_after_kills_at_every_point_a_topic_holds_every_change_once(
    lake: Lake, broker: KafkaServer, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=6)')
    trace = tmp_path / "trace"
    done = deliver(lake, "kafka", REJOIN_CRASH_TRACE=str(trace))
    assert done.returncode == 0, done.stderr
    reached = list(dict.fromkeys(trace.read_text().split()))
    points = [p for p in reached if p.split(":")[1] in ("fenced", "taken_over", "moving", "1", "2", "3")]
    assert len(points) >= 20, points
    for point in points[::every]:  # crash upon crash: each attempt goes on from what the one before had committed
        lake.run(lake.some(20))
        killed = deliver(lake, "kafka", REJOIN_CRASH=point)
        assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
    again = deliver(lake, "kafka")
    assert again.returncode == 0, again.stderr
    check(lake, broker, topic)
    uncommitted = len(read(broker.address, topic, "read_uncommitted"))
    print(f"\n{len(points[::every])} kills; records {len(read(broker.address, topic))} committed, {uncommitted} written")
    assert uncommitted > len(read(broker.address, topic)), "no kill fell into a transaction"


def test_fault_look_a_kill_within_an_open_transaction_shows_nothing_of_it_and_holds_readers_up_no_longer_than_its_timeout(
    lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    limits = '{"transaction.timeout.ms": 8000, "delivery.timeout.ms": 8000}'
    lake.declare(f'kafka("{topic}", start="changes", partitions=1, batch=6, producer={limits})')
    assert deliver(lake, "kafka", REJOIN_CRASH="deliver.people.kafka:3:flushed").returncode == -signal.SIGKILL
    counts = [len(read(broker.address, topic, how)) for how in ("read_committed", "read_uncommitted")]
    assert counts == [6, 12], "the third transaction was open, with all of its records at the broker"
    other = Producer({"bootstrap.servers": broker.address})
    other.produce(topic, key=b'{"id":-1}', headers=[(RUN, b"9"), (EVENT, b"of others"), (OP, b"d")])
    assert other.flush(20) == 0
    deadline = time.monotonic() + 40
    while (seen := read(broker.address, topic))[-1].event != "of others":
        assert time.monotonic() < deadline, "what others wrote behind the open transaction stays hidden"
        time.sleep(1)
    assert len(seen) == 7, "nothing of the open transaction is there"
    lake.topology().deliver("people.kafka")
    records = [r for r in read(broker.address, topic) if r.event != "of others"]
    check_once_and_in_order(records)
    assert folded(records) == plain(lake.rows())


@pytest.mark.invariant("I6", "I9")
def test_a_kill_within_the_first_snapshot_continues_it_and_then_follows_the_changes(
    lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    lake.declare(f'kafka("{topic}", partitions=3, batch=4)')
    assert deliver(lake, "kafka", REJOIN_CRASH="deliver.people.kafka:3:flushed").returncode == -signal.SIGKILL
    lake.run(lake.some(15))
    assert deliver(lake, "kafka").returncode == 0
    check(lake, broker, topic)
    assert {r.op for r in read(broker.address, topic)} >= {"r", "u"}


def test_attempts_side_by_side_fence_each_other_off_and_nothing_comes_twice(
    lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=2)')
    codes = set()
    for _ in range(4):
        lake.run(lake.some(20))
        both = [delivering(lake, "kafka") for _ in range(2)]
        done = [p.wait(120) for p in both]
        codes |= {p.returncode for p in done}
        assert all(p.returncode == 0 or "SINK_FENCED" in p.stderr for p in done), "\n".join(p.stderr for p in done)
    assert deliver(lake, "kafka").returncode == 0
    check(lake, broker, topic)
    assert codes == {0, 4}, "the two never met"


@pytest.mark.parametrize("where", ["begun", "first", "marked", "flushed"])
def test_an_attempt_that_a_newer_one_overtakes_commits_nothing(
    lake: Lake, broker: KafkaServer, topic: str, where: str, at: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=6)')
    topology, newer = lake.topology(), []
    at(f":3:{where}", lambda: newer.append(lake.topology().deliver("people.kafka")))
    with pytest.raises(SinkFenced):
        topology.deliver("people.kafka")
    assert newer and newer[0].records > 0, "the newer attempt had something to do"
    check(lake, broker, topic)


def test_why_an_attempt_ended_is_told_though_its_client_came_to_its_own_end_meanwhile(
    lake: Lake, broker: KafkaServer, topic: str, at: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    monkeypatch.setattr(Metrics, "seen", 0)  # the statistics are late
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=6)')

    def overtaken_and_interrupted() -> None:
        lake.topology().deliver("people.kafka")
        time.sleep(1)  # the client sends in a thread of its own; it learns that it is fenced off, and tells it when it is asked
        raise KeyboardInterrupt

    at(":3:first", overtaken_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        lake.topology().deliver("people.kafka")
    check(lake, broker, topic)


def test_a_transaction_that_the_broker_gave_up_is_begun_again(
    lake: Lake, broker: KafkaServer, topic: str, at: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    limits = '{"transaction.timeout.ms": 2000, "delivery.timeout.ms": 2000}'
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=6, producer={limits})')
    fired: list[float] = []
    at(":2:flushed", lambda: (fired.append(1), time.sleep(6)))
    lake.topology().deliver("people.kafka")
    assert fired
    check(lake, broker, topic)


def test_a_transaction_that_the_broker_always_gives_up_is_told_as_slow(
    lake: Lake, broker: KafkaServer, topic: str, at: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, broker.address)
    limits = '{"transaction.timeout.ms": 2000, "delivery.timeout.ms": 2000}'
    lake.declare(f'kafka("{topic}", start="changes", partitions=3, batch=6, producer={limits})')

    def again() -> None:
        at(":2:flushed", again)
        time.sleep(5)

    at(":2:flushed", again)
    with pytest.raises(SinkSlow, match=r"transaction\.timeout\.ms"):
        lake.topology().deliver("people.kafka")
    at(":2:flushed", lambda: None)
    lake.topology().deliver("people.kafka")
    check(lake, broker, topic)
