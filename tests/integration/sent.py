"""A topic that a test writes to: messages as a connector sends them, in transactions that are taken back too."""

import itertools
import json
from collections.abc import Iterator, Sequence

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

_NUMBERS = itertools.count(1)
Sent = tuple[int, bytes | None, bytes | None, dict[str, bytes]]
"""Partition, key, value, headers."""


class Topic:
    """A topic of its own.

    Args:
        address: of the broker.
        partitions: how many.
        config: of the topic.
    """

    def __init__(self, address: str, partitions: int = 2, **config: str) -> None:
        self.name, self._address = f"source{next(_NUMBERS)}.orders", address
        self.admin = AdminClient({"bootstrap.servers": address})
        self.make(partitions, config)

    def make(self, partitions: int, config: dict[str, str] | None = None) -> None:
        self.admin.create_topics([NewTopic(self.name, partitions, 1, config=config or {})])[self.name].result(20)
        self._producer = Producer({"bootstrap.servers": self._address})

    def grow(self, partitions: int) -> None:
        """Adds partitions, so that it has so many."""
        self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(20)
        self._producer = Producer({"bootstrap.servers": self._address})

    def drop(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(20)

    def forget(self, partition: int, before: int) -> None:
        """Deletes the records before an offset, as retention does."""
        place = TopicPartition(self.name, partition, before)
        self.admin.delete_records([place])[place].result(20)

    def send(self, messages: Sequence[Sent]) -> list[int]:
        """Sends messages, and gives their offsets."""
        return self._send(self._producer, messages)

    def taken_back(self, messages: Sequence[Sent]) -> None:
        """Sends in a transaction that is taken back."""
        producer = self.transaction()
        self._send(producer, messages)
        producer.abort_transaction(20)

    def transaction(self) -> Producer:
        """A producer with an open transaction."""
        producer = Producer({"bootstrap.servers": self._address, "transactional.id": f"{self.name}.{next(_NUMBERS)}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        return producer

    def _send(self, producer: Producer, messages: Sequence[Sent]) -> list[int]:
        found: list[int] = []
        for partition, key, value, headers in messages:
            told = {"on_delivery": lambda error, message: found.append(-1 if error else message.offset())}
            producer.produce(self.name, key=key, value=value, partition=partition, headers=list(headers.items()), **told)
        assert producer.flush(20) == 0
        assert -1 not in found
        return found


def of_lines(lines: Sequence[str], partitions: int = 2) -> Iterator[Sent]:
    """Lines of a file as the messages that they stand for: those of one key on one partition."""
    for line in lines:
        parts = json.loads(line)
        key, value = (None if parts[name] is None else json.dumps(parts[name]).encode() for name in ("key", "value"))
        yield len(key or b"") % partitions, key, value, {name: text.encode() for name, text in parts["headers"].items()}
