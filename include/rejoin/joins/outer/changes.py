"""Right and full joins by a foreign key: the star says what becomes of left rows; here, what becomes of right rows without one.

KIP-213 has no such join. The subscription table answers whether a right row has a left one.
"""

from dataclasses import replace

from rejoin.engines.relation import KeySpread, Relation
from rejoin.joins.foreign_key.changes import StarJoin
from rejoin.joins.kind import JoinResults
from rejoin.joins.outer import statements
from rejoin.lake.read.lookups import LookupKeys
from rejoin.statements.own_columns import numbered


class OuterJoin(StarJoin):
    """A star with one right or full edge."""

    def everything(self) -> Relation:
        """A right row alone depends on all left rows: their foreign keys are computed once, for all ranges. Such rows are a range, since their left key is null."""
        lefts = self.sifted(self.work.now.current(self.left), left=True, counts=False)
        taken = self.engine.query(statements.met(self.sql, self.spoken), lefts=lefts)
        taken = self.shared(taken, self.facts.now.rows(self.left))
        rights = self.beyond(self.work.now.current(self.right), self.right_key, taken, numbered("fk", len(self.right_key)))
        return self._both(super().everything(), rights)

    def _results(self, state: Relation, lefts: LookupKeys) -> JoinResults:
        """Those of the affected left rows, and those of right rows alone."""
        sent = self.work.now.sent(self.node, self.edge, self.facts.run.number) if self.facts.sent(self.node) else None
        asked, held = self._asked(sent), self.held()
        lefts, touched = (replace(keys, rows=self.shared(keys.rows, keys.at_most)) for keys in (lefts, asked))
        none = self.named(self.work.now.none(self.left), self.left_key, self.mine)
        alone = self.engine.query(statements.alone(self.sql, self.mine, self.theirs), none=none, theirs=touched.rows)
        if held is not None:
            text = statements.in_scope(self.sql, self.node.key, len(self.left_key))
            held = self.engine.query(text, rows_=held, mine=lefts.rows, theirs=touched.rows)
        rights = self.work.now.lookup(self.right, LookupKeys(self._untaken(touched, sent), touched.at_most))
        stored = ((self.mine, lefts), (self.node.key, LookupKeys(alone, touched.at_most)))
        spread = KeySpread(lefts.rows, self.mine, lefts.at_most, self.hidden(), nulls=True)
        return JoinResults(self._both(state, rights), stored, held, lefts.at_most + touched.at_most, spread=spread)

    def _asked(self, sent: Relation | None) -> LookupKeys:
        """The right rows (columns: the right part of the output's key) that may have gained their first left row or lost the last, or changed."""
        held, names = self.held() if self.facts.judged_again(self.node) else None, self.theirs
        given = [
            ("sent", sent, numbered("fk", len(names)), self.facts.sent(self.node)),
            ("changes", self.right_changes(), self.right_key, self.facts.changed(self.right)),
            ("held", held, names, self.held_rows),
        ]
        inputs = {name: rows for name, rows, _, _ in given if rows is not None}
        if not inputs:
            return LookupKeys(self.named(self.work.now.none(self.right), self.right_key, names), 0)
        text = statements.touched(self.sql, {name: key for name, _, key, _ in given if name in inputs}, names, self.mine)
        return LookupKeys(self.engine.query(text, **inputs), sum(count for name, _, _, count in given if name in inputs))

    def _untaken(self, touched: LookupKeys, sent: Relation | None) -> Relation:
        """The keys of those right rows that no left row has now. Most have just got one: only the others are looked up."""
        fks, sql = numbered("fk", len(self.theirs)), self.sql
        asked = self.named(touched.rows, self.theirs, fks)
        if sent is not None:
            asked = self.beyond(asked, fks, self.engine.query("SELECT * FROM sent WHERE _op = 'S'", sent=sent), fks)
        taken = self.work.now.subscribed(self.node, self.edge, LookupKeys(asked, touched.at_most))
        return self.beyond(asked, fks, taken, fks, sql.renamed(fks, self.right_key))

    def _both(self, state: Relation, rights: Relation) -> Relation:
        """``state`` of left rows, and right rows that no left row has -> ``state`` of all these results."""
        text = statements.results(self.sql, self.spoken, self.left_key, self.right_key)
        return self.engine.query(text, state=state, rights=rights, none=self.work.now.none(self.left))
