"""Topics of a cluster."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

from rejoin.doctor.findings import Finding, ok, problem, raised, warning
from rejoin.errors import RejoinError, SourceMissing
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import Meaning
from rejoin.plan.topic_path import TopicPath, topic_path
from rejoin.sources.access import SourceAccess
from rejoin.sources.recognition import hint
from rejoin.sources.shapes import registry
from rejoin.sources.transports.kafka.client import Clients
from rejoin.sources.transports.kafka.sampling import TopicState, names, newest, states
from rejoin.sources.transports.kafka.wire_format import ZERO, WireFormat
from rejoin.sources.transports.messages import KEY_CHANGES, Line, Message, Value

_SAMPLE = 100


def findings(at: str, tables: Sequence[Table], access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    """What is found of the topics of a connection.

    Raises:
        SetupError, SourceDenied, SourceDown.
    """
    clients = Clients(access, TopicPath(at, "*"))
    there, read = set(names(clients)), [(table, topic) for table in tables if (topic := topic_path(table.source.path)) is not None]
    yield ok(at, "cluster", "it answers")
    held = states(clients, {topic.topic for _, topic in read} & there)
    samples = newest(clients, held, _SAMPLE)
    for table, topic in read:
        if topic.topic not in held:
            missing = SourceMissing(
                f"there is no topic {topic}, or no right to see it", next_step="check its name and the rights of the user"
            )
            yield raised(table.name, "topic", missing)
            continue
        yield from _kept(table, held[topic.topic], every)
        yield from _partitions(table, held[topic.topic])
        yield from _messages(table, topic, samples[topic.topic], clients)


def _kept(table: Table, state: TopicState, every: timedelta) -> Iterator[Finding]:
    if state.settings is None:
        yield warning(
            table.name, "retention", "the settings of the topic may not be seen", "grant DescribeConfigs, or look at retention.ms yourself"
        )
        return
    yield _long_enough(table, "retention.ms", state.retention, every)
    if state.compacted and table.source.meaning is Meaning.FEED:
        yield _long_enough(table, "delete.retention.ms", state.milliseconds("delete.retention.ms"), every)
    if not state.compacted and any(state.earliest.values()):
        yield warning(
            table.name, "oldest records", "they are gone: a table that is read from here on lacks rows that have not changed since",
            "let the producer write all rows once more, unless they were read before",
        )  # fmt: skip


def _long_enough(table: Table, setting: str, kept: int | None, every: timedelta) -> Finding:
    if kept is None:
        return ok(table.name, setting, "without limit")
    length = timedelta(milliseconds=kept)
    found, do = f"{length}, and runs are {every} apart", f"raise {setting} of the topic to several times that, or run more often"
    if length <= every:
        return problem(table.name, setting, found + ": what no run has read gets lost", do)
    return warning(table.name, setting, found, do) if length < 2 * every else ok(table.name, setting, found)


def _partitions(table: Table, state: TopicState) -> Iterator[Finding]:
    if len(state.ends) > 1 and table.source.meaning is Meaning.FEED and registry.is_by_arrival(table):
        yield warning(
            table.name,
            "partitions",
            f"{len(state.ends)}, and changes have no positions",
            "let the producer partition them by the primary key",
        )
    waiting = sum(state.written[p] - end for p, end in state.ends.items())
    if waiting:
        yield warning(
            table.name,
            "transactions",
            f"one is open: {waiting} offsets behind it are not read yet",
            "wait, or end the producer that has left it open",
        )


def _messages(table: Table, topic: TopicPath, messages: Sequence[Message], clients: Clients) -> Iterator[Finding]:
    if not messages:
        yield warning(table.name, "messages", "there are none", "wait for the producer")
        return
    whole = registry.reads_messages(table)
    if any(text is not None and text[:1] == ZERO for m in messages for text in (m.key, m.value)):
        if clients.registry is None or not whole:
            do = f"set schema.registry.url in [sources.{topic.at}]" if whole else "write JSON: Avro is read of Debezium's messages only"
            yield problem(table.name, "messages", "Avro in Confluent's wire format, and nothing reads it", do)
            return
        try:
            read = WireFormat(clients.registry).document
            messages = [m._replace(key=read(m.key), value=read(m.value)) for m in messages]
            yield ok(table.name, "schema registry", "it knows the schemas of the newest messages")
        except RejoinError as error:
            yield raised(table.name, "schema registry", error)
            return
    if any(_is_no_json(value) for m in messages for name, value in m.headers or () if name in KEY_CHANGES):
        yield problem(
            table.name, "headers", "those of changed keys are no JSON: such messages are refused",
            "header.converter=org.apache.kafka.connect.json.JsonConverter in the connector",
        )  # fmt: skip
    line = Line(topic.topic) if whole else Value()
    told = hint(table.source, [line.one(m).decode(errors="replace") for m in messages]).removesuffix("; else ")
    if told:
        yield problem(table.name, "messages", told, "declare the source so")
    else:
        yield ok(table.name, "messages", f"the newest {len(messages)} look as declared")


def _is_no_json(value: bytes | None) -> bool:
    try:
        json.loads(value or b"null")
    except ValueError:
        return True
    return False
