"""What the edge of a join found on its right: by a foreign key, by time, or on both sides. Reads stored rows, evaluates no SQL of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow.compute as pc

from rejoin.errors import SnapshotExpired
from rejoin.lake import table_names
from rejoin.lake.query.point_query import PointQuery
from rejoin.plan.model.added_columns import DELETED, VALID_FROM
from rejoin.plan.model.match import AsOf, Other, SameKey, Window
from rejoin.plan.model.plan import Edge, Node, Plan, View
from rejoin.statements.own_columns import HASH, RUN, numbered
from rejoin.why.answer import Cause, Match, OutputRow, Reason, SourceRow, State, is_there
from rejoin.why.reasons import StoredRight, plain_column, plain_values
from rejoin.why.right_matches import Alone, How, Keys, OfRun, Rule, Valid, Within, keys_said

Row = Mapping[str, Any]


class Trace(Protocol):
    """Who follows rows down to their records, as of one run."""

    query: PointQuery
    plan: Plan

    def any(self, name: str, key: Sequence[Any]) -> tuple[SourceRow | OutputRow, Row | None]:
        """What is known of a key, and its stored row, if there is one."""

    def of_run(self, run: int) -> "Trace":
        """The same as of another run."""


@dataclass(frozen=True)
class Side:
    """The right of an edge. ``told``: why there is no such row in the output, if the join itself tells it."""

    foreign_key: tuple[Any, ...] | None
    row: SourceRow | OutputRow | None
    seen: StoredRight
    how: How | None = None
    told: tuple[Reason, ...] = ()


def nothing(match: Match | None = None, how: How | None = None, *told: Reason) -> Side:
    return Side(None, None, StoredRight(None, there=False, hash=None, match=match), how, told)


def side(trace: Trace, node: Node, edge: Edge, key: Sequence[Any], rows: tuple[Row | None, Row | None]) -> Side:
    """What an edge found for a key of its output. ``rows``: the stored rows of the output and of its left, where there are some."""
    stored, left = rows
    own, other = key[: len(trace.plan.left_key(node))], tuple(key[len(trace.plan.left_key(node)) :])
    match node.match:
        case SameKey():
            return _of_key(trace, edge, tuple(key))
        case Other():
            return nothing(Match.UNKNOWN, Rule(node.match.kind))
        case AsOf():
            return _as_of(trace, node, edge, left, stored)
        case Window():
            return _Windowed(trace, node, edge).side(left, other)
    if not node.two_sided:
        found = trace.query.foreign_key(node, edge, own)
        return nothing() if found is None else _of_key(trace, edge, found)
    return _two_sided(trace, node, edge, (own, other), stored)


def _of_key(trace: Trace, edge: Edge, key: tuple[Any, ...]) -> Side:
    row, stored = trace.any(edge.right.table, key)
    return Side(key, row, StoredRight(key, is_there(row), None if stored is None else stored[HASH]))


# --- a stream with a table --------------------------------------------------------------------------------------------------


def _as_of(trace: Trace, node: Node, edge: Edge, left: Row | None, stored: Row | None) -> Side:
    match = edge.match
    assert isinstance(match, AsOf)
    if left is None:
        return nothing(Match.UNASKED)
    key = plain_values(node.left, edge, left)
    if key is None:
        return nothing(Match.UNKNOWN)
    if None in key:
        return nothing(Match.NULL)
    if match.left_time is not None:
        column = plain_column(node.left, match.left_time)
        return nothing(Match.UNKNOWN) if column is None else _valid(trace, edge, key, left[column])
    run = int((left if stored is None else stored)[RUN])
    try:
        found = _of_key(trace if run == trace.query.run else trace.of_run(run), edge, key)
    except SnapshotExpired:
        return replace(nothing(Match.UNKNOWN, OfRun(run, expired=True)), foreign_key=key)
    return replace(found, how=OfRun(run), told=_absent(trace.plan, edge, found))


def named(plan: Plan, edge: Edge) -> tuple[str, str]:
    """What the user calls an edge and its table: nobody has declared a table of versions."""
    table = edge.right.table
    own = (plan.table(table).versions_of or table) if plan.is_table(table) else table
    return own if edge.name == table else edge.name, own


def _absent(plan: Plan, edge: Edge, found: Side) -> tuple[Reason, ...]:
    return () if edge.kind.keeps_left or found.seen.there else (Reason(Cause.ABSENT, named(plan, edge)[0]),)


def _valid(trace: Trace, edge: Edge, key: tuple[Any, ...], at: datetime) -> Side:
    """The version of a row that was valid at a time, if one was, shown as a row of its table."""
    table = trace.plan.table(edge.right.table)
    columns = table.key[:-1]
    newest: dict[datetime, Row] = {}
    stored = trace.query.having(table.name, dict(zip(columns, key, strict=True)))
    for version in [] if stored is None else stored.sort_by(RUN).to_pylist(maps_as_pydicts="strict"):
        newest[version[VALID_FROM]] = version
    since = max((t for t in newest if t <= at), default=None)
    how = Valid(at, since, min((t for t in newest if t > at), default=None), since is not None and bool(newest[since][DELETED]))
    row, now = (None, None) if since is None else trace.any(table.name, (*key, since))
    if isinstance(row, SourceRow):
        state = State.REMOVED if how.gone else row.state
        row = replace(row, name=table.versions_of or table.name, key={c: row.key[c] for c in columns}, state=state)
    there = since is not None and not how.gone
    seen = StoredRight(key, there, None if now is None else now[HASH], None if there else Match.ABSENT)
    found = Side(key, row, seen, how)
    return replace(found, told=_absent(trace.plan, edge, found))


# --- right and full joins by a foreign key ----------------------------------------------------------------------------------


def _two_sided(trace: Trace, node: Node, edge: Edge, keys: tuple[Sequence[Any], tuple[Any, ...]], stored: Row | None) -> Side:
    own, other = keys
    if _null(own):
        found, right = _of_key(trace, edge, other), trace.any(edge.right.table, other)[1]
        if right is None:
            return found
        lefts = _subscribers(trace, node, edge, [right[k] for k in trace.plan.key_of(edge.right.table)])
        told = (Reason(Cause.PARTNERS, edge.name, keys_said(lefts)),) if lefts else ()
        return replace(found, how=Alone(lefts), told=told)
    key = trace.query.foreign_key(node, edge, own)
    if _null(other):
        found = nothing() if key is None else _of_key(trace, edge, key)
        told = (Reason(Cause.PARTNERS, edge.name, keys_said([key])),) if key is not None and found.seen.there else ()
        return replace(found, told=told)
    found, right = _of_key(trace, edge, other), trace.any(edge.right.table, other)[1]
    if stored is None and right is not None and tuple(right[k] for k in trace.plan.key_of(edge.right.table)) != key:
        return replace(found, told=(Reason(Cause.MOVED, edge.name, "null" if key is None else keys_said([key])),))
    return found


def _subscribers(trace: Trace, node: Node, edge: Edge, key: Sequence[Any]) -> Keys:
    """The keys of the left rows that are subscribed to the right row with this key."""
    primary = numbered("pk", len(trace.plan.left_key(node)))
    rows = trace.query.having(table_names.subscriptions(node, edge), dict(zip(numbered("fk", len(key)), key, strict=True)))
    newest = {tuple(r[c] for c in primary): r["_op"] for r in ([] if rows is None else rows.sort_by(RUN).to_pylist())}
    return tuple(sorted((pk for pk, op in newest.items() if op == "S"), key=str))


# --- two streams ------------------------------------------------------------------------------------------------------------


class _Windowed:
    """Two streams within a time."""

    def __init__(self, trace: Trace, node: Node, edge: Edge) -> None:
        assert isinstance(edge.match, Window)
        self._trace, self._node, self._edge, self._window = trace, node, edge, edge.match
        self._lefts = _Stream(node.left, plain_column(node.left, self._window.left_time), _columns(node.left, edge.foreign_key))
        on = tuple(plain_column(edge.right, name) for name in self._window.on)
        self._rights = _Stream(edge.right, plain_column(edge.right, self._window.right_time), on)

    def side(self, left: Row | None, other: tuple[Any, ...]) -> Side:
        """``left``: the stored left record, if the result has one; ``other``: the key of the right one, null where it has none."""
        if _null(other):
            return nothing(Match.UNASKED) if left is None else self._alone(left, of_left=True, found=nothing(Match.ABSENT))
        found = _of_key(self._trace, self._edge, other)
        stored = self._trace.any(self._edge.right.table, other)[1]
        if left is None or stored is None:
            return found if stored is None else self._alone(stored, of_left=False, found=found)
        first, second = self._lefts.at(left), self._rights.at(stored)
        if first is None or second is None:
            return found
        how = Within(first, second, _moved(first, -self._window.before), _moved(first, self._window.after))
        told = [] if how.first <= second <= how.last else [Reason(Cause.OUTSIDE, self._edge.name)]
        mine, theirs = self._lefts.values(left), self._rights.values(stored)
        if mine is not None and theirs is not None and (mine != theirs or None in mine):
            told.append(Reason(Cause.DIFFERENT, self._edge.name))
        return replace(found, how=how, told=tuple(told))

    def _alone(self, row: Row, *, of_left: bool, found: Side) -> Side:
        """A record without partner in the key: whether it has some, or waits for one."""
        window, kind = self._window, self._edge.kind
        own, others = (self._lefts, self._rights) if of_left else (self._rights, self._lefts)
        at = own.at(row)
        if at is None:
            return found
        reach = (window.before, window.after) if of_left else (window.after, window.before)
        first, last = _moved(at, -reach[0]), _moved(at, reach[1])
        partners, mark = self._partners(own.values(row), others, first, last), self._watermark(row, own)
        let_go = not partners and self._let_go(others, first)
        partners = None if let_go else partners
        how = Within(at if of_left else None, None if of_left else at, first, last, mark, partners, let_go)
        name = self._edge.name
        if not (kind.keeps_left if of_left else kind.keeps_right):
            return replace(found, how=how, told=(Reason(Cause.ONLY_PAIRS, name),))
        if partners:
            return replace(found, how=how, told=(Reason(Cause.PARTNERS, name, keys_said(partners)),))
        waits = partners is not None and not window.at_once and None not in (own.values(row) or ()) and (mark is None or last >= mark)
        return replace(found, how=how, told=(Reason(Cause.WAITS, name, f"{last}"),) if waits else ())

    def _let_go(self, others: "_Stream", first: datetime) -> bool:
        """Whether records from a time on may have been let go."""
        stored = self._trace.plan.stored_from(others.view.table)
        return stored is not None and first < _moved(datetime.fromtimestamp(0, UTC).replace(tzinfo=first.tzinfo), stored)

    def _partners(self, values: tuple[Any, ...] | None, others: "_Stream", first: datetime, last: datetime) -> Keys | None:
        """The keys of the other records of these values within a time; None where stored rows do not tell."""
        if values is not None and None in values:
            return ()
        if values is None or others.time is None or None in others.on:
            return None
        wanted = {str(c): v for c, v in zip(others.on, values, strict=True)}
        rows = self._trace.query.having(others.view.table, wanted, (others.time, first, last))
        if rows is None or (rows.num_rows and others.view.where is not None):
            return None
        key, newest = self._trace.plan.key_of(others.view.table), dict[tuple[Any, ...], Row]()
        for row in rows.sort_by(RUN).to_pylist(maps_as_pydicts="strict"):
            newest[tuple(row[k] for k in key)] = row
        return tuple(k for k, row in newest.items() if row.get("_op") != "D")

    def _watermark(self, row: Row, own: "_Stream") -> datetime | None:
        """The watermark of a record; None: not known, or there is none yet."""
        window, newest = self._window, list[datetime]()
        mine = window.left_clock if own is self._lefts else window.right_clock
        clock = [plain_column(own.view, name) for name in mine]
        for stream, clocks in ((self._lefts, window.left_clock), (self._rights, window.right_clock)):
            columns = [plain_column(stream.view, name) for name in clocks]
            if stream.time is None or None in columns or None in clock:
                return None
            wanted = {str(c): row[str(m)] for c, m in zip(columns, clock, strict=True)}
            rows = self._trace.query.having(stream.view.table, wanted)
            newest += [] if rows is None or not rows.num_rows else [pc.max(rows[stream.time]).as_py()]
        if not newest or (window.each and len(newest) < len((self._lefts, self._rights))):
            return None
        return _moved(min(newest) if window.each else max(newest), -window.lateness)


@dataclass(frozen=True)
class _Stream:
    """One stream: its view, and the stored columns of its event time and of what has to be equal; None where these are expressions."""

    view: View
    time: str | None
    on: tuple[str | None, ...]

    def at(self, row: Row) -> datetime | None:
        return None if self.time is None else row[self.time]

    def values(self, row: Row) -> tuple[Any, ...] | None:
        return None if None in self.on else tuple(row[str(c)] for c in self.on)


def _columns(left: View, parts: Sequence[str]) -> tuple[str | None, ...]:
    """The stored columns of a foreign key."""
    names = {f"l.`{p.name}`": p.name for p in left.columns}
    return tuple(plain_column(left, names[part]) if part in names else None for part in parts)


def _moved(at: datetime, micros: int) -> datetime:
    """A time so many microseconds later, within the years that there are."""
    try:
        return at + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.min.replace(tzinfo=at.tzinfo) if micros < 0 else datetime.max.replace(tzinfo=at.tzinfo)


def _null(key: Sequence[Any]) -> bool:
    """Whether it is the key of no row."""
    return all(part is None for part in key)
