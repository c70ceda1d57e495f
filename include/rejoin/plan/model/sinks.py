"""Where the changes of an output go, as part of the plan: names, targets and behaviour. Addresses and secrets are never part of a plan."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar


class Guarantee(StrEnum):
    """What a topic holds after crashes and retries."""

    EXACTLY_ONCE = "exactly_once"  # a reader with isolation.level=read_committed sees every change once
    AT_LEAST_ONCE = "at_least_once"  # a change may come again, with the same event id


class CatchUp(StrEnum):
    """What a sink gets that is several runs behind."""

    EVERY = "every"  # the changes of every run, run after run
    NET = "net"  # one change a key for all the runs that it missed


class Start(StrEnum):
    """What a new sink gets first."""

    SNAPSHOT = "snapshot"  # the rows of the newest run, then the changes of later runs
    CHANGES = "changes"  # the changes of every run since the first


class Value(StrEnum):
    """What a record's value holds. A delete has none: it is a tombstone."""

    ENVELOPE = "envelope"  # op, before, after and source, as Debezium writes them
    ROW = "row"  # the row after the change
    KEY = "key"  # nothing but an empty text: the record says that this key changed


class Format(StrEnum):
    """How keys and values are encoded."""

    JSON = "json"
    AVRO = "avro"  # with the schema's id in a registry


class Key(StrEnum):
    """How a key is written in JSON."""

    OBJECT = "object"  # {"order_id": 1}
    TEXT = "text"  # 1; for keys of one column


CURSORS = "rejoin_cursors"
"""The table, in the schema of a target in PostgreSQL, of a row a sink: how far it is. The same as an index, beside a target of OpenSearch."""

REFUSED = "rejoin_refused"
"""The index, beside a target of OpenSearch, of the documents that it refuses."""

MURMUR2 = "murmur2"
"""The partitioner that chooses as Java's default one does."""


class _Target:
    """What a sink delivers to: the value of its field that has the name ``what``."""

    what: ClassVar[str]

    @property
    def target(self) -> str:
        """What it delivers to."""
        return str(getattr(self, self.what))

    @property
    def how(self) -> str:
        """The same, and how, for people."""
        return f"{self.what} {self.target}"


@dataclass(frozen=True)
class KafkaSink(_Target):
    """A topic. ``batch``: at most so many records a transaction. ``partitions``: how many to make it with if there is no such topic.

    ``partitioner``: MURMUR2, or "module:function", called with (key bytes, row, number of partitions).
    ``interceptors``: "module:name" of callables that make an interceptor.
    ``producer``: settings under Kafka's names.
    """

    name: str
    topic: str
    value: Value = Value.ENVELOPE
    format: Format = Format.JSON
    key: Key = Key.OBJECT
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    catch_up: CatchUp = CatchUp.EVERY
    start: Start = Start.SNAPSHOT
    batch: int = 10_000
    partitions: int | None = None
    partitioner: str = MURMUR2
    interceptors: tuple[str, ...] = ()
    producer: tuple[tuple[str, str], ...] = ()
    kind: str = "kafka"
    what = "topic"
    address: ClassVar = "bootstrap.servers"
    package: ClassVar = "confluent_kafka"
    new_column: ClassVar = ""

    @property
    def how(self) -> str:
        return f"{super().how}: {self.value} as {self.format}, {self.guarantee}, {self.batch:,} records a transaction"


@dataclass(frozen=True)
class PostgresSink(_Target):
    """A table, ``schema.table``. ``retries``: so often is a transaction repeated that met a deadlock or a serialization failure."""

    name: str
    table: str
    catch_up: CatchUp = CatchUp.EVERY
    start: Start = Start.SNAPSHOT
    retries: int = 5
    kind: str = "postgres"
    what = "table"
    address: ClassVar = "url"
    package: ClassVar = "psycopg"
    new_column: ClassVar = ": add it to the table first, unless it is there"


@dataclass(frozen=True)
class OpenSearchSink(_Target):
    """An index of OpenSearch or Elasticsearch: a document a row."""

    name: str
    index: str
    catch_up: CatchUp = CatchUp.EVERY
    start: Start = Start.SNAPSHOT
    kind: str = "opensearch"
    what = "index"
    address: ClassVar = "url"
    package: ClassVar = "opensearchpy"
    new_column: ClassVar = ""


Sink = KafkaSink | PostgresSink | OpenSearchSink
"""Each kind says what it delivers to (``what``), which setting says where that is (``address``), which package of Python it needs, and what is to be said where
the output gets a column (``new_column``).
"""
_KINDS: dict[str, type[Sink]] = {"kafka": KafkaSink, "postgres": PostgresSink, "opensearch": OpenSearchSink}

_ENUMS = {"value": Value, "format": Format, "key": Key, "guarantee": Guarantee, "catch_up": CatchUp, "start": Start}


def sink_of(data: dict[str, Any]) -> Sink:
    """A sink from what ``dataclasses.asdict`` and JSON made of it."""
    kind = _KINDS[data["kind"]]
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in _ENUMS:
            found[name] = _ENUMS[name](value)
        elif name == "producer":
            found[name] = tuple((k, v) for k, v in value)
        else:
            found[name] = tuple(value) if isinstance(value, list) else value
    made: Sink = kind(**{f.name: found[f.name] for f in fields(kind) if f.name in found})
    return made


def sink_id(output: str, sink: Sink) -> str:
    """What names a sink in a topology: the target of its step, and of commands."""
    return f"{output}.{sink.name}"
