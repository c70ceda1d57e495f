"""Two streams within a time: inner, left, right and full. The result is keyed by both records.

Pairs are the interval join of everything that has arrived. A record without partner is in the result once the watermark has passed the end
of its window; a partner that comes later still replaces it. The watermark is the newest event time on either side minus the
lateness: it follows from the stored records alone, so the result does not depend on how the input was cut into runs.
"""

from rejoin.engines.engine import Rows
from rejoin.joins.kind import Found, Kind
from rejoin.joins.spans import FOREVER, Spans
from rejoin.joins.window import statements
from rejoin.joins.window.statements import window_of
from rejoin.lake.access import Keys
from rejoin.lake.reader import Reader
from rejoin.plan.model import Node
from rejoin.run.work import Work


class WindowJoin(Kind):
    """Reads only the spans of time that changed records, and windows that close, can reach."""

    def __init__(self, work: Work, node: Node) -> None:
        super().__init__(work, node)
        self._window = window_of(self.edge)
        self._keys = statements.Keys(self.left_key, self.right_key)
        self._kept = (self.edge.kind.keeps_left, self.edge.kind.keeps_right)

    def everything(self) -> Rows:
        text = statements.state(self.sql, self.spoken, self._keys, self._watermark(self.work.now), scoped=None)
        return self.engine.query(text, lefts=self.work.now.current(self.left), rights=self.work.now.current(self.right))

    def follow(self) -> Found:
        changes = {n: r for n, r in (("left_changes", self.left_changes()), ("right_changes", self.right_changes())) if r is not None}
        marks = self._watermark(self.work.before), self._watermark(self.work.now)
        closing = tuple((marks[0] - reach, marks[1] - reach) for reach in (self._window.after, self._window.before))
        lefts, rights = self._read(changes, closing)
        inputs: dict[str, Rows] = dict(changes)
        for name, kept, left, ends in (
            ("lonely_left", self._kept[0], True, closing[0]),
            ("lonely_right", self._kept[1], False, closing[1]),
        ):
            if kept:
                text = statements.lonely(self.sql, self.spoken, self._keys, ends, left=left, given=list(changes))
                inputs[name] = self.engine.query(text, **changes, **({"lefts": lefts} if left else {"rights": rights}))
        text = statements.state(self.sql, self.spoken, self._keys, marks[1], scoped=list(changes))
        state = self.engine.query(text, lefts=lefts, rights=rights, **inputs)
        count = self.facts.changed(self.left) + self.facts.changed(self.right)
        at_most = count + sum(inputs[n].here().num_rows for n in ("lonely_left", "lonely_right") if n in inputs)
        return Found(state, self._old(inputs, at_most), self._among(self.held(), inputs), at_most)

    def _read(self, changes: dict[str, Rows], closing: tuple[tuple[int, int], ...]) -> tuple[Rows, Rows]:
        """The records of both streams that can matter, in spans of time, and those that changed."""
        window = self._window
        reach = window.before + window.after
        moved = [self._times(rows, left=name == "left_changes") for name, rows in changes.items()]
        around = moved[0] if len(moved) == 1 else moved[0].and_(moved[1])
        ends = [Spans.joined([(low, high - 1)] if kept else []) for (low, high), kept in zip(closing, self._kept, strict=True)]
        near = around.widened(2 * reach, 2 * reach)
        spans = [near.and_(ends[i]).and_(ends[1 - i].widened(reach, reach)) for i in (0, 1)]
        sides = (
            (self.node.left, window.left_time, "left_changes", self.left_key),
            (self.node.edges[0].right, window.right_time, "right_changes", self.right_key),
        )
        lefts, rights = (
            self._rows(self.work.now.between(view, time, span.of_time), changes.get(name), key)
            for (view, time, name, key), span in zip(sides, spans, strict=True)
        )
        return lefts, rights

    def _rows(self, read: Rows, changes: Rows | None, key: tuple[str, ...]) -> Rows:
        if changes is None:
            return read
        text = statements.rows(self.sql, key, read=True, changed=True)
        return self.engine.query(text, read=read, changes=changes)

    def _times(self, changes: Rows, *, left: bool) -> Spans:
        return Spans.of(self.engine, statements.times(self.sql, self.spoken, self._keys, left=left), changes)

    def _old(self, inputs: dict[str, Rows], at_most: int) -> Rows | None:
        """The output's rows that can change: found by the records of either side."""
        before, node, sql = self.work.before, self.node, self.sql
        if not before.has(node.name):
            return None
        mine, theirs = node.key[: len(self.left_key)], node.key[len(self.left_key) :]
        wanted = list[tuple[tuple[str, ...], Keys]]()
        for own, key, changes, lonely, ks in (
            (mine, self.left_key, "left_changes", "lonely_left", self._keys.pks),
            (theirs, self.right_key, "right_changes", "lonely_right", self._keys.rks),
        ):
            given = {n: inputs[n] for n in (changes, lonely) if n in inputs}
            names = [f"SELECT {sql.renamed(key if n == changes else ks, own)} FROM {n}" for n in given]
            if given:
                wanted.append((own, Keys(self.engine.query(" UNION ALL ".join(names), **given), at_most)))
        return self._among(before.lookup_any(node.name, wanted), inputs)

    def _among(self, rows: Rows | None, inputs: dict[str, Rows]) -> Rows | None:
        if rows is None:
            return None
        given = [n for n in ("left_changes", "right_changes") if n in inputs]
        text = statements.in_scope(self.sql, self.node.key, self._keys, given=given, kept=self._kept)
        return self.engine.query(text, rows_=rows, **inputs)

    def _watermark(self, reader: Reader) -> int:
        """The newest event time on either side minus the lateness, as of a run; before all times where there is none."""
        found = [
            reader.newest(view, time)
            for view, time in ((self.node.left, self._window.left_time), (self.node.edges[0].right, self._window.right_time))
        ]
        known = [time for time in found if time is not None]
        return max(known) - self._window.lateness if known else -FOREVER
