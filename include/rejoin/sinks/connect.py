"""From a plan's sink to one that is connected."""

from collections.abc import Mapping

import pyarrow as pa

from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import Format, KafkaSink, OpenSearchSink, Sink, sink_id
from rejoin.sinks import config
from rejoin.sinks.target import Target


def identity(node: Node, sink: Sink, stated: Mapping[str, Mapping[str, str]]) -> str | None:
    """What tells a sink's target from an earlier one of its name, without taking it over; None if there is none.

    Raises:
        SetupError: nothing says where the sink is.
        SinkDown, SinkDenied: it cannot be reached.
    """
    where, name = config.connection(stated, sink), sink_id(node.name, sink)
    if isinstance(sink, KafkaSink):
        from rejoin.sinks.kafka import settings
        from rejoin.sinks.kafka.cursor import Topics

        found = Topics(name, settings.connecting(where), int(settings.stated(sink)["max.block.ms"]) / 1000).found(sink.topic)
        return None if found is None else found[1]
    if isinstance(sink, OpenSearchSink):
        from rejoin.sinks.opensearch import index

        return index.identity(name, sink, where)
    from rejoin.sinks.postgres import table

    return table.identity(name, sink, where[sink.address])


def connect(topology: str, node: Node, sink: Sink, types: pa.Schema, stated: Mapping[str, Mapping[str, str]]) -> Target:
    """A sink, connected or about to be.

    Args:
        topology: the topology's name.
        node: the output.
        sink: one of its sinks.
        types: the output's columns as they are stored.
        stated: the sections of the lake's file about sinks.

    Raises:
        SetupError: nothing says where the sink is.
        SinkDown, SinkDenied: it cannot be reached.
    """
    where, name = config.connection(stated, sink), sink_id(node.name, sink)
    if isinstance(sink, KafkaSink):
        from rejoin.sinks.kafka.records import Records, json_encoding
        from rejoin.sinks.kafka.schema_registry import Registry, avro_encoding
        from rejoin.sinks.kafka.topic import KafkaTarget

        if sink.format is Format.AVRO:
            encoding = avro_encoding(topology, node, sink, types, Registry(name, where))
        else:
            encoding = json_encoding(sink, types)
        return KafkaTarget(topology, name, sink, where, Records(topology, node.name, node.key, sink, encoding))
    if isinstance(sink, OpenSearchSink):
        from rejoin.sinks.opensearch.index import OpenSearchTarget

        return OpenSearchTarget(topology, node, sink, where, types)
    from rejoin.sinks.postgres.table import PostgresTarget

    return PostgresTarget(topology, node, sink, where[sink.address], types)
