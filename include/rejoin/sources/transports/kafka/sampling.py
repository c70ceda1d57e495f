"""The topics of a cluster, their settings, and their newest messages: a look that costs the same whatever they hold."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from rejoin.errors import RejoinError, SourceDown
from rejoin.sources.transports.kafka.client import SECONDS, STALLED, Clients
from rejoin.sources.transports.kafka.offsets import bounds
from rejoin.sources.transports.messages import Message

_AT_ONCE, _WAIT = 2_000, 0.1
_AT_LEAST = 10
"""So many messages of a partition are looked at, however many partitions there are."""


@dataclass(frozen=True)
class TopicState:
    """A topic as it stands.

    Attributes:
        earliest: partition -> the first offset that is there.
        ends: partition -> the offset behind the last record that is committed.
        written: partition -> the offset behind the last record.
        settings: as the cluster has them; None: they may not be seen.
    """

    earliest: Mapping[int, int]
    ends: Mapping[int, int]
    written: Mapping[int, int]
    settings: Mapping[str, str] | None

    @property
    def compacted(self) -> bool:
        """Whether only the newest record of a key stays."""
        return self.settings is not None and "compact" in self.settings["cleanup.policy"]

    def milliseconds(self, setting: str) -> int | None:
        """A length of time among the settings; None: for ever, or it may not be seen."""
        found = -1 if self.settings is None else int(self.settings[setting])
        return None if found < 0 else found

    @property
    def retention(self) -> int | None:
        """For how many milliseconds records stay that nothing has taken the place of; None: for ever, or it may not be seen."""
        return self.milliseconds("retention.ms") if self.settings is not None and "delete" in self.settings["cleanup.policy"] else None


def names(clients: Clients) -> list[str]:
    """The topics that this user may see, but for those of the cluster itself.

    Raises:
        SourceDenied, SourceDown: it is not told.
    """
    admin, until = clients.admin(), time.monotonic() + SECONDS
    while True:
        admin.poll(0)
        try:
            found = admin.list_topics(timeout=1)
            return sorted(name for name in found.topics if not name.startswith("__"))
        except KafkaException as error:
            known = clients.coded(error.args[0], "looking for")
            if time.monotonic() > until or not isinstance(known, SourceDown):
                raise known from None


def states(clients: Clients, topics: Collection[str]) -> dict[str, TopicState]:
    """Topics that are there, as they stand.

    Raises:
        SourceMissing, SourceDenied, SourceDown: it is not told.
    """
    if not topics:
        return {}
    admin = clients.admin()
    with_partitions = admin.list_topics(timeout=SECONDS).topics
    places = [TopicPartition(name, number) for name in topics for number in with_partitions[name].partitions]
    earliest, ends, written = map(_by_topic, bounds(clients, admin, places))
    settings = _settings(clients, admin, topics)
    return {name: TopicState(earliest[name], ends[name], written[name], settings.get(name)) for name in topics}


def _by_topic(found: Mapping[TopicPartition, int]) -> dict[str, dict[int, int]]:
    offsets = defaultdict[str, dict[int, int]](dict)
    for place, offset in found.items():
        offsets[place.topic][place.partition] = offset
    return offsets


def _settings(clients: Clients, admin: AdminClient, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """Of the topics whose settings may be seen."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    asked = cast("dict[Any, Any]", admin.describe_configs(resources, request_timeout=SECONDS))
    found = dict[str, dict[str, str]]()
    for resource, answer in asked.items():
        try:
            told = clients.answer(admin, {resource: answer}, "looking at the settings of")[resource]
        except SourceDown:
            raise
        except RejoinError:
            continue
        found[resource.name] = {name: str(entry.value) for name, entry in told.items()}
    return found


def newest(clients: Clients, topics: Mapping[str, TopicState], count: int) -> dict[str, list[Message]]:
    """About so many of the newest committed messages of each topic, in the order of their partitions.

    Raises:
        SourceMissing, SourceDenied, SourceDown: the cluster does not give them.
    """
    ranges = dict[tuple[str, int], range]()
    for name, state in topics.items():
        each = max(_AT_LEAST, count // max(1, len(state.ends)))
        for partition, end in state.ends.items():
            if some := range(max(state.earliest[partition], end - each), end):
                ranges[name, partition] = some
    found = defaultdict[str, dict[int, list[Message]]](lambda: defaultdict(list))
    for message in _read(clients, ranges):
        if message.offset() in ranges[message.topic(), message.partition()]:
            one = Message(message.offset(), message.key(), message.value(), message.headers())
            found[message.topic()][message.partition()].append(one)
    return {name: [message for _, some in sorted(found[name].items()) for message in some] for name in topics}


def _read(clients: Clients, ranges: Mapping[tuple[str, int], range]) -> Iterator[Any]:
    """The messages of ranges, and some behind them."""
    with closing(clients.consumer()) as consumer:
        consumer.assign([TopicPartition(name, partition, some.start) for (name, partition), some in ranges.items()])
        left, until = set(ranges), time.monotonic() + STALLED
        while left:
            some: Sequence[Any] = consumer.consume(_AT_ONCE, _WAIT)
            for message in some:
                place, error = (message.topic(), message.partition()), message.error()
                if error is None:
                    yield message
                    if message.offset() + 1 >= ranges[place].stop:
                        left.discard(place)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- the client's own name
                    left.discard(place)
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # it asks for its group's offsets, which nobody needs
                    raise clients.coded(error, f"reading partition {message.partition()} of")
            if time.monotonic() > until:
                raise clients.coded(KafkaError(KafkaError._TIMED_OUT), "reading")  # noqa: SLF001
