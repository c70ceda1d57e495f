"""CloudEvents around Debezium's events (its CloudEvents converter, structured JSON) -> the envelopes that they stand for.

``data`` has ``before`` and ``after``, with or without their Connect schema; what an envelope has beside them are attributes, all of them texts:
``iodebeziumop``, and ``iodebezium`` before the name of a member of ``source`` in small letters.
"""

from typing import Any

from rejoin.errors import BadRecord
from rejoin.sources.formats.json_text import BAD_JSON

OP, ORDER = "iodebeziumop", "iodebeziumtxtotalorder"
OF_SOURCE = {
    **{name: name for name in ("version", "connector", "name", "snapshot", "db", "schema", "table", "sequence", "file", "gtid")},
    "tsms": "ts_ms",
    "tsus": "ts_us",
    "tsns": "ts_ns",
    "txid": "txId",
    "commitlsn": "commit_lsn",
    "changelsn": "change_lsn",
    "eventserialno": "event_serial_no",
    **{name: name for name in ("lsn", "xmin", "pos", "row", "serverid", "thread")},
}
"""Attribute, without what all begin with -> member of ``source``."""
NUMBERS = {"ts_ms", "ts_us", "ts_ns", "txId", "event_serial_no", "lsn", "pos", "row", "total_order"}


def is_cloud_event(document: Any) -> bool:
    """Whether a document is a CloudEvent of Debezium."""
    return type(document) is dict and OP in document and "specversion" in document and "data" in document


def envelope(event: dict[str, Any]) -> dict[str, Any]:
    """The envelope, in its schema if ``data`` has one.

    Raises:
        BadRecord: ``data`` holds no rows.
    """
    data = event["data"]
    with_schema = type(data) is dict and data.keys() == {"schema", "payload"}
    rows = data["payload"] if with_schema else data
    if type(rows) is not dict:
        raise BadRecord(BAD_JSON, "the CloudEvent has no rows in 'data'")
    source = {member: _value(member, event[f"iodebezium{name}"]) for name, member in OF_SOURCE.items() if f"iodebezium{name}" in event}
    order = event.get(ORDER)
    transaction = None if order is None else {"total_order": _number(order)}
    found = {**rows, "op": event[OP], "source": source, "transaction": transaction}
    return {"schema": data["schema"], "payload": found} if with_schema else found


def _value(member: str, written: Any) -> Any:
    return _number(written) if member in NUMBERS else written


def _number(written: Any) -> Any:
    """The number that a text writes; anything else as it is, for who reads it to judge."""
    return int(written) if type(written) is str and written.isascii() and written.isdigit() and len(written) < 40 else written
