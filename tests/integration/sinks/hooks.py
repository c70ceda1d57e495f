"""A partitioner and an interceptor of a user's own, as a topology names them."""

from dataclasses import replace

from confluent_kafka import KafkaError

from rejoin.sinks.kafka.records import Record

ACKNOWLEDGED: list[tuple[bytes, int, object]] = []


def all_on_the_last(key: bytes, row: object, partitions: int) -> int:
    return partitions - 1


def none_there_is(key: bytes, row: object, partitions: int) -> int:
    return partitions


class Marking:
    """Adds a header, and keeps what was acknowledged."""

    def on_send(self, record: Record) -> Record:
        return replace(record, headers=(*record.headers, ("mark", b"1")))

    def on_acknowledgement(self, record: Record, partition: int, offset: int, error: KafkaError | None) -> None:
        ACKNOWLEDGED.append((record.key, partition, error))


class OtherKey:
    def on_send(self, record: Record) -> Record:
        return replace(record, key=b"another")
