"""What a topic holds now: which topic it is, and from where to where each partition has records that are committed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]  # their own pages import them so

from rejoin.errors import PartitionsAdded, RejoinError, SourceDown, SourceOverrun, TopicReplaced
from rejoin.plan.topic_path import TopicPath
from rejoin.sources.transports.kafka.client import SECONDS, Clients

ACCEPT = "`rejoin accept FILE TABLE` says what is lost, and lets the table go on"
"""What helps where a topic does not go on: somebody decides."""


@dataclass(frozen=True)
class Held:
    """What a topic holds.

    Attributes:
        cluster, topic: ids that tell them from others of the same name.
        earliest: partition -> the first offset that is there.
        ends: partition -> the offset behind the last record that readers of committed records see.
        written: partition -> the offset behind the last record, which a transaction may not have committed.
    """

    cluster: str
    topic: str
    earliest: Mapping[int, int]
    ends: Mapping[int, int]
    written: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """Where a source stands after a run.

    Attributes:
        path: of the source.
        cluster, topic: as of ``Held``.
        next: partition -> the first offset that was not read.
        cut_at: when the topic was last looked at and read to its end, in seconds since the epoch; the first time, when it was looked at.
        tombstones: for how many seconds it keeps tombstones, if it is compacted.
        torn: partition -> up to which offset a snapshot may lack rows, since records before were lost.
    """

    path: str
    cluster: str
    topic: str
    next: Mapping[int, int]
    cut_at: int
    tombstones: int | None = None
    torn: Mapping[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        by_partition = {name: {str(p): offset for p, offset in getattr(self, name).items()} for name in _OFFSETS}
        return {**vars(self), **by_partition}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Mark":
        """The reverse."""
        by_partition = {name: {int(p): offset for p, offset in data.get(name, {}).items()} for name in _OFFSETS}
        return Mark(**{**data, **by_partition})


_OFFSETS = ("next", "torn")


def held(clients: Clients, path: TopicPath) -> Held:
    """What a topic holds now.

    Raises:
        SourceMissing, SourceDenied, SourceDown: it is not told.
    """
    admin, doing = clients.admin(), "looking at"
    described = clients.answer(admin, admin.describe_topics(TopicCollection([path.topic]), request_timeout=SECONDS), doing)[path.topic]
    partitions = [TopicPartition(path.topic, partition.id) for partition in described.partitions]
    cluster = {"": admin.describe_cluster(request_timeout=SECONDS)}
    offsets = [{p.partition: offset for p, offset in of.items()} for of in bounds(clients, admin, partitions)]
    id_ = described.topic_id
    topic = f"{id_.get_most_significant_bits()}:{id_.get_least_significant_bits()}"
    return Held(clients.answer(admin, cluster, doing)[""].cluster_id, topic, *offsets)


def bounds(clients: Clients, admin: AdminClient, partitions: Sequence[TopicPartition]) -> list[dict[TopicPartition, int]]:
    """``earliest``, ``ends`` and ``written`` (``Held``) of partitions, which may be of several topics. Raises as ``held``."""
    committed, latest = IsolationLevel.READ_COMMITTED, OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = ((OffsetSpec.earliest(), committed), (latest, committed), (latest, IsolationLevel.READ_UNCOMMITTED))  # type: ignore[no-untyped-call]
    asked = [admin.list_offsets(dict.fromkeys(partitions, of), isolation_level=level, request_timeout=SECONDS) for of, level in wanted]
    return [{p: found.offset for p, found in clients.answer(admin, a, "looking at").items()} for a in asked]


def shared(waiting: Mapping[int, int], most: int | None) -> dict[int, int]:
    """How many of the records that wait in each partition are read, ``most`` in all: as many of each, and what one has less is for the others."""
    if most is None:
        return dict(waiting)
    found = dict[int, int]()
    for number, p in enumerate(sorted(waiting, key=lambda p: waiting[p])):
        found[p] = min(waiting[p], (most - sum(found.values())) // (len(waiting) - number))
    return found


def starts(path: TopicPath, last: Mark | None, now: Held, *, by_arrival: bool) -> dict[int, int]:
    """Where each partition is to be read from.

    A partition that was added is read from its beginning, if the positions of changes in the log of their database say which of two of a row is
    newer: then it does not matter that a row may have moved to it.

    Args:
        path: the topic.
        last: where the last run ended; None: nothing was read.
        now: what it holds.
        by_arrival: nothing but the order of a partition says which of two changes of a row is newer.

    Raises:
        PartitionsAdded: there are more, and the order is theirs.
        SourceOverrun: records that were not read are gone.
        TopicReplaced: it is another topic.
    """
    if last is None:
        return dict(now.earliest)
    if (last.cluster, last.topic) != (now.cluster, now.topic):
        raise _replaced(path, "another topic of that name" if last.cluster == now.cluster else "in another cluster")
    added = sorted(now.earliest.keys() - last.next.keys())
    if added and by_arrival:
        raise PartitionsAdded(
            f"topic {path} has {len(now.earliest)} partitions and had {len(last.next)}; nothing was committed",
            expected="as many as before: the changes of a row have no positions, so all of them have to be on one partition",
            next_step=f"let the producer write to a new topic with so many partitions, and declare the table with it; or {ACCEPT}",
        )
    found = {}
    for partition, first in now.earliest.items():
        start, end = last.next.get(partition, first), now.ends[partition]
        if start < first:
            raise overrun(path, partition, start, first)
        if end < start:
            raise _replaced(path, f"cut short (partition {partition} ends at offset {end}, read up to {start})")
        found[partition] = start
    if gone := last.next.keys() - now.earliest.keys():
        raise _replaced(path, f"without partition {min(gone)}, which was read")
    return found


def overrun(path: TopicPath, partition: int, needed: int, earliest: int) -> SourceOverrun:
    """The error of records that are gone."""
    return SourceOverrun(
        f"partition {partition} of topic {path} begins at offset {earliest}, and {needed} is the next to be read: {earliest - needed} offsets are lost"
        "; nothing was committed",
        expected="retention.ms and retention.bytes that hold what no run has read",
        next_step=f"raise the retention of the topic. {ACCEPT}; then let the producer write all rows once more (a new snapshot)",
    )


def tombstones_lost(path: TopicPath, away: int, kept: int) -> SourceOverrun:
    """The error of a compacted topic that was not looked at for longer than it keeps what it says of deleted rows; no offset tells which are lost."""
    return SourceOverrun(
        f"topic {path} is compacted and keeps tombstones for {kept} s, and was last read to its end {away} s ago: deletes may be lost; nothing was committed",
        expected="runs that read it to its end more often than delete.retention.ms",
        next_step=f"raise delete.retention.ms of the topic. {ACCEPT}; then let the producer write all rows once more (a new snapshot)",
    )


def tombstones_kept(clients: Clients, path: TopicPath) -> int | None:
    """For how many seconds a compacted topic keeps tombstones; None of one that is not compacted, and where its settings may not be seen."""
    admin = clients.admin()
    asked = cast("dict[Any, Any]", admin.describe_configs([ConfigResource(ResourceType.TOPIC, path.topic)], request_timeout=SECONDS))
    try:
        [settings] = clients.answer(admin, asked, "looking at the settings of").values()
    except SourceDown:
        raise
    except RejoinError:
        return None
    compacted = "compact" in str(settings["cleanup.policy"].value)
    return int(settings["delete.retention.ms"].value) // 1000 if compacted else None


def _replaced(path: TopicPath, how: str) -> TopicReplaced:
    return TopicReplaced(
        f"topic {path} is {how}; nothing was committed",
        expected="the topic that the last run has read, or one that goes on with the same records at the same offsets",
        next_step=f"if it is to be read from its beginning: {ACCEPT}",
    )
