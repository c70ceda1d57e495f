"""What a table or stream says of where its rows come from, checked."""

from typing import Final, NamedTuple

from rejoin.declare.declarations import SourceDeclaration, TableDeclaration
from rejoin.plan.captured_path import captured_path, names_captured
from rejoin.plan.check.tables import share
from rejoin.plan.extensions import dialects, transports
from rejoin.plan.model.column_names import by_name, folded
from rejoin.plan.model.plan import Column
from rejoin.plan.model.problems import BAD_OPTION, Reporter, did_you_mean
from rejoin.plan.model.sources import SOURCES, DebeziumSource, FeedSource, Meaning, OnBadRecord, RecordsSource, SnapshotSource, Source
from rejoin.plan.pin import FILES
from rejoin.plan.sql import types

NO_SOURCE: Final = SnapshotSource("")  # stands for a source with a mistake; such a plan is never returned
_UNITS: Final = ("ms", "us", "ns")
Options = dict[str, object]


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
    elif isinstance(written, SourceDeclaration):
        report, options = Reporter(report.problems, written.place, report.prefix), dict(written.options)
    else:
        report(
            BAD_OPTION, f"source must be {'snapshot(...)' if declaration.stream is None else 'records(...)'}, debezium(...) or feed(...)"
        )
        return None
    before = len(report.problems.found)
    common = _Common(_path(options, report), share("max_bad_share", options, report), _policy(options, report))
    kind = SOURCES[written.kind]
    made: Source
    if kind is DebeziumSource:
        made = _debezium(options, common, found, report, complete=complete)
    elif kind is FeedSource:
        made = _feed(options, common, report)
    elif kind is RecordsSource:
        made = RecordsSource(common.path, _text("null", options, report), common.policy, common.share, declaration.key is None)
    else:
        made = _snapshot(options, common, report)
    _check_fits(made, declaration, report)
    return made if len(report.problems.found) == before else None


def _check_fits(made: Source, declaration: TableDeclaration, report: Reporter) -> None:
    """Rows of a table are replaced and deleted, records of a stream only added."""
    if declaration.stream is None and isinstance(made, RecordsSource):
        report(
            BAD_OPTION, "records(...) is for a stream, whose records are only added; a table has snapshot(...), debezium(...) or feed(...)"
        )
    elif declaration.stream is not None and isinstance(made, SnapshotSource):
        said = "snapshot(...) is for a table, whose rows a newer snapshot replaces"
        report(BAD_OPTION, f"{said}; a stream has records(...), of whose files each adds its records, debezium(...) or feed(...)")
    elif names_captured(made.path) and not isinstance(made, DebeziumSource):
        report(BAD_OPTION, "captured(...) lands Debezium's change events: debezium(captured(...))")
    elif declaration.key is None and transports.name_of(made.path) != FILES:
        report(
            BAD_OPTION,
            "a stream without id= is told by its places in files, and these records are in none: id= names the columns of their key",
        )
    elif declaration.key is None and made.meaning is Meaning.FEED:
        report(BAD_OPTION, "a stream of change events needs id=, the columns of their key; only files of records(...) are read once")


def _snapshot(options: Options, common: _Common, report: Reporter) -> SnapshotSource:
    deleted = share("max_delete_share", options, report)
    return SnapshotSource(common.path, deleted, _text("null", options, report), common.policy, common.share)


def _feed(options: Options, common: _Common, report: Reporter) -> FeedSource:
    name = _text("dialect", options, report)
    if name == DebeziumSource.dialect:
        report(BAD_OPTION, f"dialect {name!r} has a function of its own, with its options: {name}(...)")
    elif name not in (there := dialects.known()):
        others = ", ".join(sorted(there.keys() - {DebeziumSource.dialect})) or "none"
        report(
            BAD_OPTION, f"dialect {name!r} is not installed{did_you_mean(name, there)}; beside {DebeziumSource.dialect} there are: {others}"
        )
    chosen = None if options["only"] is None else _text("only", options, report)
    return FeedSource(common.path, name, chosen, common.policy, common.share)


def _debezium(options: Options, common: _Common, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> DebeziumSource:
    topic = None if options["topic"] is None else _text("topic", options, report)
    units = _units(options["units"], found, report, complete=complete)
    return DebeziumSource(common.path, topic, units, _text("placeholder", options, report), common.policy, common.share)


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
    path = options["path"]
    if not isinstance(path, str) or not path.strip():
        report(BAD_OPTION, "path must be a text that is not empty")
        return ""
    if names_captured(path) and captured_path(path) is None:
        report(BAD_OPTION, f"{path!r} names no table of a database; expected captured('schema.table', at='name of the connection')")
        return ""
    return path


def _text(name: str, options: Options, report: Reporter) -> str:
    value = options[name]
    if not isinstance(value, str):
        report(BAD_OPTION, f"{name} must be a text, not {value!r}")
        return ""
    return value


def _policy(options: Options, report: Reporter) -> OnBadRecord:
    value = options["on_bad_record"]
    if value not in list(OnBadRecord):
        expected = " or ".join(repr(str(policy)) for policy in OnBadRecord)
        report(BAD_OPTION, f"on_bad_record is {value!r}; expected {expected}")
        return OnBadRecord.FAIL
    return OnBadRecord(str(value))
