"""Kafka's setting names -> those of librdkafka, which the client is made of. Pure.

Three differ in kind: ``max.block.ms`` has no counterpart (``kafka.py`` waits), ``buffer.memory`` is counted in KiB, and librdkafka's other bounds on
a batch and on the queue, in messages, are lifted, so that bytes alone decide as in Java.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from rejoin.errors import SetupError
from rejoin.plan.check import producer_settings
from rejoin.plan.model.sinks import MURMUR2, Guarantee, KafkaSink

T = TypeVar("T")

_RENAMED = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_OURS = {"max.block.ms", "buffer.memory", "transaction.timeout.ms"}
_OF_REGISTRY = "schema.registry."

LOG = logging.getLogger("rejoin.kafka")
"""Where the clients of a cluster say what they see; they would write to standard error."""
LOG.addHandler(logging.NullHandler())


def client(kind: type[T], configuration: Mapping[str, Any], sink: str) -> T:
    """A client of a cluster.

    Raises:
        SetupError: it does not know a setting, or the setting cannot have this value. The message names the setting alone.
    """
    try:
        return kind(dict(configuration))  # type: ignore[call-arg]
    except KafkaException as error:
        named = re.findall(r'property:? "([^"]+)"', error.args[0].str())
        what = f"the settings of sink {sink!r} are refused" + (f": {', '.join(named)}" if named else "")
        raise SetupError(what, expected="settings that librdkafka knows", next_step="correct [sinks.<name>], or the environment") from None


def stated(sink: KafkaSink) -> dict[str, str]:
    """The sink's producer settings with defaults, under Kafka's names."""
    return producer_settings.merged(dict(sink.producer))


def connecting(connection: Mapping[str, str]) -> dict[str, Any]:
    """The settings that every client of the sink's cluster needs."""
    own = {name: value for name, value in connection.items() if not name.startswith(_OF_REGISTRY)}
    return {"client.id": "rejoin", "logger": LOG, **own}


def of_producer(sink: KafkaSink, connection: Mapping[str, str], transactional_id: str, *, acknowledged: bool) -> dict[str, Any]:
    """The configuration of a producer.

    Args:
        sink: the sink.
        connection: where it is.
        transactional_id: for a sink that is delivered to exactly once.
        acknowledged: every record's delivery is reported, not only failed ones.
    """
    known = stated(sink)
    made = connecting(connection)
    made |= {_RENAMED.get(name, name): value for name, value in known.items() if name not in _OURS}
    made["queue.buffering.max.kbytes"] = max(1, int(known["buffer.memory"]) // 1024)
    made["queue.buffering.max.messages"] = 0
    made["batch.num.messages"] = 1_000_000
    made["statistics.interval.ms"] = 200
    made["delivery.report.only.error"] = not acknowledged
    if sink.partitioner == MURMUR2:
        made["partitioner"] = "murmur2_random"
    if sink.guarantee is Guarantee.EXACTLY_ONCE:
        made |= {"transactional.id": transactional_id, "transaction.timeout.ms": known["transaction.timeout.ms"]}
    return made
