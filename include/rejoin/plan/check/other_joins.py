"""What a join says beside a foreign key, checked: two tables by their keys, two streams within a time, a stream as of some time."""

from collections.abc import Sequence
from dataclasses import replace

from rejoin.declare.declarations import JoinDeclaration
from rejoin.plan.check import tables
from rejoin.plan.check.foreign_key_joins import check_items, foreign_key, kind_of, made, of_type
from rejoin.plan.check.relations import Join, Rows, Shape, Timed, null_keys, side
from rejoin.plan.extensions import join_kinds
from rejoin.plan.model import durations, problems
from rejoin.plan.model.added_columns import VALID_FROM
from rejoin.plan.model.column_names import spelled
from rejoin.plan.model.match import AsOf, JoinKind, Other, SameKey, Window
from rejoin.plan.model.plan import Table
from rejoin.plan.model.problems import Reporter
from rejoin.plan.model.sources import DebeziumSource
from rejoin.plan.sql.expressions import LEFT, RIGHT, Expression, Ref, Scope, column

WINDOWED = ("within", "before", "after", "unmatched", "clock", "watermark")
OF_STREAMS = (*WINDOWED, "on")
EVENT_TIME, ARRIVAL, RUN = "event_time", "arrival", "run"


def by_foreign_key(declaration: JoinDeclaration, left: Shape, right: Shape) -> bool:
    """Whether it is a join of tables by a foreign key."""
    how = declaration.how
    return declaration.foreign_key is not None and not {"as_of", "by"} & how.keys() and not _is_window(declaration, left, right)


def _is_window(declaration: JoinDeclaration, left: Shape, right: Shape) -> bool:
    both = left.timed is not None and right.timed is not None and "as_of" not in declaration.how
    return any(option in declaration.how for option in OF_STREAMS) or (both and declaration.foreign_key is None)


def check(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join | None:
    """A join by anything but a foreign key alone; None after a report that leaves nothing to say."""
    if "by" in declaration.how:
        return _other(declaration, left, right, report)
    if "as_of" in declaration.how:
        return _as_of(declaration, left, right, report)
    if _is_window(declaration, left, right):
        return _window(declaration, left, right, report)
    return _same_key(declaration, left, right, report)


def _same_key(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join | None:
    if (left.timed is None) != (right.timed is None):
        report(problems.BAD_OPTION, _AS_OF_WANTED)
        return None
    if len(left.key) != len(right.key):
        keys = f"{', '.join(left.key)} and {', '.join(right.key)}"
        report(problems.FK_COUNT, f"without a foreign_key two tables are joined by their keys, which have not as many columns: {keys}")
        return None
    if kind_of(declaration) is JoinKind.FULL and null_keys(left) and null_keys(right):
        report(
            problems.BAD_OPTION,
            "full_join by keys that may be null on both sides: null is not equal to null, so two rows would have one key; use foreign_key=",
        )
    pairs = _typed(left.key, left, right.key, right, report)
    chosen = check_items(declaration, left, right, right.key, report)
    items = dict(chosen.items)
    if kind_of(declaration).keeps_right:
        for name, key, other in zip(chosen.key, left.key, right.key, strict=False):
            items[name] = replace(items[name], parts=("coalesce(", Ref(LEFT, key), ", ", Ref(RIGHT, other), ")"))
    return made(declaration, pairs, replace(chosen, items=items), SameKey())


def _other(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join | None:
    """By a rule that a package brings: the foreign key, part by part, with the key of the right."""
    kind, before = declaration.how["by"], len(report.problems.found)
    if not isinstance(kind, str) or kind not in join_kinds.known():
        report(
            problems.BAD_OPTION,
            f"by={kind!r}: no such kind of join is installed; there are: {', '.join(sorted(join_kinds.known())) or 'none'}",
        )
    if others := sorted(declaration.how.keys() - {"by"}):
        report(problems.BAD_OPTION, f"{', '.join(others)}: not with by=, whose rule is all there is")
    if kind_of(declaration).keeps_right:
        report(problems.BAD_OPTION, "by: only left rows make results; use join or left_join")
    by = foreign_key(declaration.foreign_key, Scope({LEFT: side(left)}), right, report)
    chosen = check_items(declaration, left, right, right.key, report)
    return made(declaration, by, chosen, Other(str(kind), right.key)) if len(report.problems.found) == before else None


def _as_of(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join | None:
    before = len(report.problems.found)
    how = declaration.how["as_of"]
    if how not in (EVENT_TIME, ARRIVAL, RUN):
        report(problems.BAD_OPTION, f"as_of={how!r} is not one of {EVENT_TIME!r}, {ARRIVAL!r}, {RUN!r}")
    if others := [option for option in OF_STREAMS if option in declaration.how]:
        report(problems.BAD_OPTION, f"{', '.join(others)}: only two streams are joined so, and as_of is for a stream and a table")
    if left.timed is None:
        report(problems.BAD_OPTION, f"as_of: the left side must be a stream, and {left.label} is none; put the stream on the left")
    if kind_of(declaration).keeps_right:
        report(problems.BAD_OPTION, "as_of: only the stream makes rows; use join or left_join")
    if how == EVENT_TIME and not has_versions(right):
        what = "a table with a debezium(...) source, filtered or selected at most: the source's commit times are its versions"
        report(problems.BAD_OPTION, f"as_of={EVENT_TIME!r}: the right side must be {what}")
    if len(report.problems.found) > before or left.timed is None:
        return None
    by = foreign_key(declaration.foreign_key or left.timed.on, Scope({LEFT: side(left)}), right, report)
    time = None
    if how == EVENT_TIME:
        time = left.timed.time
        if left.columns[time].known != "TIMESTAMP":
            report(problems.BAD_TYPE, f"as_of={EVENT_TIME!r}: the event time {time!r} must be a TIMESTAMP, as commit times are")
    chosen = check_items(declaration, left, right, right.key, report)
    return made(declaration, by, chosen, AsOf(right.key, time, VALID_FROM if time else None))


def has_versions(right: Shape) -> bool:
    """Whether the versions of its rows are known."""
    return (
        isinstance(right, Rows) and isinstance(right.base, Table) and right.timed is None and isinstance(right.base.source, DebeziumSource)
    )


def _window(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join | None:
    how = declaration.how
    if left.timed is None or right.timed is None:
        what = " and ".join(shape.label for shape in (left, right) if shape.timed is None)
        options = ", ".join(option for option in OF_STREAMS if option in how)
        report(problems.BAD_OPTION, f"{options}: both sides must be streams that still have their event time, and {what} is none")
        return None
    if declaration.foreign_key is not None:
        report(problems.BAD_OPTION, "foreign_key: streams are joined on='column', or on='left column = right column'")
    before, after = _reach(declaration, report)
    unmatched = how.get("unmatched", "closed")
    if unmatched not in ("closed", "at_once"):
        report(problems.BAD_OPTION, f"unmatched={unmatched!r} is not 'closed' or 'at_once'")
    watermark = how.get("watermark", "newest")
    if watermark not in ("newest", "each"):
        report(problems.BAD_OPTION, f"watermark={watermark!r} is not 'newest' or 'each'")
    if watermark == "each" and unmatched == "at_once":
        report(problems.BAD_OPTION, "watermark='each': with unmatched='at_once' nothing waits for a watermark")
    for option in ("unmatched", "watermark"):
        if option in how and kind_of(declaration) is JoinKind.INNER:
            report(problems.BAD_OPTION, f"{option}: an inner join has no rows without partner")
    on = _on(how.get("on"), left.timed, right.timed, report)
    if on is None:
        return None
    pairs = _typed(on[0], left, on[1], right, report)
    times = (left.columns[left.timed.time].known, right.columns[right.timed.time].known)
    if times[0] != times[1]:
        report(problems.BAD_TYPE, f"the event times are {times[0]} and {times[1]}; CAST one in a select")
    chosen = check_items(declaration, left, right, (), report)
    lateness = max(left.timed.lateness, right.timed.lateness)
    names = tuple(side(right).find(name) or name for name in on[1])
    clock = _clock(how.get("clock"), on[0], report)
    clocks = tuple(side(left).find(on[0][i]) or "" for i in clock), tuple(names[i] for i in clock)
    match = Window(
        names, left.timed.time, right.timed.time, before, after, lateness, unmatched == "at_once", *clocks, each=watermark == "each"
    )
    return made(declaration, pairs, chosen, match)


def _reach(declaration: JoinDeclaration, report: Reporter) -> tuple[int, int]:
    """How far before and after a left record its partners may be, in microseconds."""
    given = {name: declaration.how[name] for name in ("within", "before", "after") if name in declaration.how}
    lengths = {name: (durations.micros if name == "within" else durations.signed)(written) for name, written in given.items()}
    for name, found in lengths.items():
        if found is None:
            report(problems.BAD_OPTION, f"{name}={given[name]!r}: expected {durations.EXPECTED}")
    if not given or ("within" in given and len(given) == 3):
        report(
            problems.BAD_OPTION, "two streams are joined within='10 seconds', or before= and after= (one that is left out is within, or 0)"
        )
    within = lengths.get("within") or 0
    before, after = lengths.get("before", within) or 0, lengths.get("after", within) or 0
    if before + after < 0:
        report(problems.BAD_OPTION, "the window ends before it begins: before and after together are below zero")
    return before, after


def _on(written: object, left: Timed, right: Timed, report: Reporter) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The columns of the left and of the right that are equal."""
    if written is None:
        if not left.on or len(left.on) != len(right.on):
            report(
                problems.BAD_OPTION, "on: the streams have no keys of as many columns; say on='column' or on='left column = right column'"
            )
            return None
        return left.on, right.on
    names = tables.texts(written)
    if names is None:
        report(problems.BAD_OPTION, "on: a column, 'left column = right column', or a list of them is expected")
        return None
    pairs = [[part.strip() for part in name.split("=")] for name in names]
    return tuple(pair[0] for pair in pairs), tuple(pair[-1] for pair in pairs)


def _clock(written: object, on: tuple[str, ...], report: Reporter) -> list[int]:
    """The positions, among the columns ``on`` of the left, of those whose values have times of their own."""
    names = () if written is None else tables.texts(written)
    known = [spelled(name, on) for name in names or ()]
    if names is None or None in known:
        report(problems.BAD_OPTION, f"clock={written!r}: expected some of the columns by which the streams are joined: {', '.join(on)}")
        return []
    return [on.index(name) for name in known if name is not None]


def _typed(lefts: Sequence[str], left: Shape, rights: Sequence[str], right: Shape, report: Reporter) -> tuple[Expression, ...]:
    """The left columns, in the types of the right ones."""
    found: list[Expression] = []
    for name, other in zip(lefts, rights, strict=True):
        here, there = side(left).find(name), side(right).find(other)
        if here is None or there is None:
            missing, shape = (name, left) if here is None else (other, right)
            if shape.complete:
                report(problems.UNKNOWN_COLUMN, f"unknown column {missing!r} of {shape.label}")
            continue
        own = column(LEFT, here, left.columns[here].type, left.columns[here].known)
        about = report.about(f"{name!r}: ")
        found.append(of_type(own, right.columns[there].known, f"column {other!r} of {right.label}", about))
    return tuple(found)


_AS_OF_WANTED = (
    "a stream is joined with a table as_of='event_time' (the row that was valid at the time of the record), 'arrival' or 'run' (the row that is "
    "there in the run which reads it), with the stream on the left"
)
