"""subscribe and respond: left changes become subscriptions, and these and right changes become responses."""

from rejoin.context.uncomputable_rows import Sieve, can_sift
from rejoin.context.work import Outcome, Work
from rejoin.engines.relation import Rows
from rejoin.joins.foreign_key import respond as responding
from rejoin.joins.foreign_key import subscribe as subscribing
from rejoin.lake import table_names
from rejoin.lake.read.lookups import Keys
from rejoin.limits import limits
from rejoin.plan.model.plan import Edge, Node
from rejoin.plan.model.step_results import Responded, Subscribed
from rejoin.plan.model.steps import Verb
from rejoin.statements.dialect import counted
from rejoin.statements.own_columns import numbered


def left_changes(work: Work, node: Node) -> Rows | None:
    """What the node has to look at on its left: this run's changes, or every row if its definition is new; None if there is nothing."""
    table, facts = node.left.table, work.facts
    if not facts.rebuilt(node):
        return work.now.changes(table, facts.run.number) if facts.changed(table) else None
    key = work.engine.sql.names(facts.plan.key_of(table))
    nothing = "CASE WHEN false THEN _row END"
    return work.engine.query(f"SELECT {key}, 'I' AS _op, {nothing} AS _before, _row AS _after FROM lefts", lefts=work.now.current(table))


class Joining:
    """One attempt to subscribe or to respond."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._engine, self._sql = work.engine, work.engine.sql

    def subscribe(self, node: Node) -> Outcome[Subscribed]:
        changes = left_changes(self._work, node)
        assert changes is not None
        try:
            return self._subscribed(node, changes)
        except Exception as error:
            if not can_sift(error, self._facts.left_rows(node)):
                raise
        # Once more; what was written so far is garbage. A row that cannot be computed has no foreign key, before as well.
        self._writer, sieve, key = self._writer.again(), Sieve(self._work, node, Verb.SUBSCRIBE), self._facts.plan.key_of(node.left.table)
        changes = sieve.lefts(sieve.lefts(changes, key, "_before", counts=False), key, "_after")
        sieve.check()
        return self._subscribed(node, changes)

    def _subscribed(self, node: Node, changes: Rows) -> Outcome[Subscribed]:
        key, spoken = self._facts.plan.key_of(node.left.table), self._engine.node(node)
        counts, writes = {"subscribed": 0, "unsubscribed": 0}, []
        for edge, name in ((e, table_names.subscriptions(node, e)) for e in spoken.edges):
            statement = subscribing.subscribe(self._sql, spoken.left, edge, key, self._facts.run.number)
            rows = self._engine.query(statement, changes=changes)
            observed, seen = self._engine.counted(rows, counted({"subscribed": "_op = 'S'", "unsubscribed": "_op = 'D'"}))
            put = self._writer.replace if self._facts.rebuilt(node) else self._writer.append
            writes.append(put(name, self._engine.small(observed, 2 * self._facts.left_rows(node)), _subscription_key(edge, key)))
            counts = {n: counts[n] + made for n, made in seen().items()}
        return Outcome(Subscribed.of(counts), tuple(writes))

    def respond(self, node: Node, edge: Edge) -> Outcome[Responded]:
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
        rows = self._engine.small(observed, at_most)
        write = self._writer.append(table_names.responses(node, edge), rows, numbered("pk", pks), transient=True)
        return Outcome(Responded(responses=seen()["responses"]), (write,))

    def _answered(self, node: Node, edge: Edge, run: int, pks: int) -> Rows:
        """The answers to this run's subscriptions."""
        right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
        sent = self._work.now.sent(node, edge, run)
        assert sent is not None  # the node has sent some
        wanted = self._engine.query(responding.wanted(self._sql, edge, key), subscriptions=sent)
        rights = self._work.now.lookup(right, Keys(wanted, self._facts.subscribed(node).subscribed))
        return self._engine.query(responding.answer_subscriptions(self._sql, edge, key, pks), subscriptions=sent, rights=rights)

    def _told(self, node: Node, edge: Edge, run: int, pks: int) -> tuple[Rows, int]:
        """What subscribers are told of changed right rows, and how many they are at most."""
        right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
        changes = self._work.now.changes(right, run)
        assert changes is not None  # the right side has some
        moved = self._engine.query(responding.moved(self._sql, edge, key), changes=changes)
        subscribers = self._work.now.subscribers(node, edge, Keys(moved, self._facts.changed(right)))
        found = self._work.now.reads[-1].rows
        told = self._engine.query(responding.answer_right_changes(self._sql, edge, pks, run), subscribers=subscribers, moved=moved)
        return told, limits().large if found is None else found


def _subscription_key(edge: Edge, key: tuple[str, ...]) -> list[str]:
    return [*numbered("fk", len(edge.foreign_key)), *numbered("pk", len(key))]
