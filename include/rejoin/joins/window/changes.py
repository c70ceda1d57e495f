"""Two streams within a time: inner, left, right and full. The result is keyed by both records.

Pairs are the interval join of everything that has arrived. A record without partner is in the result once the watermark has passed the end
of its window; a partner that comes later still replaces it. The watermark is the newest event time on either side minus the
lateness: it follows from the stored records alone, so the result does not depend on how the input was cut into runs.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from rejoin.engines.relation import Relation
from rejoin.joins import sides
from rejoin.joins.kind import JoinResults, KindOfJoin, Wanted
from rejoin.joins.time_spans import TimeSpans
from rejoin.joins.window import statements
from rejoin.joins.window.statements import window_of
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.plan.change.stream_retention import settled
from rejoin.plan.model.plan import Node, View

if TYPE_CHECKING:
    from rejoin.context.uncomputable_rows import UncomputableRows
    from rejoin.context.work import Work


class WindowJoin(KindOfJoin):
    """Reads only the spans of time that changed records, and windows that close, can reach."""

    def __init__(self, work: "Work", node: Node, sieve: "UncomputableRows | None") -> None:
        super().__init__(work, node, sieve)
        self._window = window_of(self.edge)
        self._keys = statements.Keys(self.left_key, self.right_key)
        self._stored = statements.Stored(self.plan.stored_from(self.left), self.plan.stored_from(self.right))
        self._kept = (self.edge.kind.keeps_left, self.edge.kind.keeps_right)
        self._looked_at = dict[str, Relation]()

    def everything(self) -> Relation:
        text = statements.state(self.sql, self.spoken, self._keys, scoped=None, stored=self._stored)
        lefts, rights = self.work.now.current(self.left), self.work.now.current(self.right)
        return self.engine.query(text, lefts=self.sifted(lefts, left=True), rights=self.sifted(rights, left=False), marks=self._marks())

    def unsettled(self, rows: Relation) -> Relation:
        if not settled(self.plan, self.node):
            return rows
        return self._unsettled(rows, self.work.now.current(self.left), self.work.now.current(self.right))

    def _unsettled(self, rows: Relation, lefts: Relation, rights: Relation) -> Relation:
        now, window = self.work.now, self._window
        times = (now.micros(self.node.left, window.left_time), now.micros(self.node.edges[0].right, window.right_time))
        text = statements.unsettled(self.sql, self.node, self._keys, times, self._stored)
        return self.engine.query(text, rows_=rows, lefts=lefts, rights=rights)

    def follow(self) -> JoinResults:
        moved = (self.sifted_changes(self.left_changes(), left=True), self.sifted_changes(self.right_changes(), left=False))
        changes = {n: r for n, r in zip(("left_changes", "right_changes"), moved, strict=True) if r is not None}
        marks = self._marks()
        lefts, rights = self._read(changes, marks)
        inputs, at_most = dict(changes), self.facts.changed(self.left) + self.facts.changed(self.right)
        for name, kept, left in (("lonely_left", self._kept[0], True), ("lonely_right", self._kept[1], False)):
            if kept:
                text = statements.lonely(self.sql, self.spoken, self._keys, left=left, given=list(changes))
                side = {"lefts": lefts} if left else {"rights": rights}
                inputs[name], count = self.fetched(self.engine.query(text, **changes, marks=marks, **side))
                at_most += count
        text = statements.state(self.sql, self.spoken, self._keys, scoped=list(changes), stored=self._stored)
        state = self.engine.query(text, lefts=lefts, rights=rights, marks=marks, **inputs)
        self._looked_at, held = inputs, self.held()
        return JoinResults(state, self._wanted(inputs, at_most), None if held is None else self.in_scope(held), at_most)

    def _read(self, changes: dict[str, Relation], marks: Relation) -> tuple[Relation, Relation]:
        """The records of both streams that can matter, in spans of time, and those that changed."""
        window = self._window
        reach = abs(window.before) + abs(window.after)
        moved = TimeSpans.together(*(self._times(rows, left=name == "left_changes") for name, rows in changes.items()))
        ends = [
            TimeSpans.of(self.engine, statements.closing(window, left=left), marks) if kept else TimeSpans()
            for left, kept in zip((True, False), self._kept, strict=True)
        ]
        near = moved.widened(2 * reach)
        spans = [TimeSpans.together(near, ends[i], ends[1 - i].widened(reach)) for i in (0, 1)]
        sides = (
            (self.node.left, window.left_time, "left_changes", self.left_key),
            (self.node.edges[0].right, window.right_time, "right_changes", self.right_key),
        )
        # What lies within reach and could not be computed earlier is aside since then.
        lefts, rights = (
            self._rows(self.sifted(self.work.now.between(view, time, span.of_time), left=left, counts=False), changes.get(name), key)
            for (view, time, name, key), span, left in zip(sides, spans, (True, False), strict=True)
        )
        return lefts, rights

    def _rows(self, read: Relation, changes: Relation | None, key: tuple[str, ...]) -> Relation:
        if changes is None:
            return read
        return self.engine.query(sides.as_of_now(self.sql, key), read=read, changes=changes)

    def _times(self, changes: Relation, *, left: bool) -> TimeSpans:
        return TimeSpans.of(self.engine, statements.times(self.sql, self.spoken, self._keys, left=left), changes)

    def _wanted(self, inputs: dict[str, Relation], at_most: int) -> Wanted:
        """The output's rows that have a record of either side that was looked at."""
        wanted = list[tuple[tuple[str, ...], LookupKeys]]()
        for own, key, changes, lonely, ks in (
            (self.mine, self.left_key, "left_changes", "lonely_left", self._keys.pks),
            (self.theirs, self.right_key, "right_changes", "lonely_right", self._keys.rks),
        ):
            given = {n: inputs[n] for n in (changes, lonely) if n in inputs}
            names = [f"SELECT {self.sql.renamed(key if n == changes else ks, own)} FROM {n}" for n in given]
            if given:
                wanted.append((own, LookupKeys(self.engine.query(" UNION ALL ".join(names), **given), at_most)))
        return wanted

    def in_scope(self, rows: Relation) -> Relation:
        given = [n for n in ("left_changes", "right_changes") if n in self._looked_at]
        text = statements.in_scope(self.sql, self.node.key, self._keys, given=given, kept=self._kept)
        scoped = self.engine.query(text, rows_=rows, **self._looked_at)
        if not settled(self.plan, self.node):
            return scoped
        # Results of a record that was let go, whose id another one has now.
        found, count = self.fetched(scoped)
        sides = ((self.left, self.mine, self.left_key), (self.right, self.theirs, self.right_key))
        lefts, rights = (self.work.now.lookup(table, self._keys_of(found, own, key, count)) for table, own, key in sides)
        return self._unsettled(found, lefts, rights)

    def _keys_of(self, rows: Relation, own: tuple[str, ...], key: tuple[str, ...], at_most: int) -> LookupKeys:
        """The keys of the records of one side that are in results."""
        text = f"SELECT DISTINCT {self.sql.renamed(own, key)} FROM rows_ WHERE {self.sql.name(own[0])} IS NOT NULL"
        return LookupKeys(self.engine.query(text, rows_=rows), at_most)

    def _marks(self) -> Relation:
        """The watermarks of the run before and of this one."""
        window, inputs = self._window, dict[str, Relation]()
        for name, reader in (("before", self.work.before), ("now", self.work.now)):
            for view, time, clock in (
                (self.node.left, window.left_time, window.left_clock),
                (self.node.edges[0].right, window.right_time, window.right_clock),
            ):
                if reader.has(view.table):
                    inputs[f"{name}_{len(inputs)}"] = self._newest(reader, view, time, clock)
        before, now = ([n for n in inputs if n.startswith(of)] for of in ("before", "now"))
        return self.engine.query(statements.marks(window, before=before, now=now), **inputs)

    def _newest(self, reader: Reader, view: View, time: str, clock: tuple[str, ...]) -> Relation:
        if clock:
            return reader.newest_by(view, time, clock)
        return self.engine.rows(pa.table({"newest": pa.array([reader.newest(view, time)], pa.int64())}))
