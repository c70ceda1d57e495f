"""Groups: changed members say which groups a run can change, and these are computed from all of their members."""

from rejoin.engines.relation import Relation
from rejoin.joins.group import statements
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.model.grouping import Grouping
from rejoin.statements.own_columns import numbered


class GroupKind(KindOfJoin):
    """The groups that members have left or have, before and after a change of theirs."""

    @property
    def grouping(self) -> Grouping:
        """How members become groups."""
        assert self.node.grouping is not None
        return self.node.grouping

    def follow(self) -> JoinResults:
        touched = self._touched()
        members = self.work.now.members(self.node, self.grouping, touched)
        keys = LookupKeys(self.named(touched.rows, touched.rows.columns, self.node.key), touched.at_most)
        held = self.held()
        return JoinResults(
            self._groups(members), ((self.node.key, keys),), None if held is None else self.among(held, keys.rows), touched.at_most
        )

    def everything(self) -> Relation:
        text = statements.members(self.sql, self.spoken, self.left_key)
        return self._groups(self.engine.query(text, lefts=self.work.now.current(self.left)))

    def _touched(self) -> LookupKeys:
        """The keys of the groups that can have changed (columns ``fk_1``..), each once."""
        sent = self.work.now.sent(self.node, self.grouping, self.facts.run.number) if self.facts.sent(self.node) else None
        again = self.held() if self.facts.judged_again(self.node) else None
        fks = numbered("fk", len(self.grouping.keys))
        given = [(n, rows, columns) for n, rows, columns in (("sent", sent, fks), ("again", again, self.node.key)) if rows is not None]
        if not given:
            return LookupKeys(self.named(self.work.before.none(self.node.name), self.node.key, fks), 0)
        text = statements.touched(self.sql, [(n, columns) for n, _, columns in given], len(fks))
        at_most = self.facts.sent(self.node) + (self.held_rows if again is not None else 0)
        return LookupKeys(self.computed(self.engine.query(text, **{n: rows for n, rows, _ in given}), at_most), at_most)

    def _groups(self, members: Relation) -> Relation:
        return self.engine.query(statements.groups(self.sql, self.spoken, len(self.left_key)), members=members)
