"""Streams that let old records go: which ones, up to where, and what has to stay as it is since then (ADR 0012, "Letting records go"). Pure."""

from collections.abc import Callable, Iterator

from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Node, Plan, Table
from rejoin.plan.model.policy import Horizon

Newest = Callable[[str], int | None]
"""The newest event time of a stream, in microseconds; None where nothing is stored, or nothing tells it."""


def why_kept(plan: Plan, stream: Table) -> str | None:
    """Why a stream with a retention lets nothing go, as a part of a sentence; None if it does.

    A record can go if no record that may still come has it as a partner, and none that it could decide about: so in windows of two streams that
    refuse old records, and where a record keeps the row that it saw. In other joins a table's row changes results of any age.
    """
    for node in _readers(plan, stream.name):
        match = node.match
        if node.keeps_what_it_saw and all(edge.right.table != stream.name for edge in node.edges):
            continue
        if not isinstance(match, Window):
            return f"{node.name} can change at any age"
        if match.left_clock:
            return f"{node.name} has a clock of its own for every value"
        if any(_retention(plan, side) is None for side in node.reads):
            return f"{node.name} joins it with a stream that refuses no record"
    return None


def horizon(plan: Plan, stream: Table, newest: Newest) -> Horizon | None:
    """From where on a stream has to be stored, as the newest records of all streams are now; None if it lets nothing go."""
    if stream.retention is None or why_kept(plan, stream) is not None:
        return None
    ends = [_oldest(plan, stream.name, newest)]
    reaches = [0]
    for node in _readers(plan, stream.name):
        if isinstance(node.match, Window):
            ends += [_oldest(plan, side, newest) for side in node.reads]
            ends.append(_watermark(node, node.match, newest))
            reaches.append(reach(node.match))
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    return Horizon(stream.name, min(known) - 2 * max(reaches), min(known))


def advanced(plan: Plan, found: Horizon) -> tuple[Horizon, ...]:
    """The horizons of a plan with one that is further on: what its stream, and those it meets in windows, refuse from now on."""
    made = {h.stream: h for h in plan.horizons}
    windows = [node for node in _readers(plan, found.stream) if isinstance(node.match, Window)]
    for name in sorted({found.stream, *(side for node in windows for side in node.reads)}):
        before = made.get(name, Horizon(name, None, found.taken))
        stored = found.stored if name == found.stream else before.stored
        made[name] = Horizon(name, _later(before.stored, stored), max(before.taken, found.taken))
    return tuple(made[name] for name in sorted(made))


def settled(plan: Plan, node: Node) -> bool:
    """Whether results of a node rest on records that are not stored any more: they stay as they are, whatever is recomputed."""
    return (isinstance(node.match, Window) or node.keeps_what_it_saw) and any(plan.stored_from(name) is not None for name in node.reads)


def reach(window: Window) -> int:
    """How far apart two records of a pair are at most, in microseconds."""
    return abs(window.before) + abs(window.after)


def _later(one: int | None, other: int | None) -> int | None:
    return max((end for end in (one, other) if end is not None), default=None)


def _readers(plan: Plan, name: str) -> Iterator[Node]:
    return (node for node in plan.nodes if name in node.reads)


def _retention(plan: Plan, name: str) -> int | None:
    return plan.table(name).retention if plan.is_table(name) else None


def _oldest(plan: Plan, name: str, newest: Newest) -> int | None:
    """The oldest time that a record to come may have."""
    at, kept = newest(name), _retention(plan, name)
    return None if at is None or kept is None else at - kept


def _watermark(node: Node, window: Window, newest: Newest) -> int | None:
    times = [at for side in node.reads if (at := newest(side)) is not None]
    if len(times) < 2:
        return None
    return (min(times) if window.each else max(times)) - window.lateness
