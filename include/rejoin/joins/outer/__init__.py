"""Right and full joins by a foreign key: the star says what becomes of left rows; here, what becomes of right rows without one.

KIP-213 has no such join. The subscription table answers whether a right row has a left one.
"""

from typing import TYPE_CHECKING

from rejoin.engines.engine import Rows
from rejoin.joins.outer import statements
from rejoin.lake.access import Keys
from rejoin.plan.model import Node
from rejoin.stages.columns import numbered

if TYPE_CHECKING:
    from rejoin.run.work import Work


class Outer:
    """What a star with one right or full edge needs beside.

    Args:
        work: what the attempt works with.
        node: the node.
    """

    def __init__(self, work: "Work", node: Node) -> None:
        self._work, self._facts, self._engine, self._sql, self._node = work, work.facts, work.engine, work.engine.sql, node
        self._spoken, self._edge = work.engine.node(node), node.edges[0]
        plan = work.facts.plan
        self._right, self._right_key = self._edge.right.table, plan.key_of(self._edge.right.table)
        self._left_key = plan.left_key(node)
        self._lefts = len(self._left_key)

    def everything(self, state: Rows) -> Rows:
        """``state`` of all left rows -> of all results."""
        keyed = self._keyed(state)
        taken = self._engine.query(statements.met(self._lefts, len(self._right_key)), state=keyed)
        return self._with(keyed, self._work.now.current(self._right), taken)

    def touched(self) -> Keys:
        """The right rows (columns: the right part of the output's key) that may have gained their first left row or lost the last, or changed."""
        run, parts, at_most = self._facts.run.number, list[Rows](), 0
        names = self._node.key[self._lefts :]
        sent = self._work.now.sent(self._node, self._edge, run) if self._facts.sent(self._node) else None
        if sent is not None:
            parts.append(self._named(sent, numbered("fk", len(names)), names))
            at_most += self._facts.sent(self._node)
        changes = self._work.now.changes(self._right, run) if self._facts.changed(self._right) else None
        if changes is not None:
            parts.append(self._named(changes, self._right_key, names))
            at_most += self._facts.changed(self._right)
        held = self._work.before.held(self._node.name, None) if self._facts.judged_again(self._node) else None
        if held is not None:
            parts.append(self._named(held, names, names))
            at_most += self._facts.held(self._node)
        if not parts:
            return Keys(self._named(self._work.now.none(self._right), self._right_key, names), 0)
        inputs = {f"part_{i}": part for i, part in enumerate(parts)}
        columns = self._sql.names(names)
        every = " UNION ".join(f"SELECT {columns} FROM {part}" for part in inputs)
        known = " OR ".join(f"{self._sql.name(k)} IS NOT NULL" for k in names)
        return Keys(self._engine.query(f"SELECT * FROM ({every}) WHERE {known}", **inputs), at_most)

    def follow(self, state: Rows, touched: Keys) -> Rows:
        """``state`` of the affected left rows -> of all results that can change."""
        names = self._node.key[self._lefts :]
        rights = self._work.now.lookup(self._right, Keys(self._named(touched.rows, names, self._right_key), touched.at_most))
        fks = tuple(numbered("fk", len(names)))
        keys = Keys(self._named(touched.rows, names, fks), touched.at_most)
        taken = self._work.now.subscribers(self._node, self._edge, keys)
        return self._with(self._keyed(state), rights, self._engine.query(f"SELECT {self._sql.names(fks)} FROM taken", taken=taken))

    def old(self, lefts: Keys, touched: Keys) -> Rows | None:
        """The output's rows that are such results; None if it never had a row. ``lefts``: the keys of the left rows."""
        before, name = self._work.before, self._node.name
        if not before.has(name):
            return None
        mine, theirs = self._left_key, self._node.key[self._lefts :]
        return self.among(before.lookup_any(name, [(mine, lefts), (theirs, touched)]), lefts, touched)

    def among(self, rows: Rows, lefts: Keys, touched: Keys) -> Rows:
        """Those of some rows that are such results."""
        text = statements.in_scope(self._sql, self._node.key, self._lefts)
        return self._engine.query(text, rows_=rows, mine=lefts.rows, theirs=touched.rows)

    def _with(self, keyed: Rows, rights: Rows, taken: Rows) -> Rows:
        text = statements.lonely(self._sql, self._spoken, self._lefts, self._right_key)
        lonely = self._engine.query(text, rights=rights, taken=taken, state=keyed)
        columns = self._sql.names(keyed.columns)
        return self._engine.query(f"SELECT {columns} FROM keyed UNION ALL SELECT {columns} FROM lonely", keyed=keyed, lonely=lonely)

    def _keyed(self, state: Rows) -> Rows:
        return self._engine.query(statements.keyed(self._sql, self._spoken, self._lefts), state=state)

    def _named(self, rows: Rows, old: "list[str] | tuple[str, ...]", new: tuple[str, ...]) -> Rows:
        return self._engine.query(f"SELECT {self._sql.renamed(old, new)} FROM rows_", rows_=rows)
