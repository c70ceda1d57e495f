"""subscribe and respond: left changes become subscriptions, and these and right changes become responses."""

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from rejoin.lake import names, probe
from rejoin.lake.access import Keys
from rejoin.plan.model import Edge, Node
from rejoin.plan.results import Responded, Subscribed
from rejoin.plan.steps import Verb
from rejoin.run.sifting import Sieve, can_sift
from rejoin.run.work import Outcome, Work, small
from rejoin.stages import respond as responding
from rejoin.stages import subscribe as subscribing
from rejoin.stages.columns import numbered


def left_changes(work: Work, node: Node) -> DataFrame | None:
    """What the node has to look at on its left: this run's changes, or every row if its definition is new; None if there is nothing."""
    table, facts = node.left.table, work.facts
    if not facts.rebuilt(node):
        return work.now.changes(table, facts.run.number) if facts.changed(table) else None
    rows = work.now.current(table)
    nothing = F.lit(None).cast(rows.schema["_row"].dataType)
    return rows.select(*facts.plan.key_of(table), F.lit("I").alias("_op"), nothing.alias("_before"), F.col("_row").alias("_after"))


class Joining:
    """One attempt to subscribe or to respond."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer

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

    def _subscribed(self, node: Node, changes: DataFrame) -> Outcome[Subscribed]:
        key = self._facts.plan.key_of(node.left.table)
        counts, writes = {"subscribed": 0, "unsubscribed": 0}, []
        for edge in node.edges:
            seen = Observation()
            rows = subscribing.subscribe(node.left, edge, changes, key, self._facts.run.number)
            ops = {"subscribed": "S", "unsubscribed": "D"}
            observed = rows.observe(seen, *(F.count(F.when(F.col("_op") == op, 1)).alias(n) for n, op in ops.items()))
            put = self._writer.replace if self._facts.rebuilt(node) else self._writer.append
            rows_now = small(observed, 2 * self._facts.left_rows(node))
            writes.append(put(names.subscriptions(node, edge), rows_now, _subscription_key(edge, key)))
            counts = {n: counts[n] + int(seen.get[n]) for n in counts}
        return Outcome(Subscribed.of(counts), tuple(writes))

    def respond(self, node: Node, edge: Edge) -> Outcome[Responded]:
        run, pks = self._facts.run.number, len(self._facts.plan.key_of(node.left.table))
        right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
        sent = self._work.now.sent(node, edge, run) if self._facts.sent(node) else None
        changes = self._work.now.changes(right, run) if self._facts.right_changed(node, edge) else None
        answers, at_most = [], 0
        if sent is not None:
            made = self._facts.subscribed(node)
            at_most = made.sent
            rights = self._work.now.lookup(right, Keys(responding.wanted(edge, sent, key), made.subscribed))
            answers.append(responding.answer_subscriptions(edge, sent, rights, key, pks))
        if changes is not None:
            moved = responding.moved(edge, changes, key)
            subscribers = self._work.now.subscribers(node, edge, Keys(moved, self._facts.changed(right)))
            told = self._work.now.reads[-1].rows
            at_most += probe.LOCAL_ROWS + 1 if told is None else told
            answers.append(responding.answer_right_changes(edge, moved, subscribers, pks, run))
        responses = answers[0] if len(answers) == 1 else answers[0].unionByName(answers[1])
        seen = Observation()
        observed = responses.observe(seen, F.count(F.lit(1)).alias("responses"))
        write = self._writer.append(names.responses(node, edge), small(observed, at_most), numbered("pk", pks), transient=True)
        return Outcome(Responded(responses=int(seen.get["responses"])), (write,))


def _subscription_key(edge: Edge, key: tuple[str, ...]) -> list[str]:
    return [*numbered("fk", len(edge.foreign_key)), *numbered("pk", len(key))]
