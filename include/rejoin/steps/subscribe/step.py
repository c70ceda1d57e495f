"""subscribe: the left changes of a run become subscriptions to right rows."""

from functools import partial

from rejoin.context.outcome import Outcome
from rejoin.context.uncomputable_rows import UncomputableRows, can_sift
from rejoin.context.work import Work
from rejoin.engines.relation import KeySpread, Relation
from rejoin.joins.foreign_key import subscribe
from rejoin.joins.group import statements as group
from rejoin.lake import table_names
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import Subscribed
from rejoin.plan.model.steps import Verb
from rejoin.statements.dialect import counted
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import subscription_key


class Subscribing:
    """One attempt to subscribe."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._engine, self._sql = work.engine, work.engine.sql

    def run(self, node: Node) -> Outcome[Subscribed]:
        """Writes the subscriptions of a node, on all of its edges, or to its groups."""
        changes = _left_changes(self._work, node)
        assert changes is not None
        try:
            return self._subscribed(node, changes)
        except Exception as error:
            if not can_sift(error, self._facts.left_rows(node)):
                raise
        # Once more; what was written so far is garbage. A row that cannot be computed has no foreign key, before as well.
        self._writer, sieve, key = (
            self._writer.again(),
            UncomputableRows(self._work, node, Verb.SUBSCRIBE),
            self._facts.plan.key_of(node.left.table),
        )
        changes = sieve.lefts(sieve.lefts(changes, key, "_before", counts=False), key, "_after")
        sieve.check()
        return self._subscribed(node, changes)

    def _subscribed(self, node: Node, changes: Relation) -> Outcome[Subscribed]:
        key, spoken = self._facts.plan.key_of(node.left.table), self._engine.node(node)
        counts, writes = {"subscribed": 0, "unsubscribed": 0}, []
        for to, name in ((e, table_names.subscriptions(node, e)) for e in spoken.subscribes_to):
            run = self._facts.run.number
            if isinstance(to, Grouping):
                statement = group.joined(self._sql, spoken.left, to, key, run)
            else:
                statement = subscribe.subscribe(self._sql, spoken.left, to, key, run)
            rows = self._engine.query(statement, changes=changes)
            observed, seen = self._engine.counted(rows, counted({"subscribed": "_op = 'S'", "unsubscribed": "_op = 'D'"}))
            put = self._writer.replace if self._facts.rebuilt(node) else self._writer.append
            at_most, order = 2 * self._facts.left_rows(node), subscription_key(to, key)
            lies = partial(KeySpread, changes, key, at_most, nulls=self._facts.plan.null_keys(node.left.table))
            apart = self._engine.apart(self._engine.small(observed, at_most), numbered("pk", len(key)), lies)
            stored = self._engine.gathered(apart, order, at_most)
            writes.append(put(name, stored, order))
            counts = {n: counts[n] + made for n, made in seen().items()}
        return Outcome(Subscribed.of(counts), tuple(writes))


def _left_changes(work: Work, node: Node) -> Relation | None:
    """What the node has to look at on its left: this run's changes, or every row if its definition is new; None if there is nothing."""
    table, facts = node.left.table, work.facts
    if not facts.rebuilt(node):
        return work.now.changes(table, facts.run.number) if facts.changed(table) else None
    key = work.engine.sql.names(facts.plan.key_of(table))
    nothing = "CASE WHEN false THEN _row END"
    return work.engine.query(f"SELECT {key}, 'I' AS _op, {nothing} AS _before, _row AS _after FROM lefts", lefts=work.now.current(table))
