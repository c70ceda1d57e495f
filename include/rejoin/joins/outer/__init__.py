"""Right and full joins by a foreign key: the star says what becomes of left rows; here, what becomes of right rows without one.

KIP-213 has no such join. The subscription table answers whether a right row has a left one.
"""

from typing import TYPE_CHECKING

from rejoin.engines.engine import Rows
from rejoin.joins.kind import Found, OneEdge
from rejoin.joins.outer import statements
from rejoin.lake.access import Keys
from rejoin.plan.model import Node
from rejoin.stages.columns import numbered

if TYPE_CHECKING:
    from rejoin.run.work import Work


class Outer(OneEdge):
    """What a star with one right or full edge needs beside."""

    def __init__(self, work: "Work", node: Node) -> None:
        super().__init__(work, node)
        self._lefts = len(self.left_key)
        self._mine, self._theirs = node.key[: self._lefts], node.key[self._lefts :]

    def everything(self, state: Rows) -> Rows:
        """``state`` of all left rows -> of all results."""
        keyed = self._keyed(state)
        taken = self.engine.query(statements.met(self._lefts, len(self.right_key)), state=keyed)
        return self._with(keyed, self.work.now.current(self.right), taken)

    def follow(self, state: Rows, lefts: Keys) -> Found:
        """The results that can change: those of the affected left rows, whose ``state`` and keys are known, and those of right rows alone."""
        touched, before = self._touched(), self.work.before
        fks = tuple(numbered("fk", len(self._theirs)))
        rights = self.work.now.lookup(self.right, Keys(self.named(touched.rows, self._theirs, self.right_key), touched.at_most))
        subscribers = self.work.now.subscribers(self.node, self.edge, Keys(self.named(touched.rows, self._theirs, fks), touched.at_most))
        old, held = None, self.held()
        if before.has(self.node.name):
            alone = self.engine.query(statements.alone(self.sql, self._mine, self._theirs), mine=lefts.rows, theirs=touched.rows)
            wanted = [(self._mine, lefts), (self.node.key, Keys(alone, touched.at_most))]
            old = self._in_scope(before.lookup_any(self.node.name, wanted), lefts, touched)
        kept = None if held is None else self._in_scope(held, lefts, touched)
        found = self._with(self._keyed(state), rights, self.named(subscribers, fks, fks))
        return Found(found, old, kept, lefts.at_most + touched.at_most)

    def _touched(self) -> Keys:
        """The right rows (columns: the right part of the output's key) that may have gained their first left row or lost the last, or changed."""
        parts, at_most, names = list[Rows](), 0, self._theirs
        sent = self.work.now.sent(self.node, self.edge, self.facts.run.number) if self.facts.sent(self.node) else None
        if sent is not None:
            parts.append(self.named(sent, numbered("fk", len(names)), names))
            at_most += self.facts.sent(self.node)
        changes = self.right_changes()
        if changes is not None:
            parts.append(self.named(changes, self.right_key, names))
            at_most += self.facts.changed(self.right)
        held = self.held() if self.facts.judged_again(self.node) else None
        if held is not None:
            parts.append(held)
            at_most += self.facts.held(self.node)
        if not parts:
            return Keys(self.named(self.work.now.none(self.right), self.right_key, names), 0)
        known = " OR ".join(f"{self.sql.name(k)} IS NOT NULL" for k in names)
        every = self.together(parts, self.sql.names(names))
        return Keys(self.engine.query(f"SELECT DISTINCT * FROM keys WHERE {known}", keys=every), at_most)

    def _in_scope(self, rows: Rows, lefts: Keys, touched: Keys) -> Rows:
        """Those of some rows that are such results."""
        text = statements.in_scope(self.sql, self.node.key, self._lefts)
        return self.engine.query(text, rows_=rows, mine=lefts.rows, theirs=touched.rows)

    def _with(self, keyed: Rows, rights: Rows, taken: Rows) -> Rows:
        text = statements.lonely(self.sql, self.spoken, self._lefts, self.right_key)
        lonely = self.engine.query(text, rights=rights, taken=taken, state=keyed)
        return self.together([keyed, lonely], self.sql.names(keyed.columns))

    def _keyed(self, state: Rows) -> Rows:
        return self.engine.query(statements.keyed(self.sql, self.spoken, self._lefts), state=state)
