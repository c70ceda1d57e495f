"""Two tables by their primary keys: inner, left, right and full. The result has that key, too."""

from rejoin.engines.relation import KeySpread, Relation
from rejoin.joins import sides
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.joins.same_key import statements
from rejoin.lake.read.lookups import LookupKeys
from rejoin.statements.own_columns import numbered


class SameKeyJoin(KindOfJoin):
    """Every key that changed on a side is looked up on the other."""

    def follow(self) -> JoinResults:
        lefts, rights, names = self.left_changes(), self.right_changes(), self.node.key
        parts = [self.named(rows, key, names) for rows, key in ((lefts, self.left_key), (rights, self.right_key)) if rows is not None]
        at_most = self.facts.changed(self.left) + self.facts.changed(self.right)
        held = self.held()
        if held is not None and self.facts.judged_again(self.node):
            parts.append(held)
            at_most += self.held_rows
        keys = LookupKeys(self.shared(self.together(parts, self.sql.names(names)), at_most), at_most)
        state = self._state(self._rows(self.left, self.left_key, lefts, keys), self._rows(self.right, self.right_key, rights, keys))
        state = self.engine.gathered(state, numbered("pk", len(names)), at_most)
        spread = KeySpread(keys.rows, names, at_most, self.hidden(), nulls=self.node.null_keys)
        return JoinResults(state, ((names, keys),), None if held is None else self.among(held, keys.rows), at_most, spread=spread)

    def _rows(self, table: str, key: tuple[str, ...], changes: Relation | None, keys: LookupKeys) -> Relation:
        """The rows of a table for some keys of the output; what this run changed is not looked up."""
        if changes is None:
            return self.work.now.lookup(table, LookupKeys(self.named(keys.rows, self.node.key, key), keys.at_most))
        others = self.beyond(keys.rows, self.node.key, changes, key, self.sql.renamed(self.node.key, key))
        read = self.work.now.lookup(table, LookupKeys(others, keys.at_most - self.facts.changed(table)))
        return self.engine.query(sides.as_of_now(self.sql, key), read=read, changes=changes)

    def spread(self) -> KeySpread | None:
        return self.lying(max(self.left, self.right, key=self.facts.now.rows), 0)

    def everything(self) -> Relation:
        return self._state(self.work.now.current(self.left), self.work.now.current(self.right))

    def _state(self, lefts: Relation, rights: Relation) -> Relation:
        text = statements.state(self.sql, self.spoken, self.left_key, self.right_key)
        return self.engine.query(text, lefts=self.sifted(lefts, left=True), rights=self.sifted(rights, left=False))
