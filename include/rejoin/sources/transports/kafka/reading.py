"""Ranges of a partition, read again as often as it is asked."""

import time
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from rejoin.errors import RejoinError, SourceDown
from rejoin.plan.topic_path import TopicPath
from rejoin.sources.transports.kafka.client import STALLED, Clients
from rejoin.sources.transports.kafka.offsets import held, overrun
from rejoin.sources.transports.messages import Messages

_AT_ONCE, _WAIT = 2_000, 0.1
_NEAR = 5_000
"""Records so near to each other are read in one go: to pass them takes less than to ask again."""
_AT_END, _OUTSIDE = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 -- the client's own names


def spans(first: int, end: int, wanted: Collection[int] | None) -> Iterator[tuple[int, int]]:
    """The ranges from ``first`` to before ``end`` that hold the wanted offsets; all of it for None."""
    if wanted is None:
        yield first, end
        return
    start = stop = -1
    for offset in sorted(offset for offset in wanted if first <= offset < end):
        if start >= 0 and offset - stop > _NEAR:
            yield start, stop
            start = -1
        start, stop = offset if start < 0 else start, offset + 1
    if start >= 0:
        yield start, stop


class RangeReader:
    """Reads ranges of one partition, once. It fetches as soon as it is made.

    Args:
        clients: of its cluster.
        path: the topic.
        partition: which one.
        first: the offset from which it fetches.
    """

    def __init__(self, clients: Clients, path: TopicPath, partition: int, first: int) -> None:
        self._clients, self._path, self._partition = clients, path, partition
        self._consumer = clients.consumer()
        self._go_to(first)

    def _go_to(self, first: int) -> None:
        self._first = first
        self._consumer.assign([TopicPartition(self._path.topic, self._partition, first)])

    def close(self) -> None:
        """Gives up what was fetched and not read."""
        self._consumer.close()

    def read(self, ranges: Iterator[tuple[int, int]]) -> Iterator[Messages]:
        """The records in some ranges. Offsets have gaps: what was taken back, marks of transactions, what compaction has dropped.

        Raises:
            SourceOverrun: they are gone.
            SourceMissing, SourceDenied, SourceDown: the cluster does not give them.
        """
        with closing(self):
            for first, end in ranges:
                if first != self._first:
                    self._go_to(first)
                yield from self._range(first, end)

    def _range(self, at: int, end: int) -> Iterator[Messages]:
        until = time.monotonic() + STALLED
        while at < end:
            found, reached = self._some(at, end)
            if reached > at:
                at, until = reached, time.monotonic() + STALLED
            elif time.monotonic() > until:
                raise self._clients.coded(KafkaError(KafkaError._TIMED_OUT), self._doing(at))  # noqa: SLF001
            if found:
                yield Messages(
                    [m.offset() for m in found], [m.key() for m in found], [m.value() for m in found], [m.headers() for m in found]
                )

    def _some(self, at: int, end: int) -> tuple[list[Any], int]:
        """The next records before ``end``, and up to where it has been read."""
        # It waits until it has all that are asked for, so not for more than there are.
        some: list[Any] = self._consumer.consume(min(_AT_ONCE, end - at), _WAIT)
        found = [message for message in some if message.error() is None]
        reached_end = False
        for message in some if len(found) < len(some) else ():
            if (error := message.error()) is None:
                continue
            if error.code() == _AT_END:
                reached_end |= message.offset() >= end  # behind the last record are marks of transactions only
            elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # it asks for its group's offsets, which nobody needs
                raise self._failed(error, found[-1].offset() + 1 if found else at)
        if found and found[-1].offset() >= end:
            found, reached_end = [message for message in found if message.offset() < end], True
        return found, end if reached_end else found[-1].offset() + 1 if found else at

    def _failed(self, error: KafkaError, at: int) -> RejoinError:
        if error.code() != _OUTSIDE:
            return self._clients.coded(error, self._doing(at))
        now = held(self._clients, self._path)
        earliest = now.earliest.get(self._partition, 0)
        if at < earliest:
            return overrun(self._path, self._partition, at, earliest)
        return SourceDown(
            f"{self._doing(at)} topic {self._path} failed: the partition ends before; nothing was committed",
            next_step="try again later: a broker that has just taken the partition over may not have all of it yet",
        )

    def _doing(self, at: int) -> str:
        return f"reading offset {at} of partition {self._partition} of"
