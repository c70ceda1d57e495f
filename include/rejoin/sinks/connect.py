"""From a plan's sink to one that is connected."""

from collections.abc import Mapping

import pyarrow as pa

from rejoin.plan.model import Node
from rejoin.plan.sinks import Format, KafkaSink, Sink, sink_id
from rejoin.sinks import config
from rejoin.sinks.target import Target


def identity(node: Node, sink: Sink, stated: Mapping[str, Mapping[str, str]]) -> str | None:
    """What tells a sink's target from an earlier one of its name, without taking it over; None if there is none.

    Raises:
        SetupError: nothing says where the sink is.
        SinkDown, SinkDenied: it cannot be reached.
    """
    where, name = config.connection(stated, sink.name, sink.kind), sink_id(node.name, sink)
    if isinstance(sink, KafkaSink):
        from rejoin.sinks import settings
        from rejoin.sinks.kafka_cursor import Topics

        found = Topics(name, settings.connecting(where), int(settings.stated(sink)["max.block.ms"]) / 1000).found(sink.topic)
        return None if found is None else found[1]
    from rejoin.sinks import postgres

    return postgres.identity(name, sink, where["url"])


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
    where, name = config.connection(stated, sink.name, sink.kind), sink_id(node.name, sink)
    if isinstance(sink, KafkaSink):
        from rejoin.sinks.kafka import KafkaTarget
        from rejoin.sinks.records import Records, json_encoding
        from rejoin.sinks.registry import Registry, avro_encoding

        if sink.format is Format.AVRO:
            encoding = avro_encoding(topology, node, sink, types, Registry(name, where))
        else:
            encoding = json_encoding(sink, types)
        return KafkaTarget(topology, name, sink, where, Records(topology, node.name, node.key, sink, encoding))
    from rejoin.sinks.postgres import PostgresTarget

    return PostgresTarget(topology, node, sink, where["url"], types)
