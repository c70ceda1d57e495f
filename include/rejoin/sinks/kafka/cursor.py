"""Topics, and the marker that says how far a topic is: one record on a compacted topic of the sink's own, written in the transaction of the data.

Of its own, because a transaction that hangs hides everything behind it on a partition from readers of committed records.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rejoin.errors import SinkDown
from rejoin.sinks.kafka.errors import coded, missing
from rejoin.sinks.kafka.settings import client
from rejoin.sinks.position import Position

_TIMES = 20


def marker_topic(topology: str, sink: str) -> str:
    """The topic of a sink's marker."""
    return f"rejoin.cursor.{topology}.{sink}"


class Topics:
    """The topics of one sink.

    Args:
        sink: its id, for messages.
        connection: the client settings of its cluster.
        seconds: how long to wait for an answer.
    """

    def __init__(self, sink: str, connection: Mapping[str, Any], seconds: float) -> None:
        self._sink, self._connection, self._seconds = sink, dict(connection), seconds
        self._admin = client(AdminClient, connection, sink)

    def ensure(self, topic: str, made_with: int | None) -> tuple[int, str]:
        """How many partitions a topic has, and the id that tells it from an earlier topic of its name. One that does not exist is made.

        Raises:
            SinkTargetMissing: there is none, and none is to be made.
            SinkDown: no answer.
        """
        for _ in range(_TIMES):
            if (found := self.found(topic)) is not None:
                return found
            if made_with is None:
                raise missing(self._sink, topic)
            self._make(NewTopic(topic, made_with, -1))
            time.sleep(0.1)  # brokers learn of a new topic one after the other
        raise SinkDown(f"sink {self._sink!r}: topic {topic!r} was made and is not there", next_step="try again later")

    def found(self, topic: str) -> tuple[int, str] | None:
        """As ``ensure``; None if there is no such topic.

        Raises:
            SinkDown: no answer.
        """
        [asked] = self._admin.describe_topics(TopicCollection([topic]), request_timeout=self._seconds).values()
        try:
            found = asked.result(self._seconds + 5)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise coded(error.args[0], self._sink, topic, "looking at") from None
        return len(found.partitions), f"{found.topic_id.get_most_significant_bits()}:{found.topic_id.get_least_significant_bits()}"

    def ensure_marker(self, topic: str) -> None:
        """Makes the marker's topic if there is none."""
        if self.found(topic) is None:
            self._make(NewTopic(topic, 1, -1, config={"cleanup.policy": "compact"}))

    def marker(self, topic: str) -> Position | None:
        """The newest committed marker. Only after the transactions of older attempts were ended can no newer one appear.

        Raises:
            SinkDown: it could not be read in time.
        """
        settings = {"group.id": "rejoin", "enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True}
        with closing(client(Consumer, {**self._connection, **settings}, self._sink)) as consumer:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            found = self._newest(consumer, topic)
        return None if found is None else Position.from_json(found)

    def _newest(self, consumer: Consumer, topic: str) -> str | None:
        newest = None
        while True:
            message = consumer.poll(self._seconds)
            if message is None:
                raise SinkDown(
                    f"sink {self._sink!r}: reading topic {topic!r} took longer than {self._seconds:.0f} s", next_step="try again later"
                )
            if (error := message.error()) is None:
                value = message.value()
                assert value is not None
                newest = value.decode()
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- the client's own name
                return newest
            else:
                raise coded(error, self._sink, topic, "reading")

    def _make(self, topic: NewTopic) -> None:
        try:
            self._admin.create_topics([topic], request_timeout=self._seconds)[topic.topic].result(self._seconds + 5)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise coded(error.args[0], self._sink, topic.topic, "making") from None
