"""Avro as Confluent's serializers write it: a zero byte, the id of a schema, a datum. It becomes what Connect's JSON converter makes of the same data, with
its schema: so decimals, times and octets are read by the same decoder, as exactly.
"""

import base64
import io
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from rejoin.sources.formats.avro_columns import ColumnReader
from rejoin.sources.formats.avro_schema import told
from rejoin.sources.formats.connect_json import document, of_avro, physical_avro
from rejoin.sources.transports.kafka.schema_registry import SchemaRegistry

ZERO, HEAD = b"\0", 5
"""No JSON begins with a zero byte; octets in front of a datum."""


class WireFormat:
    """Reads messages by the schemas of a registry; asks for each once."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._schema: Callable[[int], WrittenBy] = lru_cache(maxsize=None)(lambda id_: WrittenBy(registry.schema(id_)))

    def schema(self, head: bytes) -> "WrittenBy":
        """What a message that begins so is written by.

        Raises:
            SchemaUnknown, SourceDenied, SourceDown: the registry does not give it.
        """
        return self._schema(int.from_bytes(head[1:HEAD], "big"))

    def document(self, written: bytes | None) -> bytes | None:
        """A key or value as JSON; what does not begin as Avro as it is; what is no datum of its schema as a text that is no JSON. Raises as ``schema``."""
        if written is None or not is_avro(written):
            return written
        try:
            return self.schema(written).document(written[HEAD:])
        except _NoDatumError:
            return b"no Avro: " + base64.b64encode(written)


def is_avro(written: bytes) -> bool:
    """Whether a key or value begins as Avro."""
    return written[:1] == ZERO and len(written) >= HEAD


class _NoDatumError(Exception):
    """Octets are no datum of a schema."""


class WrittenBy:
    """A schema, and what reads its datums."""

    def __init__(self, schema: Any) -> None:
        self.connect, self._avro = of_avro(schema), schema
        self._document = document(self.connect)

    @cached_property
    def columns(self) -> ColumnReader | None:
        """Its datums by columns; None if that is not told."""
        record = told(self._avro)
        return None if record is None else ColumnReader(record)

    @cached_property
    def _parsed(self) -> Any:
        import fastavro

        return fastavro.parse_schema(physical_avro(self._avro))

    def document(self, datum: bytes) -> bytes:
        """A datum as JSON with its schema."""
        import fastavro

        parsed, stream = self._parsed, io.BytesIO(datum)
        try:
            found = self._document(fastavro.schemaless_reader(stream, parsed, None))
        except Exception:  # noqa: BLE001 -- whatever broken octets make of it
            raise _NoDatumError from None
        if stream.tell() != len(datum):
            raise _NoDatumError
        return found
