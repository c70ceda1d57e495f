"""respond: the subscriptions of a run, and changed right rows, become responses."""

from rejoin.context.outcome import Outcome
from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.joins.foreign_key import respond
from rejoin.lake import table_names
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.plan.model.plan import Edge, Node
from rejoin.plan.model.step_results import Responded
from rejoin.statements.own_columns import numbered


class Responding:
    """One attempt to respond."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._engine, self._sql = work.engine, work.engine.sql

    def run(self, node: Node, edge: Edge) -> Outcome[Responded]:
        """Writes the responses on an edge of a node."""
        run, pks = self._facts.run.number, len(self._facts.plan.key_of(node.left.table))
        spoken = next(e for e in self._engine.node(node).edges if e.name == edge.name)
        answers, at_most = [], 0
        if self._facts.sent(node):
            answers.append(self._answered(node, spoken, run, pks))
            at_most = self._facts.subscribed(node).sent
        if self._facts.right_changed(node, edge):
            told, found = self._told(node, spoken, run, pks)
            answers.append(told)
            at_most += found
        responses = (
            answers[0]
            if len(answers) == 1
            else self._engine.query("SELECT * FROM sent UNION ALL SELECT * FROM told", sent=answers[0], told=answers[1])
        )
        observed, seen = self._engine.counted(responses, {"responses": "count(*)"})
        order = numbered("pk", pks)
        rows = self._engine.gathered(self._engine.small(observed, at_most), order, at_most)
        write = self._writer.append(table_names.responses(node, edge), rows, order, transient=True)
        return Outcome(Responded(responses=seen()["responses"]), (write,))

    def _answered(self, node: Node, edge: Edge, run: int, pks: int) -> Relation:
        """The answers to this run's subscriptions."""
        right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
        sent = self._work.now.sent(node, edge, run)
        assert sent is not None  # the node has sent some
        wanted = self._engine.query(respond.wanted(self._sql, edge, key), subscriptions=sent)
        rights = self._work.now.lookup(right, LookupKeys(wanted, self._facts.subscribed(node).subscribed))
        return self._engine.query(respond.answer_subscriptions(self._sql, edge, key, pks), subscriptions=sent, rights=rights)

    def _told(self, node: Node, edge: Edge, run: int, pks: int) -> tuple[Relation, int]:
        """What subscribers are told of changed right rows, and how many they are at most."""
        right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
        changes = self._work.now.changes(right, run)
        assert changes is not None  # the right side has some
        moved = self._engine.query(respond.moved(self._sql, edge, key), changes=changes)
        subscribers = self._work.now.subscribers(node, edge, LookupKeys(moved, self._facts.changed(right)))
        found = self._work.now.reads[-1].rows
        told = self._engine.query(respond.answer_right_changes(self._sql, edge, pks, run), subscribers=subscribers, moved=moved)
        return told, limits().large if found is None else found
