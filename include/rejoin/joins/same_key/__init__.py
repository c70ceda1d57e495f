"""Two tables by their primary keys: inner, left, right and full. The result has that key, too."""

from rejoin.engines.engine import Rows
from rejoin.joins.kind import Found, Kind
from rejoin.joins.same_key import statements
from rejoin.lake.access import Keys


class SameKeyJoin(Kind):
    """Every key that changed on a side is looked up on both."""

    def follow(self) -> Found:
        sides = [(self.left_changes(), self.left_key), (self.right_changes(), self.right_key)]
        parts = [self.named(rows, key, self.node.key) for rows, key in sides if rows is not None]
        at_most = self.facts.changed(self.left) + self.facts.changed(self.right)
        held = self.held()
        if held is not None and self.facts.judged_again(self.node):
            parts.append(held)
            at_most += self.facts.held(self.node)
        keys = self.together(parts, self.sql.names(self.node.key))
        lefts = self.work.now.lookup(self.left, Keys(self.named(keys, self.node.key, self.left_key), at_most))
        rights = self.work.now.lookup(self.right, Keys(self.named(keys, self.node.key, self.right_key), at_most))
        old = self.work.before.lookup(self.node.name, Keys(keys, at_most)) if self.work.before.has(self.node.name) else None
        kept = None if held is None else self.among(held, keys)
        return Found(self._state(lefts, rights), old, kept, at_most)

    def everything(self) -> Rows:
        return self._state(self.work.now.current(self.left), self.work.now.current(self.right))

    def _state(self, lefts: Rows, rights: Rows) -> Rows:
        text = statements.state(self.sql, self.spoken, self.left_key, self.right_key)
        return self.engine.query(text, lefts=lefts, rights=rights)
