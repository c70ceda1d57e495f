"""What ``.to(kafka(...), postgres(...))`` says, checked: every mistake is reported with the line of the sink."""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from rejoin.declare.declarations import SinkDeclaration, ToDeclaration
from rejoin.plan.check import producer_settings
from rejoin.plan.check.tables import check_name
from rejoin.plan.model.problems import BAD_OPTION, DUPLICATE_NAME, UNSAFE_NAME, Problems, Reporter
from rejoin.plan.model.sinks import (
    CURSORS,
    MURMUR2,
    REFUSED,
    CatchUp,
    Format,
    Guarantee,
    KafkaSink,
    Key,
    OpenSearchSink,
    PostgresSink,
    Sink,
    Start,
    Value,
)

_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_CODE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_TABLE: Final = re.compile(r"[^.\x00]+\.[^.\x00]+")
_INDEX: Final = re.compile(r"(?![-_+.])[^\s\\/*?\"<>|,#:A-Z\x00-\x1f]{1,255}")
_POSTGRES_BYTES: Final = 63
"""PostgreSQL cuts longer names off."""
_POSTGRES_OWN: Final = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
"""Columns that every table of PostgreSQL has already; names are compared as they are written."""


class Sinks:
    """Those of one topology. ``_taken``: which output a table or topic has, by the kind and name of the sink, for its name says where it is."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._taken: dict[tuple[str, str, str], str] = {}

    def of(
        self, declaration: ToDeclaration, output: str, key: tuple[str, ...], columns: Sequence[str], before: tuple[Sink, ...]
    ) -> tuple[Sink, ...]:
        """The sinks of an output: those declared before and these. One with a mistake is reported and left out."""
        made = list(before)
        for written in declaration.sinks:
            if not isinstance(written, SinkDeclaration):
                self._problems.at(declaration.place, f"output {output!r}: ")(
                    BAD_OPTION, "to(...) takes kafka(...), opensearch(...) and postgres(...)"
                )
                continue
            report = self._problems.at(written.place, f"output {output!r}, {written.kind}(...): ")
            sink = _sink(written, key, columns, report)
            if sink is not None and sink.name in {s.name for s in made}:
                report(DUPLICATE_NAME, f"the output has a sink {sink.name!r} already; give this one a name=")
            elif sink is not None and self._alone(sink, output, report):
                made.append(sink)
        return tuple(made)

    def _alone(self, sink: Sink, output: str, report: Reporter) -> bool:
        """Whether no other output has its table or topic: a snapshot of one would remove the rows of the other."""
        other = self._taken.setdefault((sink.kind, sink.name, sink.target), output)
        if other != output:
            report(
                DUPLICATE_NAME,
                f"output {other!r} delivers to {sink.what} {sink.target!r} of sink {sink.name!r} already; give this one a {sink.what} of its own",
            )
        return other == output


def _sink(written: SinkDeclaration, key: tuple[str, ...], columns: Sequence[str], report: Reporter) -> Sink | None:
    before, options = len(report.problems.found), dict[str, Any](written.options)
    check_name(options["name"], "sink", report)
    common = {"catch_up": _choice(CatchUp, "catch_up", options, report), "start": _choice(Start, "start", options, report)}
    kind, own = _KINDS[written.kind]
    found = own(options, key, columns, report)
    return kind(name=options["name"], **common, **found) if len(report.problems.found) == before else None


def _postgres(options: Mapping[str, Any], key: tuple[str, ...], columns: Sequence[str], report: Reporter) -> dict[str, Any]:  # noqa: ARG001
    _postgres_names(options, columns, report)
    _matches("table", options, _TABLE, "a text such as 'schema.table'", report)
    _number("retries", options, 0, report)
    return {n: options[n] for n in ("table", "retries")}


def _opensearch(options: Mapping[str, Any], key: tuple[str, ...], columns: Sequence[str], report: Reporter) -> dict[str, Any]:  # noqa: ARG001
    _matches("index", options, _INDEX, "an index's name: no capital letters, no spaces, none of \\ / * ? \" < > | , # :", report)
    if options["index"] in (CURSORS, REFUSED):
        report(BAD_OPTION, f"index is {options['index']!r}: in an index of this name rejoin keeps what it needs itself")
    return {"index": options["index"]}


def _kafka(options: Mapping[str, Any], key: tuple[str, ...], columns: Sequence[str], report: Reporter) -> dict[str, Any]:  # noqa: ARG001
    _matches("topic", options, _TOPIC, "letters, digits, '.', '_' and '-', at most 249", report)
    _number("batch", options, 1, report)
    if options["partitions"] is not None:
        _number("partitions", options, 1, report)
    if options["partitioner"] != MURMUR2:
        _matches("partitioner", options, _CODE, "'murmur2' or 'module:function'", report)
    chosen = {n: _choice(k, n, options, report) for n, k in (("value", Value), ("format", Format), ("key", Key), ("guarantee", Guarantee))}
    if chosen["key"] is Key.TEXT and len(key) != 1:
        report(BAD_OPTION, f"key='text' needs a key of one column, this one is {', '.join(key)}")
    interceptors = _interceptors(options["interceptors"], report)
    settings = _producer(options["producer"], chosen["guarantee"], report)
    return {
        **{n: options[n] for n in ("topic", "batch", "partitions", "partitioner")},
        **chosen,
        "interceptors": interceptors,
        "producer": settings,
    }


_KINDS: dict[str, tuple[type[Sink], Callable[[Mapping[str, Any], tuple[str, ...], Sequence[str], Reporter], dict[str, Any]]]] = {
    "kafka": (KafkaSink, _kafka),
    "opensearch": (OpenSearchSink, _opensearch),
    "postgres": (PostgresSink, _postgres),
}
"""What a sink of each kind is, and what checks its own options: those, the key and the columns of its output."""


def _postgres_names(options: Mapping[str, Any], columns: Sequence[str], report: Reporter) -> None:
    """Reports what PostgreSQL could not have under its name."""
    for name in columns:
        if name in _POSTGRES_OWN:
            report(UNSAFE_NAME, f"column {name!r}: every table of PostgreSQL has a system column of this name; rename it in the select")
        elif len(name.encode()) > _POSTGRES_BYTES:
            said = f"column {name!r} has {len(name.encode())} bytes, and names in PostgreSQL at most {_POSTGRES_BYTES}; rename it in the select"
            report(UNSAFE_NAME, said)
    table = options["table"]
    for name in table.split(".", 1) if isinstance(table, str) else ():
        if len(name.encode()) > _POSTGRES_BYTES:
            report(
                BAD_OPTION, f"table: {name!r} has {len(name.encode())} bytes; expected at most {_POSTGRES_BYTES} for schema and table each"
            )
    if isinstance(table, str) and table.endswith(f".{CURSORS}"):
        report(BAD_OPTION, f"table is {table!r}: in a table of this name rejoin keeps how far its sinks are")


def _choice(kind: type[StrEnum], name: str, options: Mapping[str, Any], report: Reporter) -> Any:
    if options[name] not in list(kind):
        report(BAD_OPTION, f"{name} is {options[name]!r}; expected one of {', '.join(repr(str(k)) for k in kind)}")
        return next(iter(kind))
    return kind(options[name])


def _matches(name: str, options: Mapping[str, Any], pattern: re.Pattern[str], expected: str, report: Reporter) -> None:
    if not isinstance(options[name], str) or not pattern.fullmatch(options[name]):
        report(BAD_OPTION, f"{name} is {options[name]!r}; expected {expected}")


def _number(name: str, options: Mapping[str, Any], least: int, report: Reporter) -> None:
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        report(BAD_OPTION, f"{name} is {value!r}; expected a whole number of at least {least}")


def _interceptors(value: object, report: Reporter) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) and _CODE.fullmatch(v) for v in value):
        report(BAD_OPTION, f"interceptors is {value!r}; expected a list of 'module:name'")
        return ()
    return tuple(value)


def _producer(value: object, guarantee: Guarantee, report: Reporter) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
        report(BAD_OPTION, "producer must be a dict such as {'linger.ms': 20}")
        return ()
    texts = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    for said in producer_settings.mistakes(texts, guarantee):
        report.about("producer: ")(BAD_OPTION, said)
    return tuple(sorted(texts.items()))
