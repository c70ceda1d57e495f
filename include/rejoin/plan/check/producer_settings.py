"""The settings of a Kafka producer that a topology may state, under the names that Kafka's documentation uses, with their defaults here.

Addresses and secrets (``bootstrap.servers``, ``sasl.*``, ``ssl.*``, ``security.protocol``) belong to the lake's configuration.
"""

import re
from collections.abc import Mapping
from typing import Final

from rejoin.plan.model.sinks import Guarantee

DEFAULTS: Final[Mapping[str, str]] = {
    "acks": "all",
    "batch.size": "1000000",
    "buffer.memory": "33554432",
    "compression.type": "none",
    "delivery.timeout.ms": "45000",
    "enable.idempotence": "true",
    "linger.ms": "5",
    "max.block.ms": "60000",
    "max.in.flight.requests.per.connection": "5",
    "max.request.size": "1048576",
    "request.timeout.ms": "30000",
    "retries": "2147483647",
    "retry.backoff.ms": "100",
    "transaction.timeout.ms": "60000",
}
_MORE: Final = {
    "client.id",
    "compression.level",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "send.buffer.bytes",
}
_TEXTS: Final = {
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "enable.idempotence": ("true", "false"),
}
_ELSEWHERE: Final = {
    "partitioner.class": "use partitioner=",
    "interceptor.classes": "use interceptors=",
    "transactional.id": "rejoin makes it from the names of topology, output and sink",
    "key.serializer": "use key=",
    "value.serializer": "use value= and format=",
}
_SECRET: Final = re.compile(r"bootstrap\.servers|security\.protocol|(sasl|ssl|schema\.registry)\..*")


def merged(settings: Mapping[str, str]) -> dict[str, str]:
    """All settings: the stated ones and the defaults of the others."""
    return {**DEFAULTS, **settings}


def mistakes(settings: Mapping[str, str], guarantee: Guarantee) -> list[str]:
    """What is wrong with stated settings, a sentence each."""
    found = [said for name, value in settings.items() if (said := _mistake(name, value))]
    return found or _contradictions(merged(settings), guarantee)


def _mistake(name: str, value: str) -> str | None:
    if _SECRET.fullmatch(name):
        return f"{name} is part of the connection: write it into the lake's .toml file, under [sinks.<name>]"
    if name in _ELSEWHERE:
        return f"{name} cannot be set: {_ELSEWHERE[name]}"
    if name not in DEFAULTS and name not in _MORE:
        return f"{name} is not a setting that can be tuned; known: {', '.join(sorted({*DEFAULTS, *_MORE}))}"
    if name in _TEXTS:
        return None if value in _TEXTS[name] else f"{name} is {value!r}; expected one of {', '.join(_TEXTS[name])}"
    if name != "client.id" and not re.fullmatch(r"\d+", value):
        return f"{name} is {value!r}; expected a whole number"
    return None


def _contradictions(all_: Mapping[str, str], guarantee: Guarantee) -> list[str]:
    number = {name: int(value) for name, value in all_.items() if value.isdigit()}
    idempotent, found = all_["enable.idempotence"] == "true", []
    if guarantee is Guarantee.EXACTLY_ONCE and not idempotent:
        found.append("enable.idempotence=false needs guarantee='at_least_once'")
    if idempotent and all_["acks"] not in ("all", "-1"):
        found.append(f"enable.idempotence=true needs acks=all, not {all_['acks']}")
    if idempotent and number["max.in.flight.requests.per.connection"] > 5:
        found.append("enable.idempotence=true allows at most 5 max.in.flight.requests.per.connection")
    if idempotent and number["retries"] == 0:
        found.append("enable.idempotence=true needs retries above 0")
    if number["delivery.timeout.ms"] <= number["linger.ms"]:
        found.append("delivery.timeout.ms must be larger than linger.ms")
    if guarantee is Guarantee.EXACTLY_ONCE and number["delivery.timeout.ms"] > number["transaction.timeout.ms"]:
        found.append("delivery.timeout.ms must not be larger than transaction.timeout.ms")
    return found
