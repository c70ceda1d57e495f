"""What a topic, its cluster and its users' rights can do to a reader, with a real broker: the run stops, with a code, and nothing is committed (S5, S6; issue 37, 11)."""

import json
import time
from pathlib import Path

import pytest
from integration.conftest import New, Sessions
from integration.fed_lake import fed, order
from integration.guarded_cluster import guarded
from integration.sent import Topic, of_lines
from integration.texts import Lake

from rejoin.errors import (
    BadRecords,
    PartitionsAdded,
    RejoinError,
    SourceDenied,
    SourceDown,
    SourceMissing,
    SourceOverrun,
    TopicReplaced,
)
from rejoin.sources.transports.kafka import client, offsets
from rejoin.sources.transports.kafka.topic import KafkaTopic

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]


def test_fault_s5_records_that_are_gone_before_they_are_read_stop_the_run(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(i, i) for i in range(1, 11)], 1)])
    shop.run()
    topic.send([*of_lines([order(i, i) for i in range(11, 101)], 1)])
    topic.forget(0, 50)
    told = f"SOURCE_OVERRUN partition 0 of topic kafka://kafka/{topic.name} begins at offset 50, and 10 is the next to be read: 40 offsets are lost"
    with pytest.raises(SourceOverrun, match=told):
        shop.run()
    assert shop.rows("enriched").keys() == set(range(1, 11)), "nothing was committed"


def test_a_range_that_goes_while_it_is_read_stops_the_run(
    tmp_path: Path, sessions: Sessions, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(i, i) for i in range(1, 11)], 1)])
    monkeypatch.setattr(KafkaTopic, "check", lambda self, part: topic.forget(0, 4))  # behind the check
    with pytest.raises(SourceOverrun, match="begins at offset 4, and 0 is the next"):
        shop.run()


def test_fault_s6_a_topic_that_is_made_anew_stops_the_run(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(1, 1)], 1)])
    shop.run()
    topic.drop()
    with pytest.raises(SourceMissing, match="there is no topic"):
        shop.run()
    topic.make(1)
    topic.send([*of_lines([order(i, i) for i in range(2, 20)], 1)])
    with pytest.raises(TopicReplaced, match="another topic of that name"):
        shop.run()


PUBLISHED = 't.table("orders", key="id", schema="id BIGINT, note STRING", source={}).filter("id > 0").named("published")'


def canal(kind: str, *rows: dict[str, str | None]) -> bytes:
    return json.dumps({"database": "s", "table": "o", "type": kind, "isDdl": False, "data": rows, "old": None}).encode()


def test_a_message_of_many_rows_and_partitions_that_are_added_where_they_are_the_order(
    tmp_path: Path, sessions: Sessions, new: New
) -> None:
    topic = new(1)
    shop = Lake(tmp_path, sessions, PUBLISHED.format(f"feed(kafka({topic.name!r}), 'canal', only='s.o')"))
    topic.send([(0, None, canal("INSERT", *({"id": str(i), "note": f"n{i}"} for i in range(1, 4))), {})])
    topic.send([(0, None, canal("UPDATE", {"id": "2", "note": "new"}, {"id": "1", "note": "new"}), {}), (0, None, None, {})])
    topic.send([(0, None, canal("DELETE", {"id": "3", "note": None}), {})])
    assert shop.run()["ingest.orders"]["quarantined"] == 1, "a message without a value is none of Canal's"
    assert {key: row["note"] for key, row in shop.rows("published").items()} == {1: "new", 2: "new"}
    topic.grow(2)
    topic.send([(1, None, canal("INSERT", {"id": "9", "note": "x"}), {})])
    with pytest.raises(PartitionsAdded, match="has 2 partitions and had 1"):
        shop.run()


def test_a_compacted_topic_that_is_looked_at_too_rarely_stops_the_run(
    tmp_path: Path, sessions: Sessions, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new(1, **{"cleanup.policy": "compact", "delete.retention.ms": "600000"})
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(1, 1)], 1)])
    shop.run()
    now = time.time()
    for minutes in (6, 12, 18):  # it is looked at, and has nothing new: the marks of deleted rows that come are all seen
        monkeypatch.setattr(time, "time", lambda at=now + 60 * minutes: at)
        shop.run()
    topic.send([*of_lines([order(2, 2)], 1)])
    shop.run()
    topic.send([*of_lines([order(3, 3)], 1)])
    monkeypatch.setattr(time, "time", lambda: now + 60 * 29)
    with pytest.raises(
        SourceOverrun, match="is compacted and keeps tombstones for 600 s, and was last read to its end 660 s ago: deletes may be lost"
    ):
        shop.run()


DENIED = {
    "another password": ({"sasl.password": "s3cret-wrong"}, SourceDenied, "_AUTHENTICATION"),
    "an unknown certificate": ({"ssl.ca.location": ""}, SourceDenied, "_SSL"),
    "no right to see the topic": ({"sasl.username": "none", "sasl.password": "nothing"}, SourceDenied, "TOPIC_AUTHORIZATION_FAILED"),
    "no right to read it": ({"sasl.username": "looks", "sasl.password": "looking"}, SourceDenied, "TOPIC_AUTHORIZATION_FAILED"),
    "no TLS": ({"security.protocol": "PLAINTEXT"}, SourceDown, "_TIMED_OUT|_TRANSPORT"),
}


def test_a_cluster_with_users_certificates_and_rights(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SECONDS", 3.0)
    monkeypatch.setattr(offsets, "SECONDS", 3.0)
    with guarded(tmp_path) as cluster:
        topic = Topic(cluster.address, 1)
        cluster.let(topic.admin, topic.name, "shop", read=True)
        cluster.let(topic.admin, topic.name, "looks", read=False)
        shop = fed(tmp_path / "shop", sessions, topic)
        for number, settings in enumerate((cluster.with_password, cluster.with_tls), 1):
            topic.send([*of_lines([order(number, number)], 1)])
            monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps(settings))
            shop.run()
        assert shop.rows("enriched").keys() == {1, 2}
        topic.send([*of_lines([order(3, 3)], 1)])
        for changed, kind, name in DENIED.values():
            monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({k: v for k, v in {**cluster.with_tls, **changed}.items() if v}))
            with pytest.raises(RejoinError, match=name) as raised:
                shop.run()
            assert raised.type is kind
            assert "s3cret" not in str(raised.value) and str(cluster.tls_port) not in str(raised.value)
    with pytest.raises(SourceDown, match="nothing was committed"):
        shop.run()


PLAIN = b'{"id":1,"note":"x"}'
OF_ANOTHER = b'{"database":"shop","table":"people","type":"insert","ts":1,"xoffset":0,"position":"b.1:4","data":{"id":1,"note":"x"}}'


@pytest.mark.parametrize(
    ("source", "value", "error"),
    [
        pytest.param("debezium(kafka({!r}))", PLAIN, BadRecords, id="rows where envelopes are declared"),
        pytest.param("changes(kafka({!r}), deleted=\"gone = 'true'\")", PLAIN, BadRecords, id="rows without their mark"),
        pytest.param("feed(kafka({!r}), 'maxwell', only='shop.orders')", OF_ANOTHER, SourceMissing, id="changes of another table"),
    ],
)
def test_a_topic_of_which_nothing_is_read_stops_the_run(
    tmp_path: Path, sessions: Sessions, new: New, source: str, value: bytes, error: type[RejoinError]
) -> None:
    topic = new(1)
    shop = Lake(tmp_path, sessions, PUBLISHED.format(source.format(topic.name)))
    topic.send([(0, b'{"id":1}', value, {})])
    with pytest.raises(error):
        shop.run()
    assert shop.topology.ledger.head() is None, "nothing was committed"
