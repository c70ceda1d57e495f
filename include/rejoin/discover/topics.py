"""The topics of a cluster, by their newest messages."""

import json
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from rejoin.discover.foreign_keys import foreign_keys
from rejoin.discover.json_records import changes_of
from rejoin.discover.table import Found, FoundTable
from rejoin.discover.topic_rows import table_of
from rejoin.discover.topology_file import identifier
from rejoin.errors import BadRecord, SchemaUnknown, SourceMissing
from rejoin.plan.model import durations
from rejoin.plan.topic_path import TopicPath
from rejoin.sources.access import SourceAccess
from rejoin.sources.formats.json_text import loads
from rejoin.sources.transports.kafka.client import Clients
from rejoin.sources.transports.kafka.sampling import TopicState, names, newest, states
from rejoin.sources.transports.kafka.wire_format import ZERO, WireFormat
from rejoin.sources.transports.messages import Line, Message, Value

_SAMPLE = 1000
"""So many messages of a topic are looked at."""
_DEFAULT = "kafka"
"""The connection that ``kafka(...)`` means if it names none."""
_MILLI = 1000


def look(access: SourceAccess, at: str, pattern: str) -> Found:
    """The topics whose names fit a pattern.

    Raises:
        SourceMissing: there are none.
        SetupError, SourceDenied, SourceDown.
    """
    clients = Clients(access, TopicPath(at, pattern))
    found = states(clients, [name for name in names(clients) if fnmatchcase(name, pattern)])
    if not found:
        raise SourceMissing(
            f"there is no topic {TopicPath(at, pattern)}, or no right to see it", next_step="name a topic; * stands for any letters"
        )
    tables, others = list[FoundTable](), list[str]()
    for name, messages in newest(clients, found, _SAMPLE).items():
        some, why = _of_topic(at, name, messages, clients)
        others += [f"topic {name}: {why}"] if why else []
        for table in some:
            notes = [*table.notes, *_notes(found[name])]
            tables.append(replace(table, name=identifier(table.name, {t.name for t in tables}), notes=notes))
    said = f"the cluster: an address in [sources.{at}] of the lake's file, or REJOIN_SOURCE_{at.upper()}"
    return Found(tables, others, tuple(foreign_keys(tables)), [said])


def _of_topic(at: str, topic: str, messages: Sequence[Message], clients: Clients) -> tuple[list[FoundTable], str]:
    """The tables of a topic, or why there are none."""
    if not messages:
        return [], "it has no messages"
    if any(text is not None and text[:1] == ZERO for m in messages for text in (m.key, m.value)):
        if clients.registry is None:
            return [], f"its messages are Avro in Confluent's wire format: set schema.registry.url in [sources.{at}]"
        read = WireFormat(clients.registry).document
        try:
            messages = [m._replace(key=read(m.key), value=read(m.value)) for m in messages]
        except SchemaUnknown as error:
            return [], error.what
    line, value, name = Line(topic), Value(), topic.rsplit(".", 1)[-1]
    path = f"kafka({json.dumps(topic)})" if at == _DEFAULT else f"kafka({json.dumps(topic)}, name={json.dumps(at)})"
    values = [value.one(m) for m in messages if m.value is not None]
    found = changes_of(name, path, [line.one(m) for m in messages], values)
    if not found and (rows := table_of(name, path, [(_said(m.key), _said(m.value)) for m in messages])) is not None:
        found = [rows]
    if not found:
        return [], "none of its newest messages is a record that rejoin knows"
    if len({table.source for table in found}) < len(found) or any("topic=" in table.source for table in found):
        return (
            [],
            f"it has changes of several tables ({', '.join(table.name for table in found)}), which nothing tells apart: give each a topic of its own",
        )
    return [replace(table, uses=[*table.uses, "kafka"]) for table in found], ""


def _said(written: bytes | None) -> Any:
    """A key or value as a document, or as the text that it is."""
    text = "null" if written is None else written.decode(errors="replace")
    try:
        return loads(text)
    except BadRecord:
        return text


def _notes(state: TopicState) -> list[str]:
    """What to look out for."""
    notes = []
    gone = [partition for partition, first in state.earliest.items() if first > 0]
    if (kept := state.retention) is not None:
        notes.append(f"keeps records for {_length(kept)} (retention.ms): run more often")
    if gone and not state.compacted:
        notes.append(
            f"its oldest records are gone (partition {min(gone)} begins at offset {state.earliest[min(gone)]}): rows that have not changed since are missing, until all are written once more"
        )
    if state.compacted and (kept := state.milliseconds("delete.retention.ms")) is not None:
        notes.append(f"compacted, and keeps what it says of deleted rows for {_length(kept)} (delete.retention.ms): run more often")
    return notes


def _length(milliseconds: int) -> str:
    return durations.text(milliseconds * _MILLI)
