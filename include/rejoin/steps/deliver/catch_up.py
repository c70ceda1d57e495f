"""One attempt to bring one sink up to date: from its own cursor, in the order of the runs, whatever interrupted the attempt before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from rejoin import crash
from rejoin.context.topology_lake import TopologyLake
from rejoin.errors import RunUnknown, SinkCursorLost, SinkFenced, SinkSlow
from rejoin.lake import table_names
from rejoin.lake.ledger.deliveries import Cursor, Deliveries, fenced
from rejoin.lake.read import change_feed
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import Sink, Start
from rejoin.sinks.connect import connect
from rejoin.sinks.position import Content, Position
from rejoin.sinks.target import Rows, Target

TAKE_OVERS = 3
"""So often does an attempt that is the newest one take over a sink that fenced it off."""


@dataclass(frozen=True)
class Restart:
    """Where to start anew. ``from_run``: with the changes of this run; None: with a snapshot of the newest one."""

    from_run: int | None


SNAPSHOT = Restart(None)


class Attempt:
    """One attempt at one sink. ``records``, ``detail`` and ``upto`` say what it has come to, also after it failed."""

    def __init__(
        self, topology: TopologyLake, node: Node, sink: Sink, deliveries: Deliveries, cursor: Cursor, restart: Restart | None
    ) -> None:
        self._topology, self._node, self._sink, self._deliveries, self._cursor = topology, node, sink, deliveries, cursor
        self._restart, self._runs = restart, deliveries.runs()
        head = topology.ledger.head()
        assert head is not None
        self._head, self._states = head, topology.ledger.states(head)
        self._columns = tuple(p.name for p in topology.ledger.run(head).plan.node(node.name).columns)
        self.records, self.detail = 0, dict[str, object]()
        self.upto = None if cursor.position is None else Position.from_json(cursor.position).done

    def run(self) -> None:
        """Delivers everything up to the newest run. An attempt that the sink fenced off although it is the newest one takes over again."""
        if self._restart not in (None, SNAPSHOT) and self._restart.from_run not in self._runs:
            raise RunUnknown(f"run {self._restart.from_run} of topology {self._topology.plan.topology!r} is not a committed run")
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
            while (work := position.next(self._runs, self._sink.catch_up, self._columns)) is not None:
                position = self._delivered(target, position, work)
            self._moved(position)
        finally:
            self.detail = target.summary()
            target.close()

    def _start(self, target: Target) -> Position:
        """Where to go on. A new or restarted sink is told so first, so that it can be interrupted from then on."""
        known = None if self._cursor.position is None else Position.from_json(self._cursor.position)
        found = target.take_over(known)
        crash.point(f"deliver.{self._cursor.sink}:taken_over")
        if self._overtaken:  # we have just fenced off a newer attempt; it will take over again
            raise fenced(self._cursor.sink)
        if found is not None and not found.is_of(target.identity):
            found = None
        if found is not None and self._restart != SNAPSHOT:  # a snapshot replaces whatever is there
            found.check(self._cursor.sink, self._head)
            found = replace(found, target=target.identity)
            if self._restart is None:
                return found
            if found.snapshot:  # until it is finished, rows of any run may be missing
                found = self._delivered(target, found, found)
        if self._restart is None and known is not None:
            raise self._lost(known)
        position = replace(self._first(self._restart, found), target=target.identity)
        target.write(_nothing, position, whole=False)
        self._restart = None
        self._moved(position)
        return position

    def _first(self, restart: Restart | None, found: Position | None) -> Position:
        """Where a sink starts that has nothing yet, or is told to start anew; ``found`` is how far it was."""
        newest = self._runs[-1]
        if restart is None and self._sink.start is Start.CHANGES:
            return replace(Position.at(0), columns=self._columns)
        if restart is None or restart.from_run is None:
            content = Content.ROWS if restart is None else Content.REPLACEMENT
            return Position(0, newest, content=content, columns=self._columns)
        if found is None:  # whoever says so knows that all before is there
            return replace(Position.at(restart.from_run - 1), columns=self._columns)
        return found.back(restart.from_run)

    def _delivered(self, target: Target, position: Position, work: Position) -> Position:
        """Writes what is under way, all of it; the position after it."""
        for rows, after in self._units(work, target.at_once, told=position.columns != work.columns):
            self.records += target.write(rows, after, whole=work.snapshot, cleared=_gained(position, work))
            self._moved(after)
        return work.finished()

    def _lost(self, known: Position) -> SinkCursorLost:
        sink = self._cursor.sink
        return SinkCursorLost(
            f"sink {sink!r} was delivered up to run {known.done} before, and its target says nothing of that: it was made anew or restored",
            expected="the topic, table or index that was delivered to, with the cursor that is written with the data",
            next_step=f"`rejoin publish --sink {sink} --snapshot`, or `--from-run N` if the target has all before run N",
        )

    def _moved(self, position: Position) -> None:
        crash.point(f"deliver.{self._cursor.sink}:moving")
        self._deliveries.move(self._cursor, position.to_json(), position.needs)
        self.upto = position.done

    def _units(self, work: Position, at_once: int | None, *, told: bool) -> Iterator[tuple[Rows, Position]]:
        """What to write at once, and the position after it. Nothing for runs without changes, unless the sink has to be ``told`` of them."""
        rows = partial(self._rows, work)
        if at_once is None:
            if told or work.snapshot or next(rows(), None) is not None:
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
        elif told or work.snapshot or work.offset:
            yield _nothing, work.finished()

    def _rows(self, work: Position) -> Iterator[pa.RecordBatch]:
        """The changes, or the rows, that a position says are under way."""
        output, log = self._node.name, table_names.changes(self._node.name)
        refs, key, columns = self._topology.refs, self._node.key, self._columns
        if log not in self._states:
            return iter(())
        changes, stored = (change_feed.TableAt(refs.require(name, self._states[name]), self._states[name]) for name in (log, output))
        if not work.snapshot:
            several = self._deliveries.upkeep_between(work.done, work.upto) or sum(work.done < run <= work.upto for run in self._runs) > 1
            between = change_feed.RunRange(work.done, work.upto, net=several)
            return change_feed.changes(changes, stored, between, key, columns, offset=work.offset)
        then = self._topology.ledger.states(work.upto)[output]
        gone = (changes, work.upto) if work.content is Content.REPLACEMENT else None
        return change_feed.rows(change_feed.TableAt(refs.require(output, then), then), key, columns, gone=gone, offset=work.offset)


def _gained(before: Position, work: Position) -> tuple[str, ...]:
    """The columns that the sink has not been given so far: whatever its target holds there is not the output's."""
    return tuple(c for c in work.columns if before.columns and c not in before.columns)


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
