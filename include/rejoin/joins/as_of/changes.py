"""A stream with a table: the row that was valid at the time of the record, or the one of the run that reads the record. Inner and left.

Only the stream makes results. As of event time a version that comes late corrects the results whose records lie between it and the next
version of its row; as of the run nothing is corrected.
"""

from typing import TYPE_CHECKING

from rejoin.engines.relation import KeySpread, Relation
from rejoin.joins import sides
from rejoin.joins.as_of import statements
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.joins.time_spans import TimeSpans
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.change.stream_retention import settled
from rejoin.plan.model.durations import FOREVER
from rejoin.plan.model.match import AsOf
from rejoin.plan.model.plan import Node
from rejoin.statements.own_columns import RUN, numbered

if TYPE_CHECKING:
    from rejoin.context.uncomputable_rows import UncomputableRows
    from rejoin.context.work import Work


class AsOfJoin(KindOfJoin):
    """Changed records, and those between changed versions, are looked up with the versions that they need."""

    def __init__(self, work: "Work", node: Node, sieve: "UncomputableRows | None") -> None:
        super().__init__(work, node, sieve)
        assert isinstance(self.edge.match, AsOf)
        self._match = self.edge.match
        self._by = self.right_key[: len(self._match.on)]

    def follow(self) -> JoinResults:
        parts, at_most = list[Relation](), 0
        if (changes := self._records()) is not None:
            parts.append(changes)
            at_most += self.facts.left_rows(self.node)
        if self._match.left_time is not None and (versions := self.right_changes()) is not None:
            touched, count = self.fetched(self._touched(versions))
            parts.append(touched)
            at_most += count
        held = self.held()
        if held is not None and self.facts.judged_again(self.node):
            held = self.unsettled(held)
            parts.append(self.named(held, self.node.key, self.left_key))
            at_most += self.held_rows
        keys = self.shared(self.together(parts, self.sql.names(self.left_key)), at_most)
        lefts = self.sifted(self.work.now.lookup(self.left, LookupKeys(keys, at_most)), left=True)
        named = self.named(keys, self.left_key, self.node.key)
        stored = ((self.node.key, LookupKeys(named, at_most)),)
        kept = None if held is None else self.among(held, named)
        state = self.engine.gathered(self._state(lefts, self._rights(lefts, at_most)), numbered("pk", len(self.left_key)), at_most)
        spread = KeySpread(named, self.node.key, at_most, self.hidden(), nulls=self.node.null_keys)
        return JoinResults(state, stored, kept, at_most, spread=spread)

    def _records(self) -> Relation | None:
        """The keys of the records that have come since the output was last up to date; None if none have."""
        since = self.facts.since(self.node)
        if since is None or not self.work.now.has(self.left):
            return self.left_changes()
        stored = self.work.now.every(self.left, [*self.left_key, RUN])
        return self.engine.query(f"SELECT {self.sql.names(self.left_key)} FROM stored WHERE {RUN} > {since}", stored=stored)

    def spread(self) -> KeySpread | None:
        return self.lying(self.left, self.facts.now.rows(self.right))

    def everything(self) -> Relation:
        return self._state(self.sifted(self.work.now.current(self.left), left=True), self.work.now.current(self.right))

    def unsettled(self, rows: Relation) -> Relation:
        """Those whose record is stored."""
        if not settled(self.plan, self.node):
            return rows
        return self.engine.query(sides.among(self.sql, self.node.key, self.left_key), rows_=rows, keys=self.work.now.current(self.left))

    def _state(self, lefts: Relation, rights: Relation) -> Relation:
        text = statements.state(self.sql, self.spoken, self.left_key, self.right_key)
        return self.engine.query(text, lefts=lefts, rights=rights)

    def _rights(self, lefts: Relation, at_most: int) -> Relation:
        """The rows, or all versions of them, that these records name."""
        wanted = self.engine.query(statements.wanted(self.sql, self.spoken, self.left_key, self._by), lefts=lefts)
        return self.work.now.lookup(self.right, LookupKeys(wanted, at_most), by=self._by)

    def _touched(self, versions: Relation) -> Relation:
        """The keys of the records for which another version is valid now."""
        keys = self.engine.query(f"SELECT DISTINCT {self.sql.names(self._by)} FROM versions", versions=versions)
        around = self.work.now.lookup(self.right, LookupKeys(keys, self.facts.changed(self.right)), by=self._by)
        valid, _ = self.fetched(self.engine.query(statements.valid(self.sql, self.edge, self.right_key), versions=versions, rights=around))
        spans = TimeSpans.of(self.engine, f"SELECT since AS low, coalesce(until, {FOREVER}) AS high FROM rows_", valid)
        assert self._match.left_time is not None
        lefts = self.sifted(self.work.now.between(self.node.left, self._match.left_time, spans.of_time), left=True, counts=False)
        return self.engine.query(statements.touched(self.sql, self.spoken, self.left_key), lefts=lefts, valid=valid)
