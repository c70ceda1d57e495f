"""What a line of a feed is: a whole Kafka message, or its value alone, as sinks of files and object stores write it. Told by the line's own members.

| line | is |
|---|---|
| an object with ``value`` | a message; ``key``, ``headers`` and ``topic`` may be missing |
| an object with ``op`` and ``source`` | bare: the value of a message |
| exactly ``schema`` (a Connect schema, or null) and ``payload`` | bare, with its schema |
| exactly the members of a heartbeat, BEGIN or END of a transaction, a schema change | bare |
| a CloudEvent of Debezium (``cloud_events``), bare or as ``value`` | the envelope in it |
| ``null`` | bare: the value of a tombstone, whose key is not written |
| anything else, and an object with ``value``, ``op`` and ``source`` | refused |

Columns are inside of ``before`` and ``after``, so their names are never taken for these.
"""

from typing import Any, NamedTuple

from rejoin.errors import BadRecord
from rejoin.sources.formats.json_text import BAD_JSON, loads, loads_shallow
from rejoin.sources.shapes.debezium.cloud_events import OP, envelope, is_cloud_event

_TRANSACTION = {"status", "id", "event_count", "data_collections"}
_CLOCKS = {"ts_ms", "ts_us", "ts_ns"}
_HEARTBEAT = "__debezium-heartbeat"
_NAMED_BY = {
    "postgresql": ("name", "schema", "table"),
    "mysql": ("name", "db", "table"),
    "mariadb": ("name", "db", "table"),
    "sqlserver": ("name", "db", "schema", "table"),
}
"""What Debezium makes the name of a topic of."""


class Message(NamedTuple):
    """A message as far as a line has it. ``value`` and ``key``: JSON text, or what it says. ``bare``: the line is the value alone."""

    value: Any
    key: Any = None
    headers: Any = None
    topic: Any = None
    bare: bool = False


def message(raw: bytes) -> Message:
    """The message of a line.

    Raises:
        BadRecord: it is none (``BAD_JSON``, ``AMBIGUOUS_JSON``).
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise BadRecord(BAD_JSON, "the line is not UTF-8") from None
    line = loads_shallow(text)
    if line is None:
        return Message(None, bare=True)
    if type(line) is not dict:
        raise BadRecord(BAD_JSON, "the line is not an object")
    if is_cloud_event(line):
        return Message(envelope(line), bare=True)
    if is_bare(line):
        # As text, so that the schema, which the next line repeats, is not looked at again.
        return Message(text if "payload" in line else line, bare=True)
    return Message(_unpacked(line["value"]), line.get("key"), line.get("headers"), line.get("topic"))


def _unpacked(value: Any) -> Any:
    """The value of a message, out of a CloudEvent if it is in one."""
    event = loads(value) if type(value) is str and OP in value else value
    return envelope(event) if is_cloud_event(event) else value


def is_bare(line: dict[str, Any]) -> bool:
    """Whether a line is the value of a message alone, or a whole one.

    Raises:
        BadRecord: it is neither, or could be both.
    """
    enveloped = "op" in line and "source" in line
    if "value" in line:
        if enveloped:
            raise BadRecord(BAD_JSON, "the line has 'value', as a message, as well as 'op' and 'source', as a bare envelope")
        return False
    if enveloped or has_schema(line) or (line and is_bookkeeping(line, None)):
        return True
    # A missing value is not a tombstone: that has an explicit null.
    raise BadRecord(BAD_JSON, "the line is neither a message with 'key' and 'value' nor an envelope with 'op' and 'source'")


def has_schema(document: dict[str, Any]) -> bool:
    """Whether a document is a payload with its Connect schema, and no row of columns with these names."""
    if document.keys() != {"schema", "payload"}:
        return False
    schema = document["schema"]
    return schema is None or (type(schema) is dict and "type" in schema)


def is_bookkeeping(payload: dict[str, Any], topic: Any) -> bool:
    """Heartbeats, BEGIN and END of transactions, schema changes: told by exactly their members, as a flattened row could be similar."""
    members = payload.keys() - _CLOCKS
    if members == _TRANSACTION:
        return payload["status"] in ("BEGIN", "END")
    if not members:
        return topic is None or str(topic).startswith(_HEARTBEAT)
    return "source" in members and "ddl" in members and ("databaseName" in members or "tableChanges" in members)


def is_of(topic: str, payload: Any) -> bool:
    """Whether the bare ``payload`` belongs to a topic: that which Debezium names by its ``source``. What does not say its table belongs to all."""
    source = payload.get("source") if type(payload) is dict else None
    if type(source) is not dict:
        return True
    names = named_by(source.get("connector"))
    parts = [part for name in names if type(part := source.get(name)) is str]
    return not parts or len(parts) < len(names) or ".".join(parts) == topic


def named_by(connector: Any) -> tuple[str, ...]:
    """The members of ``source`` that make the name of a topic; none of an unknown connector."""
    return _NAMED_BY.get(connector, ()) if type(connector) is str else ()
