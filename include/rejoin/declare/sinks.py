"""What a user writes in ``.to(...)``: sinks. Everything here only records; ``plan.check.compile`` checks."""

from rejoin.declare.declarations import SinkDeclaration, here


def kafka(
    topic: str,
    *,
    name: str = "kafka",
    value: str = "envelope",
    format: str = "json",  # noqa: A002 -- the word for it
    key: str = "object",
    guarantee: str = "exactly_once",
    catch_up: str = "every",
    start: str = "snapshot",
    batch: int = 10_000,
    partitions: int | None = None,
    partitioner: str = "murmur2",
    interceptors: list[str] | None = None,
    producer: dict[str, object] | None = None,
) -> SinkDeclaration:
    """One record a changed key on a topic; a delete is a tombstone. Addresses and secrets come from the lake's configuration.

    Args:
        topic: the topic.
        name: the sink's name, which is also that of its section in the lake's configuration.
        value: ``"envelope"`` (op, before, after, source), ``"row"`` or ``"key"`` (empty).
        format: ``"json"``, or ``"avro"`` with a schema registry.
        key: ``"object"`` (``{"id": 1}``) or ``"text"`` (``1``).
        guarantee: ``"exactly_once"`` or ``"at_least_once"``.
        catch_up: ``"every"`` run's changes in their order, or the ``"net"`` change of all missed runs.
        start: a new sink gets a ``"snapshot"`` first, or all ``"changes"`` since the first run.
        batch: records a transaction.
        partitions: makes a topic that does not exist, with so many.
        partitioner: ``"murmur2"`` as Java, or ``"module:function"``.
        interceptors: ``"module:name"`` of callables; each makes an object with ``on_send`` and ``on_acknowledgement``.
        producer: settings under Kafka's names, such as ``{"linger.ms": 20, "compression.type": "zstd"}``.
    """
    what = (("topic", topic), ("name", name), ("value", value), ("format", format), ("key", key), ("guarantee", guarantee))
    when = (("catch_up", catch_up), ("start", start), ("batch", batch), ("partitions", partitions), ("partitioner", partitioner))
    hooks = (("interceptors", interceptors or ()), ("producer", producer or {}))
    return SinkDeclaration("kafka", (*what, *when, *hooks), here())


def opensearch(index: str, *, name: str = "opensearch", catch_up: str = "every", start: str = "snapshot") -> SinkDeclaration:
    """The output's rows as documents of an index of OpenSearch or Elasticsearch. Addresses and secrets come from the lake's configuration.

    Args:
        index: the index, or an alias of one; made with a mapping of the output's types if there is none.
        name: the sink's name, which is also that of its section in the lake's configuration.
        catch_up: ``"every"`` run's changes in their order, or the ``"net"`` change of all missed runs.
        start: a new sink gets a ``"snapshot"`` first, or all ``"changes"`` since the first run.
    """
    options = (("index", index), ("name", name), ("catch_up", catch_up), ("start", start))
    return SinkDeclaration("opensearch", options, here())


def postgres(table: str, *, name: str = "postgres", catch_up: str = "every", start: str = "snapshot", retries: int = 5) -> SinkDeclaration:
    """The output's rows in a table of PostgreSQL, kept equal run by run. Addresses and secrets come from the lake's configuration.

    Args:
        table: ``"schema.table"``; made if there is none.
        name: the sink's name, which is also that of its section in the lake's configuration.
        catch_up: ``"every"`` run in its own transaction, or the ``"net"`` change of all missed runs in one.
        start: a new sink gets a ``"snapshot"`` first, or all ``"changes"`` since the first run.
        retries: how often a transaction is repeated that met a deadlock or a serialization failure.
    """
    options = (("table", table), ("name", name), ("catch_up", catch_up), ("start", start), ("retries", retries))
    return SinkDeclaration("postgres", options, here())
