"""deliver: one sink catches up with the committed runs of its output, from its own cursor, in the order of the runs.

Works from what is committed alone: no run has to be open, and nothing here can hold one up.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rejoin import crash
from rejoin.conduct import Progress, Topology
from rejoin.errors import RunUnknown, SinkCursorLost, SinkFenced, SinksBehind, SinkSlow, UnknownTable
from rejoin.failures import named_errors, told
from rejoin.lake import feed, names
from rejoin.lake.deliveries import Cursor, Deliveries, Delivery, fenced
from rejoin.lake.records import StepRecord
from rejoin.plan.model import Node
from rejoin.plan.sinks import Sink, Start, sink_id
from rejoin.plan.steps import deliveries as steps_of
from rejoin.sinks.connect import connect
from rejoin.sinks.position import Content, Position
from rejoin.sinks.target import Rows, Target

PARALLEL_SINKS = 4
TAKE_OVERS = 3
"""So often does an attempt that is the newest one take over a sink that fenced it off."""


@dataclass(frozen=True)
class Restart:
    """Where to start anew. ``from_run``: with the changes of this run; None: with a snapshot of the newest one."""

    from_run: int | None


def deliver(topology: Topology, name: str, restart: Restart | None = None) -> Delivery:
    """Brings one sink up to date with the newest committed run.

    Args:
        topology: the topology; its plan says which sinks there are.
        name: ``output.sink``.
        restart: deliver again what was delivered already.

    Raises:
        UnknownTable: there is no such sink.
        RunUnknown: ``restart`` names a run that is not committed.
        SinkFenced: a newer attempt has taken over.
        RejoinError: the sink's own trouble. What it has committed stays, and the next delivery goes on from there.
    """
    node, sink = find(topology, name)
    deliveries, started = Deliveries(topology.ledger), time.monotonic()
    head = topology.ledger.head()
    if head is None or node.name not in {n.name for n in topology.ledger.run(head).plan.nodes}:
        return Delivery(name, 0, 0, 0.0, None)
    if restart is None and (newest := _up_to_date(deliveries, name)) is not None:
        return Delivery(name, 0, 0, 0.0, newest)
    cursor = deliveries.begin(name)
    work = _Work(topology, node, sink, deliveries, cursor, head, restart)
    try:
        with named_errors(f"delivery to sink {name!r}"):
            work.run()
    except BaseException as error:
        failed = told(error)[:2000]
        deliveries.end(Delivery(name, cursor.attempt, work.records, time.monotonic() - started, work.upto, failed, work.detail))
        raise
    done = Delivery(name, cursor.attempt, work.records, time.monotonic() - started, work.upto, None, work.detail)
    deliveries.end(done)
    return done


def deliver_all(topology: Topology, progress: Progress = lambda *_: None) -> list[Delivery]:
    """Brings every sink up to date, some at a time; one that fails holds no other up.

    Raises:
        SinksBehind: after all were tried, if any failed.
    """
    steps, failed = steps_of(topology.plan), list[str]()

    def one(name: str) -> Delivery | BaseException:
        try:
            return deliver(topology, name)
        except Exception as error:  # noqa: BLE001  whatever it is, the other sinks go on
            return error

    made = []
    with ThreadPoolExecutor(PARALLEL_SINKS) as pool:
        for step in steps:
            progress(step, None)
        for step, found in zip(steps, pool.map(one, [s.target for s in steps]), strict=True):
            if isinstance(found, Delivery):
                made.append(found)
                progress(step, StepRecord(step.id, {"records": found.records}, found.seconds, 0, found.detail))
            else:
                failed.append(f"{step.target}: {told(found)}")
    if failed:
        raise SinksBehind(
            f"{len(failed)} of {len(steps)} sinks of topology {topology.plan.topology!r} did not get everything; every run is committed\n  "
            + "\n  ".join(text.replace("\n", "\n  ") for text in failed),
            next_step="act upon the errors above; the next run delivers what is missing, and so does `rejoin publish`",
        )
    return made


def find(topology: Topology, name: str) -> tuple[Node, Sink]:
    """The output and the sink that ``output.sink`` names.

    Raises:
        UnknownTable: there is none.
    """
    known = {sink_id(node.name, sink): (node, sink) for node in topology.plan.nodes for sink in node.sinks}
    if name not in known:
        raise UnknownTable(f"topology {topology.plan.topology!r} has no sink {name!r}", expected=", ".join(known) or "(none)")
    return known[name]


def oldest_needed(topology: Topology) -> int | None:
    """The oldest committed run whose state or changes a sink still needs; None if every sink has everything.

    Whoever expires must keep the changes of this run and all later ones, and the outputs' snapshots of this run.
    """
    deliveries = Deliveries(topology.ledger)
    runs, cursors = deliveries.committed(), deliveries.cursors()
    needs = []
    for step in steps_of(topology.plan):
        cursor, (_, sink) = cursors.get(step.target), find(topology, step.target)
        if cursor is None or cursor.needs is None:
            needs += runs[:1] if sink.start is Start.CHANGES else runs[-1:]
        else:
            needs.append(cursor.needs)
    return min((n for n in needs if runs and n <= runs[-1]), default=None)


def _up_to_date(deliveries: Deliveries, name: str) -> int | None:
    """The newest run, if the ledger says that the sink has it: then nobody has to ask the sink."""
    cursor, newest = deliveries.cursors().get(name), deliveries.committed()[-1]
    position = Position.from_json(cursor.position) if cursor is not None and cursor.position is not None else None
    return newest if position is not None and position.idle and position.done >= newest else None


class _Work:
    """One attempt at one sink."""

    def __init__(
        self, topology: Topology, node: Node, sink: Sink, deliveries: Deliveries, cursor: Cursor, head: int, restart: Restart | None
    ) -> None:
        self._topology, self._node, self._sink, self._deliveries, self._cursor = topology, node, sink, deliveries, cursor
        self._restart = restart
        self._head, self._states, self._runs = head, topology.ledger.states(head), deliveries.committed()
        self._columns = [p.name for p in topology.ledger.run(head).plan.node(node.name).columns]
        self.records, self.detail = 0, dict[str, object]()
        self.upto = None if cursor.position is None else Position.from_json(cursor.position).done

    def run(self) -> None:
        """Delivers everything up to the newest run. An attempt that the sink fenced off although it is the newest one takes over again."""
        for _ in range(TAKE_OVERS):
            try:
                return self._run()
            except SinkFenced:
                if self._overtaken:
                    raise
        sink = self._cursor.sink
        raise SinkSlow(
            f"sink {sink!r}: {TAKE_OVERS} times our transaction was ended, and no newer attempt has begun; nothing of it was committed",
            expected="a transaction within transaction.timeout.ms",
            next_step="try again later; raise transaction.timeout.ms, or lower batch",
        )

    @property
    def _overtaken(self) -> bool:
        return self._deliveries.cursors()[self._cursor.sink].attempt != self._cursor.attempt

    def _run(self) -> None:
        stored = self._topology.refs.require(self._node.name, self._states[self._node.name]).schema().as_arrow()
        types = pa.schema([stored.field(c) for c in self._columns])
        target = connect(self._topology.plan.topology, self._node, self._sink, types, self._topology.config.sinks)
        try:
            position = self._start(target)
            while (work := position.next(self._runs, self._sink.catch_up)) is not None:
                for rows, after in self._units(work, target.at_once):
                    self.records += target.write(rows, after, whole=work.snapshot)
                    self._moved(after)
                position = work.finished()
            self._moved(position)
        finally:
            self.detail = target.summary()
            target.close()

    def _start(self, target: Target) -> Position:
        """Where to go on. A new or restarted sink is told so first, so that it can be interrupted from then on."""
        known = None if self._cursor.position is None else Position.from_json(self._cursor.position)
        position = target.take_over(known)
        crash.point(f"deliver.{self._cursor.sink}:taken_over")
        if self._overtaken:  # we have just fenced off a newer attempt; it will take over again
            raise fenced(self._cursor.sink)
        if self._restart is not None:
            position = self._restarted(self._restart)
        elif position is not None:
            position.check(self._cursor.sink, self._head)
            return position
        elif known is not None:
            raise self._lost(known)
        else:
            position = Position.at(0) if self._sink.start is Start.CHANGES else Position(0, self._newest, content=Content.ROWS)
        target.write(_nothing, position, whole=False)
        self._restart = None
        self._moved(position)
        return position

    def _restarted(self, restart: Restart) -> Position:
        if restart.from_run is None:
            return Position(0, self._newest, content=Content.REPLACEMENT)
        if restart.from_run not in self._runs:
            raise RunUnknown(f"run {restart.from_run} of topology {self._topology.plan.topology!r} is not a committed run")
        return Position.at(restart.from_run - 1)

    @property
    def _newest(self) -> int:
        return self._runs[-1]

    def _lost(self, known: Position) -> SinkCursorLost:
        sink = self._cursor.sink
        return SinkCursorLost(
            f"sink {sink!r} has no cursor, and was delivered up to run {known.done} before: its target was made anew or restored",
            expected="the cursor that is written with the data",
            next_step=f"`rejoin publish --sink {sink} --snapshot`, or `--from-run N` if the target has all before run N",
        )

    def _moved(self, position: Position) -> None:
        crash.point(f"deliver.{self._cursor.sink}:moving")
        self._deliveries.move(self._cursor, position.to_json(), position.needs)
        self.upto = position.done

    def _units(self, work: Position, at_once: int | None) -> Iterator[tuple[Rows, Position]]:
        """What to write at once, and the position after it. Nothing for runs without changes."""
        rows = partial(self._rows, work)
        if at_once is None:
            if work.snapshot or next(rows(), None) is not None:
                yield rows, work.finished()
            return
        before: pa.RecordBatch | None = None
        for batch in _sliced(rows(), at_once):
            if before is not None:
                work = work.moved(before.num_rows)
                yield _only(before), work
            before = batch
        if before is not None:
            yield _only(before), work.finished()
        elif work.snapshot or work.offset:
            yield _nothing, work.finished()

    def _rows(self, work: Position) -> Iterator[pa.RecordBatch]:
        """The changes, or the rows, that a position says are under way."""
        output, log = self._node.name, names.changes(self._node.name)
        refs, key, columns = self._topology.refs, self._node.key, self._columns
        if log not in self._states:
            return iter(())
        changes = refs.require(log, self._states[log])
        if not work.snapshot:
            several = self._deliveries.upkeep(work.done, work.upto) or sum(work.done < run <= work.upto for run in self._runs) > 1
            return feed.changes(changes, self._states[log], work.done, work.upto, key, columns, net=several, offset=work.offset)
        then = self._topology.ledger.states(work.upto)
        gone = (changes, self._states[log], work.upto) if work.content is Content.REPLACEMENT else None
        return feed.rows(refs.require(output, then[output]), then[output], key, columns, gone=gone, offset=work.offset)


def _nothing() -> Iterator[pa.RecordBatch]:
    return iter(())


def _only(batch: pa.RecordBatch) -> Rows:
    return lambda: iter((batch,))


def _sliced(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows, in batches of ``size`` (the last may have fewer)."""
    kept: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, size - count)
            batch = batch.slice(part.num_rows)  # noqa: PLW2901
            kept, count = [*kept, part], count + part.num_rows
            if count == size:
                yield _joined(kept)
                kept, count = [], 0
    if kept:
        yield _joined(kept)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
