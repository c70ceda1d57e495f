"""The transport of Kafka's topics. A part is a range of offsets of one partition; the mark has the topic's id and where to go on (docs/sources.md)."""

import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice

import pyarrow as pa

from rejoin.errors import PartitionsAdded, SourceMissing, SourceOverrun, TopicReplaced
from rejoin.plan.model.sources import DebeziumSource, Meaning, Snapshots, WithSnapshots
from rejoin.plan.pin import Part, Pin
from rejoin.plan.topic_path import SCHEME, TopicPath, topic_path
from rejoin.sources.shapes import registry
from rejoin.sources.shapes.debezium import columns
from rejoin.sources.transports.kafka.client import Clients
from rejoin.sources.transports.kafka.going_on import goes_on, loses, moved, said
from rejoin.sources.transports.kafka.offsets import Held, Mark, held, overrun, shared, starts, tombstones_kept, tombstones_lost
from rejoin.sources.transports.kafka.open_transactions import told
from rejoin.sources.transports.kafka.reading import RangeReader, spans
from rejoin.sources.transports.kafka.wire_columns import WireColumns
from rejoin.sources.transports.kafka.wire_format import WireFormat
from rejoin.sources.transports.messages import Line, Messages, MessageTransport, Offsets
from rejoin.sources.transports.transport import GoingOn, Taken, Waiting

PART_OFFSETS = 1_000_000
"""A longer range is several parts, for several tasks."""
RECORD_BYTES = 1_024
"""What a record is taken to have before it is read: a change with short rows has less, one with its schema three times as much."""


class KafkaTopic(MessageTransport):
    """Records of a topic that are committed, once each, from the oldest one on."""

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:  # noqa: ARG002 -- offsets say what was taken
        """The ranges from where the last run ended to the last stable offsets, or as much of them as one run reads.

        A pin without parts says nothing but that the topic was looked at, and had nothing new: so much has to be known of a compacted one.
        """
        mark, now, at = self._mark(last), self._held, int(time.time())
        begin = starts(self._path, mark, now, by_arrival=self._by_arrival)
        taken_now = shared({p: now.ends[p] - first for p, first in begin.items()}, self._most)
        to = {p: first + taken_now[p] for p, first in begin.items()}
        left, warnings = sum(now.ends.values()) - sum(to.values()), tuple(told(self._clients, self._path, now))
        parts = tuple(part for p in sorted(begin) for part in _parts(self._path, now.topic, p, range(begin[p], to[p])))
        if not parts and (mark is None or mark.tombstones is None or 2 * (at - mark.cut_at) < mark.tombstones):
            return Waiting(None, warnings=warnings)
        kept = tombstones_kept(self._clients, self._path) if self.table.source.meaning is Meaning.FEED else None
        if parts and mark is not None and kept is not None and at - mark.cut_at > kept:
            raise tombstones_lost(self._path, at - mark.cut_at, kept)
        torn = {} if mark is None else {p: upto for p, upto in mark.torn.items() if upto > to[p] or not parts}
        made = Mark(self.table.source.path, now.cluster, now.topic, to, mark.cut_at if mark and left else at, kept, torn)
        return Waiting(self._pin(last, parts, made, torn=mark is not None and bool(mark.torn)), left=left, warnings=warnings)

    def going_on(self, last: Pin) -> GoingOn | None:
        """Behind what is gone. Records that have no id but their offset cannot be read from the beginning of another topic.

        Raises:
            TopicReplaced: they would have to be.
            SourceMissing, SourceDenied, SourceDown.
        """
        mark = self._mark(last)
        if mark is None:
            return None
        try:
            self.waiting(last, dict)
        except (SourceOverrun, TopicReplaced, PartitionsAdded) as error:
            if isinstance(error, TopicReplaced) and self.table.by_place:
                raise TopicReplaced(error.what, expected=error.expected, next_step="declare the stream under a new name") from None
            after, added = goes_on(mark, self._held, int(time.time())), isinstance(error, PartitionsAdded)
            found = tuple(said(self._path, mark, self._held)) or (error.what,)
            sentences = (*found, moved(mark, self._held)) if added else found
            return GoingOn(self._pin(last, (), after), error.code, sentences, lossy=not added or loses(mark, self._held))
        return None

    def _mark(self, last: Pin | None) -> Mark | None:
        mark = None if last is None or last.transport != SCHEME else Mark.from_dict(last.mark)
        # Of another topic, which somebody has written there, all is new.
        return None if mark is None or mark.path != self.table.source.path else mark

    def _pin(self, last: Pin | None, parts: tuple[Part, ...], mark: Mark, *, torn: bool = False) -> Pin:
        ordinal = (last.ordinal if last else 0) + 1
        return Pin(self.table.source.kind, parts, ordinal, transport=SCHEME, mark=mark.to_dict(), torn=torn)

    @property
    def _most(self) -> int | None:
        """How many offsets one run reads; None: all. Where the end of a snapshot deletes what it did not bring, several partitions are read up to one moment:
        else the end could be read before a row.
        """
        source = self.table.source
        deletes = isinstance(source, WithSnapshots) and source.snapshots is Snapshots.COMPLETE and not self._by_arrival
        return None if deletes and len(self._held.ends) > 1 else self._clients.most

    @property
    def _by_arrival(self) -> bool:
        return self.table.source.meaning is Meaning.FEED and registry.is_by_arrival(self.table)

    def check(self, part: Part) -> None:
        """It is the pinned topic, and the range is there.

        Raises:
            TopicReplaced, SourceOverrun, SourceMissing, SourceDenied, SourceDown.
        """
        now, first, partition = self._held, part.place["from"], part.place["partition"]
        if now.topic != part.place["topic_id"]:
            raise TopicReplaced(
                f"topic {self._path} is another topic of that name than the cut has pinned; nothing was committed",
                next_step="abandon the run and start another",
            )
        if first < (earliest := now.earliest.get(partition, 0)):
            raise overrun(self._path, partition, first, earliest)

    def events_of(self, pin: Pin, parts: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """While a range is decoded, the next one is on its way: else a new consumer is waited for at the beginning of each. What waits in memory is bounded by
        ``queued.max.messages.kbytes`` of both.
        """
        begun = (self._reader(pin.parts[index]) for index in parts)
        try:
            self._ahead.extend(islice(begun, 1))
            for index in parts:
                self._ahead.extend(islice(begun, 1))
                yield from self.events(pin, index)
        finally:
            for reader in self._ahead:
                reader.close()

    def messages(self, part: Part, wanted: Collection[int] | None = None) -> Iterator[Messages]:
        """Reads a range, or the wanted ones in it; one that compaction has dropped is not there."""
        found = self._as_written(part, wanted)
        if self._avro is not None:
            document = self._avro.document
            found = (some._replace(keys=[*map(document, some.keys)], values=[*map(document, some.values)]) for some in found)
        if wanted is None:
            return found
        return (Messages.of(message for message in some.each() if message.offset in wanted) for some in found)

    def _as_written(self, part: Part, wanted: Collection[int] | None = None) -> Iterator[Messages]:
        """The same with Avro as it is; some more with those that are wanted."""
        place = part.place
        reader = self._ahead.popleft() if self._ahead else self._reader(part)
        return reader.read(spans(place["from"], place["to"], wanted))

    def _reader(self, part: Part) -> RangeReader:
        return RangeReader(self._clients, self._path, part.place["partition"], part.place["from"])

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """The messages of a part as events; those in Avro by columns."""
        source = self.table.source
        if self._avro is None or not isinstance(source, DebeziumSource) or source.topic not in (None, self._path.topic):
            yield from super().events(pin, index)
            return
        part, offsets = pin.parts[index], Offsets()
        messages = (message for some in self._as_written(part) for message in offsets.noted(some).each())
        reader = columns.Columns(self.table, part.id, index)
        for chunk in WireColumns(self._avro, Line(self._path.topic)).chunks(messages):
            for batch in reader.events(chunk):
                yield offsets.of_lines(batch)

    def topic(self, part: Part) -> str:  # noqa: ARG002 -- all parts are of one
        """The topic."""
        return self._path.topic

    @cached_property
    def _path(self) -> TopicPath:
        found = topic_path(self.table.source.path)
        if found is None:
            raise SourceMissing(f"source path {self.table.source.path!r} names no topic", expected="kafka://<connection>/<topic>")
        return found

    @cached_property
    def _clients(self) -> Clients:
        return Clients(self.access, self._path)

    @cached_property
    def _avro(self) -> WireFormat | None:
        """Reads keys and values with schemas; of dialects only Debezium's rows come in such."""
        registry_ = self._clients.registry
        return None if registry_ is None or not registry.reads_messages(self.table) else WireFormat(registry_)

    @cached_property
    def _ahead(self) -> deque[RangeReader]:
        """Those that fetch already, in the order in which they will be read."""
        return deque()

    @cached_property
    def _held(self) -> Held:
        return held(self._clients, self._path)


def _parts(path: TopicPath, topic_id: str, partition: int, offsets: range) -> Iterator[Part]:
    """What is read of a partition."""
    for first in offsets[::PART_OFFSETS]:
        to = min(first + PART_OFFSETS, offsets.stop)
        place = {"topic_id": topic_id, "partition": partition, "from": first, "to": to}
        yield Part(f"{path}/{partition}", (to - first) * RECORD_BYTES, place, to - first)
