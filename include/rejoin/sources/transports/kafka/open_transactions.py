"""Transactions that are open for so long that something is wrong with their producer: records behind them wait, and nothing else says so."""

import time
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, TopicPartition

from rejoin.plan.topic_path import TopicPath
from rejoin.sources.transports.kafka.client import Clients
from rejoin.sources.transports.kafka.offsets import Held

LONG = 15 * 60
"""After so many seconds an open transaction is told of. A broker ends one after 15 minutes at most, unless it was told otherwise."""
_SECONDS, _WAIT = 2.0, 0.1


def told(clients: Clients, path: TopicPath, now: Held) -> Iterator[str]:
    """A sentence for each partition that is held by a transaction which has been open for long.

    The last stable offset is that of the first record of the oldest open transaction: so that record says since when.
    """
    held = {p: end for p, end in now.ends.items() if end < now.written[p]}
    for p, since in sorted(_times(clients, path, held).items()) if held else ():
        if (age := int(time.time() - since)) > LONG:
            waiting = now.written[p] - held[p]
            yield f"a transaction that is open for {age // 60} minutes holds partition {p} of topic {path} at offset {held[p]}: {waiting:,} offsets wait"


def _times(clients: Clients, path: TopicPath, at: dict[int, int]) -> dict[int, float]:
    """When the records at these offsets were written, in seconds since the epoch, as far as they come in time."""
    found, until = dict[int, float](), time.monotonic() + _SECONDS
    with closing(clients.consumer(uncommitted=True)) as consumer:
        consumer.assign([TopicPartition(path.topic, p, offset) for p, offset in at.items()])
        while found.keys() != at.keys() and time.monotonic() < until:
            for message in consumer.consume(len(at), _WAIT):
                p, (kind, milliseconds) = message.partition() or 0, message.timestamp()
                if message.error() is None and message.offset() == at[p] and kind != TIMESTAMP_NOT_AVAILABLE:
                    found[p] = milliseconds / 1_000
    return found
