"""Right and full joins by a foreign key: the star says what becomes of left rows; here, what becomes of right rows without one.

KIP-213 has no such join. The subscription table answers whether a right row has a left one.
"""

from typing import TYPE_CHECKING

from rejoin.engines.relation import Relation
from rejoin.joins.kind import JoinResults, OneEdge
from rejoin.joins.outer import statements
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.model.plan import Node
from rejoin.statements.own_columns import numbered

if TYPE_CHECKING:
    from rejoin.context.work import Work


class Outer(OneEdge):
    """What a star with one right or full edge needs beside."""

    def __init__(self, work: "Work", node: Node) -> None:
        super().__init__(work, node)
        self._lefts = len(self.left_key)
        self._mine, self._theirs = node.key[: self._lefts], node.key[self._lefts :]

    def everything(self, state: Relation) -> Relation:
        """``state`` of all left rows -> of all results."""
        taken = self.engine.query(statements.met(self.sql, self.spoken, self._lefts), state=state)
        rights = self.beyond(self.work.now.current(self.right), self.right_key, taken, numbered("fk", len(self.right_key)))
        return self._results(state, rights)

    def follow(self, state: Relation, lefts: LookupKeys) -> JoinResults:
        """The results that can change: those of the affected left rows, whose ``state`` and keys are known, and those of right rows alone."""
        sent = self.work.now.sent(self.node, self.edge, self.facts.run.number) if self.facts.sent(self.node) else None
        touched, before = self._touched(sent), self.work.before
        old, held = None, self.held()
        if before.has(self.node.name):
            alone = self.engine.query(statements.alone(self.sql, self._mine, self._theirs), mine=lefts.rows, theirs=touched.rows)
            old = before.lookup_any(self.node.name, [(self._mine, lefts), (self.node.key, LookupKeys(alone, touched.at_most))])
        if held is not None:
            text = statements.in_scope(self.sql, self.node.key, self._lefts)
            held = self.engine.query(text, rows_=held, mine=lefts.rows, theirs=touched.rows)
        rights = self.work.now.lookup(self.right, LookupKeys(self._untaken(touched, sent), touched.at_most))
        return JoinResults(self._results(state, rights), old, held, lefts.at_most + touched.at_most)

    def _touched(self, sent: Relation | None) -> LookupKeys:
        """The right rows (columns: the right part of the output's key) that may have gained their first left row or lost the last, or changed."""
        held, names = self.held() if self.facts.judged_again(self.node) else None, self._theirs
        given = [
            ("sent", sent, numbered("fk", len(names)), self.facts.sent(self.node)),
            ("changes", self.right_changes(), self.right_key, self.facts.changed(self.right)),
            ("held", held, names, self.facts.held(self.node)),
        ]
        inputs = {name: rows for name, rows, _, _ in given if rows is not None}
        if not inputs:
            return LookupKeys(self.named(self.work.now.none(self.right), self.right_key, names), 0)
        text = statements.touched(self.sql, {name: key for name, _, key, _ in given if name in inputs}, names)
        return LookupKeys(self.engine.query(text, **inputs), sum(count for name, _, _, count in given if name in inputs))

    def _untaken(self, touched: LookupKeys, sent: Relation | None) -> Relation:
        """The keys of those right rows that no left row has now. Most have just got one: only the others are looked up."""
        fks, sql = numbered("fk", len(self._theirs)), self.sql
        asked = self.named(touched.rows, self._theirs, fks)
        if sent is not None:
            asked = self.beyond(asked, fks, self.engine.query("SELECT * FROM sent WHERE _op = 'S'", sent=sent), fks)
        taken = self.work.now.subscribed(self.node, self.edge, LookupKeys(asked, touched.at_most))
        return self.beyond(asked, fks, taken, fks, sql.renamed(fks, self.right_key))

    def _results(self, state: Relation, rights: Relation) -> Relation:
        return self.engine.query(statements.results(self.sql, self.spoken, self._lefts, self.right_key), state=state, rights=rights)
