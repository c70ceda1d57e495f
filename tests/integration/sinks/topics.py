"""Reading a topic as any consumer would, and what must hold of what was read."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from rejoin.sinks.kafka.records import EVENT, OP, RUN


@dataclass(frozen=True)
class Read:
    """One record."""

    partition: int
    key: bytes
    value: bytes | None
    run: int
    event: str
    op: str

    @property
    def id(self) -> int:
        return int(json.loads(self.key)["id"])


def read(address: str, topic: str, isolation: str = "read_committed") -> list[Read]:
    """All records of a topic, partition by partition, each in order."""
    settings = {"bootstrap.servers": address, "group.id": "test", "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    found: list[Read] = []
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        for number in partitions:
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(20)
                assert message is not None, f"no answer from {topic}/{number}"
                if message.error() is None:
                    headers = {name: value.decode() for name, value in message.headers() or []}
                    found.append(Read(number, message.key(), message.value(), int(headers[RUN]), headers[EVENT], headers[OP]))
                    continue
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                break
    finally:
        consumer.close()
    return found


def folded(records: Sequence[Read]) -> dict[int, dict[str, Any]]:
    """The table that a consumer ends with."""
    state: dict[int, dict[str, Any]] = {}
    for record in records:
        if record.value is None:
            state.pop(record.id, None)
        else:
            state[record.id] = json.loads(record.value)["after"]
    return state


def check_once_and_in_order(records: Sequence[Read]) -> None:
    """Every event once; a key on one partition, its runs ascending, every change made to the row before it."""
    twice = [event for event, times in Counter(r.event for r in records).items() if times > 1]
    assert not twice, f"delivered more than once: {twice[:3]}"
    places = {(r.id, r.partition) for r in records}
    assert len(places) == len({key for key, _ in places}), "a key on two partitions"
    state: dict[int, Any] = {}
    runs: dict[int, int] = {}
    for record in records:
        assert record.run > runs.get(record.id, 0), f"key {record.id}: run {record.run} after run {runs[record.id]}"
        runs[record.id] = record.run
        value = None if record.value is None else json.loads(record.value)
        if value is not None and record.op != "r":
            assert value["before"] == state.get(record.id), f"key {record.id}, run {record.run}: the change before is missing"
        state[record.id] = None if value is None else value["after"]
