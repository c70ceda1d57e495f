"""A schema registry that speaks Confluent's protocol: gives a schema's id, and puts it before every message."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from rejoin.errors import RejoinError, SetupError, SinkDenied, SinkDown, SinkSchemaRefused
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import KafkaSink, Value
from rejoin.sinks.kafka import avro
from rejoin.sinks.kafka.records import Encode, Encoding

SECONDS = 10.0
URL, USER = "schema.registry.url", "schema.registry.basic.auth.user.info"


class Registry:
    """The registry of a sink's connection.

    Args:
        sink: the sink's id, for messages.
        connection: its settings.

    Raises:
        SetupError: they name no registry.
    """

    def __init__(self, sink: str, connection: Mapping[str, str]) -> None:
        if not connection.get(URL, "").startswith(("http://", "https://")):
            raise SetupError(
                f"sink {sink!r} writes Avro and no registry is set", expected=f"{URL}, an http(s) address, beside the broker's address"
            )
        self._sink, self._url = sink, connection[URL].rstrip("/")
        self._headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if user := connection.get(USER):
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"

    def register(self, subject: str, schema: avro.Schema) -> int:
        """The id of a schema under a subject; registers it if it is new.

        Raises:
            SinkSchemaRefused: it is not compatible with the subject's earlier schemas.
            SinkDenied, SinkDown: the registry does not let us in, or does not answer.
        """
        body = json.dumps({"schema": json.dumps(schema, sort_keys=True)}).encode()
        url = f"{self._url}/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        request = urllib.request.Request(url, body, self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return int(json.load(answer)["id"])
        except urllib.error.HTTPError as error:
            raise self._coded(error.code, subject) from None
        except (OSError, ValueError, KeyError) as error:
            raise SinkDown(
                f"sink {self._sink!r}: the schema registry gave no answer ({type(error).__name__})", next_step="try again later"
            ) from None

    def _coded(self, status: int, subject: str) -> RejoinError:
        what = f"sink {self._sink!r}: the schema registry refused the schema of subject {subject!r} (HTTP {status})"
        if status in (409, 422):
            return SinkSchemaRefused(
                what, expected="a schema that the subject's rule allows", next_step="change the rule, or name another topic"
            )
        if status in (401, 403):
            return SinkDenied(what, next_step=f"check {USER}")
        return SinkDown(what, next_step="try again later")


def avro_encoding(topology: str, node: Node, sink: KafkaSink, types: Any, registry: Registry) -> Encoding:
    """Avro as Confluent's serializers write it: a zero byte, the schema's id, the value. Subjects are ``<topic>-key`` and ``<topic>-value``."""

    def encode(side: str, schema: avro.Schema) -> Encode:
        prefix = b"\0" + registry.register(f"{sink.topic}-{side}", schema).to_bytes(4, "big")
        body = avro.encoder(schema)
        return lambda value: prefix + body(value)

    key_ = encode("key", avro.key_schema(topology, node, types))
    if sink.value is Value.KEY:
        return Encoding(key_, lambda _: b"")
    return Encoding(key_, encode("value", avro.value_schema(topology, node.name, types, sink.value)))
