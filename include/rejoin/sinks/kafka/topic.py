"""Delivery to a topic, by Kafka's own protocol for it: records and marker in one transaction, older attempts fenced off by the transactional id."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rejoin import crash
from rejoin.errors import RejoinError, SinkBufferFull, SinkDown, SinkRecordRefused, SinkSlow
from rejoin.plan.model.sinks import MURMUR2, Guarantee, KafkaSink
from rejoin.sinks.kafka import settings, user_hooks
from rejoin.sinks.kafka.cursor import Topics, marker_topic
from rejoin.sinks.kafka.errors import AT_ITS_END, coded, reason
from rejoin.sinks.kafka.producer_metrics import Metrics
from rejoin.sinks.kafka.records import Record, Records
from rejoin.sinks.position import Position
from rejoin.sinks.target import Rows

POLL_SECONDS = 0.05
STATISTICS_SECONDS = 1.0
POLL_EVERY = 5_000
"""Callbacks are served after so many records."""


class KafkaTarget:
    """One topic.

    Args:
        topology: the topology's name.
        name: the sink's id.
        sink: what to deliver, and how.
        connection: where it is.
        records: makes the records.
    """

    def __init__(self, topology: str, name: str, sink: KafkaSink, connection: Mapping[str, str], records: Records) -> None:
        self._name, self._sink, self._records = name, sink, records
        known = settings.stated(sink)
        self._block, self._patience = (int(known[s]) / 1000 for s in ("max.block.ms", "delivery.timeout.ms"))
        self._once = sink.guarantee is Guarantee.EXACTLY_ONCE
        self._metrics, self._failed, self._transactions = Metrics(sink.topic), list[KafkaError](), 0
        self._interceptors = [user_hooks.load(i)() for i in sink.interceptors]
        self._partitioner = None if sink.partitioner == MURMUR2 else user_hooks.load(sink.partitioner)
        self._marker = marker_topic(topology, name)
        self._topics = Topics(name, settings.connecting(connection), self._block)
        listened = any(hasattr(i, "on_acknowledgement") for i in self._interceptors)
        made = settings.of_producer(sink, connection, self._marker, acknowledged=listened)
        self._producer = settings.client(Producer, {**made, "stats_cb": self._metrics.add, "on_delivery": self._delivered}, name)
        self.at_once: int | None = sink.batch
        self.identity = ""
        self._partitions, self._sent = 0, 0

    def take_over(self, known: Position | None) -> Position | None:
        """As ``Target`` says. At least once, the position is the ledger's."""
        self._partitions, self.identity = self._topics.ensure(self._sink.topic, self._sink.partitions)
        if not self._once:
            return known
        self._topics.ensure_marker(self._marker)
        self._calling("opening a transaction on", self._producer.init_transactions, self._block)
        crash.point(f"deliver.{self._name}:fenced")
        return self._topics.marker(self._marker)

    def write(self, rows: Rows, position: Position, *, whole: bool, cleared: Sequence[str] = ()) -> int:  # noqa: ARG002 -- a topic keeps what it has
        """As ``Target`` says: one transaction, or at least once, one wait for all acknowledgements."""
        self._transactions += 1
        try:
            return self._write(rows, position)
        except BaseException:
            self._abort()
            raise

    def summary(self) -> dict[str, Any]:
        """The producer's metrics."""
        self._wait_for_statistics()
        return {"transactions": self._transactions if self._once else 0, **self._metrics.summary()}

    def close(self) -> None:
        """Drops what was not sent."""
        self._producer.purge(in_flight=False)
        del self._producer  # the client ends with it

    def _write(self, rows: Rows, position: Position) -> int:
        count = 0
        if self._once:
            self._calling("writing to", self._producer.begin_transaction)
        self._point("begun")
        for batch in rows():
            for record in self._records.of(batch):
                self._send(record)
                count += 1
                if count == 1:
                    self._point("first")
                if count % POLL_EVERY == 0:
                    self._calling("writing to", self._producer.poll, 0)
        self._point("produced")
        if self._once:
            self._produce(topic=self._marker, key=self._name, value=position.to_json(), partition=0)
            self._point("marked")
        self._flush()
        self._point("flushed")
        if self._once:
            self._commit()
        self._point("committed")
        self._sent += count
        return count

    def _send(self, record: Record) -> None:
        key = record.key
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_send"):
                record = interceptor.on_send(record)
        if record.key != key:
            raise SinkRecordRefused(
                f"sink {self._name!r}: an interceptor changed a record's key", expected="the key stays: it is the row's"
            )
        chosen: dict[str, Any] = {} if self._partitioner is None else {"partition": self._chosen(record)}
        if any(hasattr(i, "on_acknowledgement") for i in self._interceptors):
            chosen["on_delivery"] = partial(self._acknowledged, record)
        self._produce(topic=self._sink.topic, key=key, value=record.value, headers=list(record.headers), **chosen)

    def _chosen(self, record: Record) -> int:
        assert self._partitioner is not None
        number = self._partitioner(record.key, record.row, self._partitions)
        if not isinstance(number, int) or not 0 <= number < self._partitions:
            raise SinkRecordRefused(
                f"sink {self._name!r}: partitioner {self._sink.partitioner!r} gave {number!r}", expected=f"0 to {self._partitions - 1}"
            )
        return number

    def _produce(self, **what: Any) -> None:
        """Hands a record to the client; waits for room up to ``max.block.ms``."""
        deadline: float | None = None
        while True:
            try:
                self._calling("writing to", lambda: self._producer.produce(**what))
                return
            except BufferError:
                now = time.monotonic()
                deadline = now + self._block if deadline is None else deadline
                self._check()
                if now > deadline:
                    raise self._full() from None
                self._calling("writing to", self._producer.poll, POLL_SECONDS)

    def _full(self) -> SinkBufferFull:
        return SinkBufferFull(
            f"sink {self._name!r}: the producer's memory (buffer.memory) was full for {self._block:g} s; nothing of this transaction was committed",
            expected="room for a record within max.block.ms",
            next_step="see whether the broker is slow; raise buffer.memory or max.block.ms; the next delivery goes on from the last commit",
        )

    def _flush(self) -> None:
        """Waits until every record is acknowledged or given up."""
        deadline = time.monotonic() + self._patience + self._block
        while self._calling("writing to", self._producer.flush, POLL_SECONDS * 10):
            self._check()
            if time.monotonic() > deadline:
                raise SinkSlow(
                    f"sink {self._name!r}: records were not acknowledged within delivery.timeout.ms", next_step="try again later"
                )
        self._check()

    def _commit(self) -> None:
        deadline = time.monotonic() + self._patience + self._block
        while True:
            try:
                self._producer.commit_transaction(max(deadline - time.monotonic(), 1.0))
                return
            except KafkaException as error:
                found = error.args[0]
                if not found.retriable() or time.monotonic() > deadline:
                    raise self._coded(found, "committing a transaction on") from None

    def _abort(self) -> None:
        """Gives up what is under way; where that fails too, the next attempt's take-over does it."""
        if self._once:
            with suppress(KafkaException, SystemError):
                self._producer.abort_transaction(min(self._block, 10.0))

    def _calling(self, doing: str, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except KafkaException as error:
            raise self._coded(error.args[0], doing) from None
        except SystemError:  # the client came to its end while it called us back, and mixes up the two
            raise self._ended(doing) from None

    def _ended(self, doing: str) -> RejoinError:
        """Why the client is at its end."""
        if (why := self._why()) is None:
            return SinkDown(f"sink {self._name!r}: the client of topic {self._sink.topic!r} came to its end", next_step="try again")
        return coded(reason(self._failed, why), self._name, self._sink.topic, doing)

    def _why(self) -> KafkaError | None:
        """What the client answers to the end of a transaction, if it is at its own end."""
        try:
            self._producer.abort_transaction(1.0)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            return found
        return None

    def _coded(self, error: KafkaError, doing: str) -> RejoinError:
        found = reason(self._failed, error)
        if self._once and found.code() == AT_ITS_END:
            found = self._why() or found
        return coded(found, self._name, self._sink.topic, doing)

    def _check(self) -> None:
        if self._failed:
            if self._once:
                self._commit()  # cannot succeed, and says why
            raise self._coded(self._failed[0], "writing to")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._metrics.errors += 1
            self._failed.append(error)

    def _acknowledged(self, record: Record, error: KafkaError | None, message: Message) -> None:
        self._delivered(error, message)
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_acknowledgement"):
                interceptor.on_acknowledgement(record, message.partition(), message.offset(), error)

    def _wait_for_statistics(self) -> None:
        """The statistics of the last records come a moment after them. That the client came to its end meanwhile changes nothing of what is committed, and
        must not hide why an attempt failed.
        """
        deadline = time.monotonic() + STATISTICS_SECONDS
        with suppress(KafkaException, SystemError):
            while time.monotonic() < deadline and self._metrics.seen < self._sent:
                self._producer.poll(POLL_SECONDS)

    def _point(self, name: str) -> None:
        crash.point(f"deliver.{self._name}:{self._transactions}:{name}")
