"""Right and full joins by a foreign key: the star says what becomes of left rows; here, what becomes of right rows without one.

KIP-213 has no such join. The subscription table answers whether a right row has a left one.
"""

from collections.abc import Sequence
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
        return self._with(keyed, self._free(self.work.now.current(self.right), self.right_key, taken))

    def follow(self, state: Rows, lefts: Keys) -> Found:
        """The results that can change: those of the affected left rows, whose ``state`` and keys are known, and those of right rows alone."""
        touched, before = self._touched(), self.work.before
        old, held = None, self.held()
        if before.has(self.node.name):
            alone = self.engine.query(statements.alone(self.sql, self._mine, self._theirs), mine=lefts.rows, theirs=touched.rows)
            wanted = [(self._mine, lefts), (self.node.key, Keys(alone, touched.at_most))]
            old = self._in_scope(before.lookup_any(self.node.name, wanted), lefts, touched)
        kept = None if held is None else self._in_scope(held, lefts, touched)
        free = self.named(self._untaken(touched), self._theirs, self.right_key)
        rights = self.work.now.lookup(self.right, Keys(free, touched.at_most))
        return Found(self._with(self._keyed(state), rights), old, kept, lefts.at_most + touched.at_most)

    def _untaken(self, touched: Keys) -> Rows:
        """Those of the right rows that no left row has now. Most have just got one: only the others are looked up."""
        rows, fks = touched.rows, tuple(numbered("fk", len(self._theirs)))
        sent = self._sent()
        if sent is not None:
            rows = self._free(rows, self._theirs, self.engine.query("SELECT * FROM sent WHERE _op = 'S'", sent=sent))
        taken = self.work.now.subscribed(self.node, self.edge, Keys(self.named(rows, self._theirs, fks), touched.at_most))
        return self._free(rows, self._theirs, taken)

    def _sent(self) -> Rows | None:
        return self.work.now.sent(self.node, self.edge, self.facts.run.number) if self.facts.sent(self.node) else None

    def _touched(self) -> Keys:
        """The right rows (columns: the right part of the output's key) that may have gained their first left row or lost the last, or changed."""
        parts, at_most, names = list[Rows](), 0, self._theirs
        sent = self._sent()
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

    def _free(self, rows: Rows, key: Sequence[str], taken: Rows) -> Rows:
        return self.engine.query(statements.free(self.sql, key), rows_=rows, taken=taken)

    def _with(self, keyed: Rows, rights: Rows) -> Rows:
        text = statements.lonely(self.sql, self.spoken, self._lefts, self.right_key)
        lonely = self.engine.query(text, rights=rights, state=keyed)
        return self.together([keyed, lonely], self.sql.names(keyed.columns))

    def _keyed(self, state: Rows) -> Rows:
        return self.engine.query(statements.keyed(self.sql, self.spoken, self._lefts), state=state)
