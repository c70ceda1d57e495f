"""What the next run with a plan makes of what is stored: the plan compared with those of earlier runs. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rejoin.errors import RefreshRefused, RejoinError, SchemaRefused
from rejoin.plan.change.compatibility import (
    Columns,
    fits,
    only,
    refuse_forgotten,
    refuse_incompatible,
    refuse_other_meaning,
    refuse_respelled,
)
from rejoin.plan.change.edits import SEEN, expectation_edits, lost_and_gained, node_edits, sink_edits, table_edits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.policy import Refresh
from rejoin.plan.model.sinks import Sink, Start, sink_id


class Change(StrEnum):
    """What becomes of a table, an output or a sink."""

    NEW = "new"
    BACK = "comes back"  # earlier runs had it, the last one had not
    REBUILT = "rebuilt"  # computed from all rows, and compared with what is stored
    CHANGED = "changed"  # without being rebuilt
    SAME = "unchanged"
    LEFT = "left behind"  # no longer part of the topology; what is stored stays


class Kind(StrEnum):
    """What an entry is about."""

    TABLE = "table"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SINK = "sink"


@dataclass(frozen=True)
class Entry:
    """What becomes of one table, output or sink. ``why``: sentences for people; ``asks``: whether somebody has to agree to it first."""

    name: str
    kind: Kind
    change: Change
    why: tuple[str, ...] = ()
    asks: bool = False

    @property
    def computed(self) -> bool:
        """Whether all rows of an output are computed."""
        return self.kind in (Kind.OUTPUT, Kind.INTERMEDIATE) and self.change in (Change.NEW, Change.BACK, Change.REBUILT)


@dataclass(frozen=True)
class Stored:
    """What a lake knows of a topology.

    ``run``: the newest committed run; ``plan``: its plan; ``prints``: the fingerprints of the outputs that it left up to date.
    ``had``: every name that has stored rows -> the newest committed run whose plan had it, and that plan.
    ``made``: every output that the newest run did not leave up to date -> the newest run that did, and its plan.
    ``columns``: those that are stored of a table or output, in its rows and in its changes.
    """

    run: int
    plan: Plan
    prints: Mapping[str, str]
    had: Mapping[str, tuple[int, Plan]]
    made: Mapping[str, tuple[int, Plan]]
    columns: Columns


@dataclass(frozen=True)
class Outlook:
    """What the next run does. ``run``: the newest committed run; None before the first. ``refused``: why it would stop instead."""

    topology: str
    run: int | None
    entries: tuple[Entry, ...]
    refused: tuple[RejoinError, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether somebody has to agree first: something is rebuilt by an edit, left behind, or another thing for those who read a sink."""
        return any(e.asks for e in self.entries)


def outlook(plan: Plan, stored: Stored | None) -> Outlook:
    """The next run with ``plan``.

    How an output is refreshed is not compared: the ledger keeps what was asked of one run. An output that this run is asked to leave out
    (``Refresh.SKIP``) is unchanged.

    Args:
        plan: to run now.
        stored: what the lake knows; None: nothing was committed.
    """
    if stored is None:
        return Outlook(plan.topology, None, (*(_new(t.name, Kind.TABLE) for t in plan.tables), *_all_new(plan)))
    nodes: dict[str, Entry] = {}
    moving: set[str] = set()
    for node in plan.nodes:  # readers stand after what they read
        follows = [t for t in dict.fromkeys(node.reads) if t in moving]
        found = nodes[node.name] = _node(plan, stored, node, follows)
        moving |= {node.name} if found.computed or (follows and node.policy.refresh is not Refresh.SKIP) else set()
    entries = (*(_table(plan, stored, t.name) for t in plan.tables), *nodes.values(), *_left(plan, stored))
    return Outlook(plan.topology, stored.run, (*entries, *_sinks(plan, stored, nodes, moving)), tuple(_refused(plan, stored, nodes)))


def rows_at_most(plan: Plan, name: str, rows: Mapping[str, int | None]) -> int | None:
    """How many rows a table or output has before new input, at most: what is stored, or as many as its left side. None: not known.

    Args:
        plan: of the name.
        name: a table or node.
        rows: stored rows by name, of what is stored and stays.
    """
    if name in rows or plan.is_table(name):
        return rows.get(name, 0)
    return rows_at_most(plan, plan.node(name).left.table, rows)


def _new(name: str, kind: Kind, *why: str) -> Entry:
    return Entry(name, kind, Change.NEW, why)


def _all_new(plan: Plan) -> Iterator[Entry]:
    yield from (_new(n.name, _kind(n)) for n in plan.nodes)
    yield from (_new(sink_id(n.name, s), Kind.SINK, _target(s), _first(s)) for n in plan.nodes for s in n.sinks)


def _kind(node: Node) -> Kind:
    return Kind.OUTPUT if node.published else Kind.INTERMEDIATE


def _table(plan: Plan, stored: Stored, name: str) -> Entry:
    if name not in stored.had or not stored.had[name][1].is_table(name):
        return _new(name, Kind.TABLE)
    run, old = stored.had[name]
    why = (*table_edits(old.table(name), plan.table(name)), *expectation_edits(old.expectations(name), plan.expectations(name)))
    if run != stored.run:
        return Entry(name, Kind.TABLE, Change.BACK, (f"goes on with the rows that run {run} left", *why))
    return Entry(name, Kind.TABLE, Change.CHANGED if why else Change.SAME, why)


def _node(plan: Plan, stored: Stored, node: Node, follows: Sequence[str]) -> Entry:
    """``follows``: what it reads of which more changes than the new input makes."""
    name, kind = node.name, _kind(node)
    if node.policy.refresh is Refresh.SKIP:
        return Entry(name, kind, Change.SAME, ("left out by this run",))
    if name not in stored.had or stored.had[name][1].is_table(name):
        return _new(name, kind)
    had, print_ = stored.had[name][0], fingerprint(plan, node)
    if stored.prints.get(name) == print_ and had == stored.run:
        expected = expectation_edits(stored.plan.expectations(name), plan.expectations(name))
        why = (*expected, *(f"follows the changes of {t}" for t in follows))
        return Entry(name, kind, Change.CHANGED if why else Change.SAME, why)
    run, old = stored.made.get(name, stored.had[name])
    edited = fingerprint(old, old.node(name)) != print_
    why = node_edits(old, plan, name) if edited else ()
    if had != stored.run:
        return Entry(name, kind, Change.BACK, (f"rebuilt over the rows that run {had} left", *why), asks=True)
    if not edited and run != stored.run and node.keeps_what_it_saw:
        return Entry(name, kind, Change.CHANGED, (f"takes up the records since run {run}, which earlier runs have left out",))
    if not edited:
        why = (f"run {stored.run} left it as run {run} had made it",) if run != stored.run else ("made by another version of rejoin",)
    return Entry(name, kind, Change.REBUILT, why, asks=edited)


def _left(plan: Plan, stored: Stored) -> Iterator[Entry]:
    kept = set(plan.names)
    why = f"its tables stay as run {stored.run} left them"
    yield from (Entry(t.name, Kind.TABLE, Change.LEFT, (why,), asks=True) for t in stored.plan.tables if t.name not in kept)
    yield from (Entry(n.name, _kind(n), Change.LEFT, (why,), asks=n.published) for n in stored.plan.nodes if n.name not in kept)


def _sinks(plan: Plan, stored: Stored, nodes: Mapping[str, Entry], moving: Collection[str]) -> Iterator[Entry]:
    was, now = ({sink_id(n.name, s): (n, s) for n in p.nodes for s in n.sinks} for p in (stored.plan, plan))
    for name, (node, sink) in now.items():
        if name in was:
            yield _sink(was[name][1], node, sink, stored, nodes[node.name], follows=node.name in moving)
        elif nodes[node.name].change is Change.BACK:
            yield _new(name, Kind.SINK, _target(sink), "goes on where it stopped if it was delivered to before, else: " + _first(sink))
        else:
            yield _new(name, Kind.SINK, _target(sink), _first(sink))
    for name, (_, sink) in was.items():
        if name not in now:
            yield Entry(name, Kind.SINK, Change.LEFT, (_target(sink), "gets nothing more; the target stays as it is"), asks=True)


def _sink(old: Sink, node: Node, sink: Sink, stored: Stored, output: Entry, *, follows: bool) -> Entry:
    """A sink of the last run's plan and of this one. ``follows``: its output changes by more than the new input makes."""
    name, edits = sink_id(node.name, sink), sink_edits(old, sink)
    why, asks = list(edits.values()), any(field in SEEN for field in edits)
    if edits.keys() & {"kind", "topic", "table"}:
        why.append(f"its target is another one: the delivery stops (SINK_CURSOR_LOST) until `rejoin publish --sink {name} --snapshot`")
    if output.change is Change.REBUILT:
        lost, gained = lost_and_gained(stored.made.get(node.name, stored.had[node.name])[1].node(node.name), node)
        why += ["gets the net changes of the rebuild", *(f"column {c} is no longer delivered" for c in lost)]
        why += [f"column {c} is new{sink.new_column}" for c in gained]
    elif follows:
        why.append("gets the net changes that follow")
    return Entry(name, Kind.SINK, Change.CHANGED if why else Change.SAME, (_target(sink), *why), asks=asks or output.asks)


def _first(sink: Sink) -> str:
    return "gets every change since the first run" if sink.start is Start.CHANGES else "gets all rows once, then changes"


def _refused(plan: Plan, stored: Stored, nodes: Mapping[str, Entry]) -> Iterator[RejoinError]:
    for name in plan.names:
        run, old = stored.had.get(name, (stored.run, stored.plan))
        try:
            refuse_incompatible(only(stored.plan, name), only(plan, name))
            if name in stored.had:
                if run != stored.run or old.is_table(name) != plan.is_table(name):
                    refuse_other_meaning(run, old, plan, name)
                refuse_respelled(old, plan, name, stored.columns)
                refuse_forgotten(old, plan.with_horizons(stored.plan.horizons), name, away=run != stored.run)
        except SchemaRefused as error:
            yield error
            continue
        if name in nodes and nodes[name].change in (Change.REBUILT, Change.BACK):
            yield from _refused_rebuild(plan, stored.made.get(name, stored.had[name])[1], name)


def _refused_rebuild(plan: Plan, old: Plan, name: str) -> Iterator[RejoinError]:
    """What a run finds out when it rebuilds a stored output, as far as the plans tell."""
    node, was = plan.node(name), {p.name: p.type for p in old.node(name).columns}
    for column in node.columns:
        a, b = was.get(column.name), column.type
        if a is not None and b is not None and not fits(a, b) and not fits(b, a):
            yield SchemaRefused(
                f"column {column.name!r} of output {name!r} is {a} and cannot become {b}",
                expected="the same type or a wider one",
                next_step="give the column a new name in the topology, or cast it to the old type",
            )
    if node.policy.refresh is Refresh.INCREMENTAL_STRICT:
        yield RefreshRefused(
            f"output {name!r} would have to be recomputed: its definition is new",
            expected="refresh='incremental_strict' never recomputes",
            next_step="run once with --refresh full (in Airflow: Refresh in the form of a trigger), or give the new definition a new name",
        )


def _target(sink: Sink) -> str:
    return f"{sink.kind} {sink.target}"
