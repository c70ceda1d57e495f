"""Where a topic that stops every run goes on, once somebody accepts what that loses: decided from its mark and from what it holds now."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rejoin.plan.topic_path import TopicPath
from rejoin.sources.transports.kafka.offsets import Held, Mark


def goes_on(last: Mark, now: Held, at: int) -> Mark:
    """The mark to go on from: what was read of the same topic stays read; another topic, or a partition that ends before what was read, is read from its
    beginning. So by position nothing is applied twice; and by arrival a row ends as its newest record there says.

    Args:
        last: where the last run ended.
        now: what the topic holds.
        at: now, in seconds since the epoch.
    """
    begin = {p: first if _anew(last, now, p) else max(last.next[p], first) for p, first in now.earliest.items()}
    # A snapshot that was lost in part may have rows up to where the topic ends now. Another topic that still has its beginning lacks nothing of its own.
    whole = not _same(last, now) and not any(now.earliest.values())
    return replace(last, cluster=now.cluster, topic=now.topic, next=begin, cut_at=at, torn={} if whole else dict(now.ends))


def said(path: TopicPath, last: Mark, now: Held) -> Iterator[str]:
    """What going on from there means, a sentence each: what is lost, and what is read.

    Args:
        path: the topic.
        last, now: as above.
    """
    begin = goes_on(last, now, 0).next
    if not _same(last, now):
        yield f"topic {path} is another one: what the former one had and no run has read is lost, and {_records(begin, now.ends)} of this one are read from its beginning"
        return
    for p, first in sorted(begin.items()):
        read = last.next.get(p)
        if read is None:
            yield f"partition {p} is new, and read from offset {first}"
        elif first > read:
            yield f"{first - read:,} offsets of partition {p} are lost ({read} to {first - 1}); it goes on at offset {first}"
        elif first < read:
            yield f"partition {p} ends at offset {now.ends[p]} and was read up to {read}: it is read once more, from offset {first}"


def loses(last: Mark, now: Held) -> bool:
    """Whether records that no run has read are gone, as far as offsets tell."""
    return any(p not in now.earliest or _anew(last, now, p) or now.earliest[p] > read for p, read in last.next.items())


def moved(last: Mark, now: Held) -> str:
    """What may be applied in a wrong order where only the order of a partition says which of two changes of a row is newer, and partitions were added."""
    unread = _records({p: at for p, at in last.next.items() if p in now.ends}, now.ends)
    return (
        f"{unread} of the partitions that were there before are still to be read. Those among them that were written before the partitions were added may be "
        "applied after newer changes of their rows, which then stay wrong until their next change"
    )


def _records(begin: Mapping[int, int], ends: Mapping[int, int]) -> str:
    count = sum(max(ends[p] - at, 0) for p, at in begin.items())
    return f"at most {count:,} records"


def _same(last: Mark, now: Held) -> bool:
    return (last.cluster, last.topic) == (now.cluster, now.topic) and not last.next.keys() - now.earliest.keys()


def _anew(last: Mark, now: Held, partition: int) -> bool:
    return not _same(last, now) or partition not in last.next or now.ends[partition] < last.next[partition]
