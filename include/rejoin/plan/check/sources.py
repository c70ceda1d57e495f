"""What a table or stream says of where its rows come from, checked."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from rejoin.declare.changes import Arrival, arrival
from rejoin.declare.declarations import SinkDeclaration, SourceDeclaration, TableDeclaration
from rejoin.declare.sinks import kafka
from rejoin.plan.captured_path import captured_path, names_captured
from rejoin.plan.check.formats import format_of
from rejoin.plan.check.mapping import check_names, columns, mapping
from rejoin.plan.check.tables import share
from rejoin.plan.extensions import dialects, transports
from rejoin.plan.model.added_columns import PLACE
from rejoin.plan.model.column_names import by_name, folded
from rejoin.plan.model.plan import Column
from rejoin.plan.model.problems import BAD_OPTION, BAD_TYPE, Reporter, did_you_mean
from rejoin.plan.model.sources import (
    SOURCES,
    ChangesSource,
    CsvFormat,
    DebeziumSource,
    FeedSource,
    Format,
    JsonFormat,
    Meaning,
    NamedFields,
    OnBadRecord,
    OnIncomplete,
    RecordsSource,
    Snapshots,
    SnapshotSource,
    Source,
)
from rejoin.plan.pin import FILES
from rejoin.plan.sql import types
from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.raw_fields import HEADER, KEY, fields, unqualified
from rejoin.plan.topic_path import SCHEME, names_topic, topic_path

NO_SOURCE: Final = SnapshotSource("")  # stands for a source with a mistake; such a plan is never returned
ICEBERG: Final = "iceberg"
_UNITS: Final = ("ms", "us", "ns")
Options = dict[str, object]
W = TypeVar("W", bound=StrEnum)


class _Common(NamedTuple):
    """What every source says."""

    path: str
    share: float
    policy: OnBadRecord


def source(declaration: TableDeclaration, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> Source | None:
    """The plan's source of a table or stream. None after a report, which names the line of ``snapshot(...)`` and so on."""
    written = declaration.source
    if isinstance(written, Source):
        options: Options = {name: value for name, value in vars(written).items() if name != "kind"}
        options["units"] = dict(written.units) if isinstance(written, DebeziumSource) else {}
        if isinstance(written, NamedFields):
            options["columns"] = {c: unqualified(sql) for c, sql in written.columns}
        if isinstance(written, ChangesSource):
            options["order_by"] = tuple(map(unqualified, written.order))
            options |= {name: sql and unqualified(sql) for name, sql in (("deleted", written.deleted), ("loaded", written.loaded))}
    elif isinstance(written, SourceDeclaration):
        report, options = Reporter(report.problems, written.place, report.prefix), dict(written.options)
    else:
        report(
            BAD_OPTION,
            f"source must be {'snapshot(...)' if declaration.stream is None else 'records(...)'}, debezium(...), changes(...) or feed(...)",
        )
        return None
    before = len(report.problems.found)
    common = _Common(
        _path(options, report), share("max_bad_share", options, report), _one_of(OnBadRecord, "on_bad_record", options, report)
    )
    kind = SOURCES[written.kind]
    made: Source
    if kind is DebeziumSource:
        made = _debezium(options, common, found, report, complete=complete)
    elif kind is FeedSource:
        made = _feed(options, common, found, report)
    elif kind is ChangesSource:
        made = _changes(options, common, found, report, complete=complete)
    elif kind is RecordsSource:
        made = RecordsSource(common.path, _text("null", options, report), common.policy, common.share, declaration.key is None)
    else:
        made = _snapshot(options, common, report)
    if isinstance(made, RecordsSource | SnapshotSource):
        made = _with_fields(made, options, found, report, complete=complete)
    _check_fits(made, declaration, report)
    return made if len(report.problems.found) == before else None


def _check_single(found: tuple[Column, ...], report: Reporter) -> None:
    """Rows of a feed in another dialect are made of single values."""
    nested = next((column for column in found if is_nested(column.type or "")), None)
    if nested is not None:
        said = "a feed(...) has single values; declare it STRING, or read it by debezium(...) or changes(...)"
        report(BAD_TYPE, f"column {nested.name!r} is {nested.type}, and {said}")


def _check_fits(made: Source, declaration: TableDeclaration, report: Reporter) -> None:
    """Rows of a table are replaced and deleted, records of a stream only added."""
    if declaration.stream is None and isinstance(made, RecordsSource):
        report(
            BAD_OPTION,
            "records(...) is for a stream, whose records are only added; a table has snapshot(...), debezium(...), changes(...) or feed(...)",
        )
    elif declaration.stream is not None and isinstance(made, SnapshotSource):
        said = "snapshot(...) is for a table, whose rows a newer snapshot replaces"
        report(
            BAD_OPTION, f"{said}; a stream has records(...), of whose files each adds its records, debezium(...), changes(...) or feed(...)"
        )
    elif names_captured(made.path) and not isinstance(made, DebeziumSource):
        report(BAD_OPTION, "captured(...) lands Debezium's change events: debezium(captured(...))")
    elif names_topic(made.path) and (tool := getattr(declaration.source, "landed_by", "")):
        said = "reads files and tables of Iceberg; what that tool writes to a topic has other fields"
        report(BAD_OPTION, f"{tool}(...) {said}: name them, changes(kafka(...), deleted=..., columns=...)")
    elif isinstance(made, SnapshotSource) and names_topic(made.path):
        report(
            BAD_OPTION,
            "snapshot(...) reads files and tables of Iceberg: a topic has changes(...), debezium(...) or feed(...), or records(...) of a stream",
        )
    elif isinstance(made, DebeziumSource | FeedSource) and transports.name_of(made.path) == ICEBERG:
        said = "a table of Iceberg has rows: snapshot(iceberg(...)); changes(iceberg(...), order_by=...), if each change is a row that is added"
        report(BAD_OPTION, f"{said}; or records(iceberg(...)) of a stream")
    elif declaration.key is None and transports.name_of(made.path) not in (FILES, SCHEME):
        report(
            BAD_OPTION,
            "a stream without id= is told by its places in files, and these records are in none: id= names the columns of their key",
        )
    elif declaration.key is None and made.meaning is Meaning.FEED:
        report(BAD_OPTION, "a stream of change events needs id=, the columns of their key; only files of records(...) are read once")


def _snapshot(options: Options, common: _Common, report: Reporter) -> SnapshotSource:
    deleted = share("max_delete_share", options, report)
    return SnapshotSource(common.path, deleted, _text("null", options, report), common.policy, common.share)


def _with_fields(
    made: RecordsSource | SnapshotSource, options: Options, found: tuple[Column, ...], report: Reporter, *, complete: bool
) -> RecordsSource | SnapshotSource:
    """The source with what it says of fields."""
    own = tuple(c for c in found if c != PLACE)
    given, written = columns(options["columns"], own, report, complete=complete), _format(options, made.path, report)
    if not given and written is None:
        return made
    check_names(tuple(sql for _, sql in given), own, given, report)
    _check_reads("columns= and format= are about", made.path, tuple(sql for _, sql in given), report)
    if isinstance(written, CsvFormat) and made.null:
        report(BAD_OPTION, "null stands in csv(...), where a format is given")
    return replace(made, columns=given, format=written)


def _feed(options: Options, common: _Common, found: tuple[Column, ...], report: Reporter) -> FeedSource:
    name = _text("dialect", options, report)
    if name == DebeziumSource.dialect:
        report(BAD_OPTION, f"dialect {name!r} has a function of its own, with its options: {name}(...)")
    elif name not in (there := dialects.known()):
        others = ", ".join(sorted(there.keys() - {DebeziumSource.dialect})) or "none"
        report(
            BAD_OPTION, f"dialect {name!r} is not installed{did_you_mean(name, there)}; beside {DebeziumSource.dialect} there are: {others}"
        )
    chosen = None if options["only"] is None else _text("only", options, report)
    _check_single(found, report)
    return FeedSource(common.path, name, chosen, *_within(options, report), common.policy, common.share)


def _within(options: Options, report: Reporter) -> tuple[Snapshots, float, OnIncomplete]:
    """What a feed says of the snapshots in it."""
    said, deleted = _one_of(Snapshots, "snapshots", options, report), share("max_delete_share", options, report)
    return said, deleted, _one_of(OnIncomplete, "on_incomplete", options, report)


def _debezium(options: Options, common: _Common, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> DebeziumSource:
    topic = None if options["topic"] is None else _text("topic", options, report)
    read = topic_path(common.path)
    if read is not None and topic not in (None, read.topic):
        report(BAD_OPTION, f"topic is {topic!r}, and all that is read comes from {read.topic!r}; topic= chooses among events of files")
    units = _units(options["units"], found, report, complete=complete)
    placeholder = _text("placeholder", options, report)
    return DebeziumSource(common.path, topic, units, placeholder, *_within(options, report), common.policy, common.share)


def _changes(options: Options, common: _Common, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> ChangesSource:
    transport, order = transports.name_of(common.path), options["order_by"]
    if transport == SCHEME and order is None:
        order = arrival()
    elif transport == ICEBERG and isinstance(order, Arrival):
        report(
            BAD_OPTION, "order_by: rows of a table arrive in no order; name the field, or SQL over fields, that says which change is newer"
        )
    made, written = mapping({**options, "order_by": order}, found, report, complete=complete), _format(options, common.path, report)
    _check_reads("changes(...) reads", common.path, made.given, report)
    return ChangesSource(common.path, made.order, made.deleted, made.columns, written, common.policy, common.share, made.loaded)


def _check_reads(what: str, path: str, given: tuple[str, ...], report: Reporter) -> None:
    """Reports records that have no fields, and fields that only a message has."""
    if transports.name_of(path) not in (FILES, SCHEME, ICEBERG):
        report(BAD_OPTION, f"{what} files, topics of Kafka and tables of Iceberg, and {path!r} is of another kind")
    of_messages = [name for sql in given for name in fields(sql) if name.startswith((f"{KEY}.", f"{HEADER}."))]
    if of_messages and not names_topic(path):
        report(BAD_OPTION, f"{of_messages[0]} is of the key, or a header, of a message, and {path!r} has none: that is of kafka(...)")


def _format(options: Options, path: str, report: Reporter) -> Format | None:
    """How files are written; of a topic that values are JSON, which they are anyway."""
    written = format_of(options["format"], report)
    if written is not None and names_topic(path) and not isinstance(written, JsonFormat):
        report(BAD_OPTION, f"values of a topic are JSON, or Avro with the registry's schemas; leave format={written.kind}(...) away")
    elif written is not None and transports.name_of(path) == ICEBERG:
        report(BAD_OPTION, "format= is about files: a table of Iceberg has columns; leave it away")
    return written


def _units(value: object, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        report(BAD_OPTION, "units must be a dict such as {'updated_at': 'ms'}")
        return ()
    named = {column.name: column for column in found}
    units: dict[str, str] = {}
    for name, unit in value.items():
        column = by_name(named).get(folded(str(name)))
        if unit not in _UNITS:
            report(BAD_OPTION, f"units[{name!r}] is {unit!r}; expected one of {', '.join(map(repr, _UNITS))}")
        elif column is not None and not types.is_about_time(column.type):
            report(BAD_OPTION, f"units[{name!r}]: the column is {column.type}, not a TIMESTAMP")
        elif column is None and complete:
            report(BAD_OPTION, f"units[{name!r}]: the schema has no such column{did_you_mean(str(name), named)}")
        elif column is not None:
            units[column.name] = str(unit)
    return tuple(sorted(units.items()))


def _path(options: Options, report: Reporter) -> str:
    """The path of files, or that of a topic, which ``kafka(...)`` names as it does for a sink."""
    path = options["path"]
    if isinstance(path, SinkDeclaration) and path.kind == SCHEME:
        path = _topic(dict(path.options), report)
    if not isinstance(path, str) or not path.strip():
        report(BAD_OPTION, "path must be a text that is not empty, or kafka(topic)")
        return ""
    if names_topic(path) and topic_path(path) is None:
        report(
            BAD_OPTION, f"{path!r} names no topic; expected {SCHEME}://<connection>/<topic>, the topic of letters, digits, '.', '_' and '-'"
        )
        return ""
    if names_captured(path) and captured_path(path) is None:
        report(BAD_OPTION, f"{path!r} names no table of a database; expected captured('schema.table', at='name of the connection')")
        return ""
    return path


def _topic(given: Mapping[str, object], report: Reporter) -> str:
    told = dict(kafka("").options)
    if of_sinks := [name for name, value in given.items() if name not in ("topic", "name") and value != told[name]]:
        report(BAD_OPTION, f"kafka(...) of a source has a topic and a name; {', '.join(of_sinks)} is about a sink")
    return f"{SCHEME}://{given['name']}/{given['topic']}"


def _text(name: str, options: Options, report: Reporter) -> str:
    value = options[name]
    if not isinstance(value, str):
        report(BAD_OPTION, f"{name} must be a text, not {value!r}")
        return ""
    return value


def _one_of(words: type[W], name: str, options: Options, report: Reporter) -> W:
    """The option's word; the last one after a report."""
    value = options[name]
    if value not in list(words):
        report(BAD_OPTION, f"{name} is {value!r}; expected {' or '.join(repr(str(word)) for word in words)}")
        return list(words)[-1]
    return words(str(value))
