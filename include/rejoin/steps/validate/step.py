"""validate: the changes of a node are judged; what passes becomes visible with the run, rows that are to be held back do not (ADR 0010)."""

from pathlib import Path

from rejoin.context.facts import watched
from rejoin.context.new_output import OPS, applied, load
from rejoin.context.outcome import Outcome
from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Write
from rejoin.lake.read.reader import Reader
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import Changed, Ending, Validated
from rejoin.statements.dialect import counted
from rejoin.steps.validate import held_rows
from rejoin.steps.validate.judging import Judging, hours_since_newest, measured, share_matched


class Validating:
    """One attempt to validate a node.

    Args:
        work: what the attempt works with.
        results: where the results are kept; None: only in the ledger.
    """

    def __init__(self, work: Work, results: Path | None) -> None:
        self._work, self._facts, self._results = work, work.facts, results
        self._engine, self._sql = work.engine, work.engine.sql

    def run(self, node: Node) -> Outcome[Validated]:
        """Judges the node's changes; writes them if ``resolve`` has not done so already."""
        made = self._facts.resolved(node)
        judging = Judging(self._work.engine, node, self._facts.run.number, self._results)
        if made.ending is Ending.KEPT:
            return Outcome(Validated.as_resolved(made))
        if made.ending is Ending.DONE:
            changes = self._work.now.changes(node.name, self._facts.run.number) if made.changes else None
            if changes is not None:
                judging.changed_rows(self._new_rows(changes, node), made.changes)
            return self._finish(node, judging, Validated.as_resolved(made), ())
        candidates = self._work.now.candidates(node)
        assert candidates is not None  # resolve has written them
        bad = judging.changed_rows(self._new_rows(candidates, node), made.changes)
        judging.computed(made.uncomputable, made.changes + made.uncomputable)
        return self._finish(node, judging, *self._split(node, candidates, bad))

    def _split(self, node: Node, candidates: Relation, bad: Relation | None) -> tuple[Validated, tuple[Write, ...]]:
        """Writes the output and its changes without the rows to be held back, and what happened to those."""
        run, made = self._facts.run.number, self._facts.resolved(node)
        inputs = {"candidates": candidates, **({} if bad is None else {"bad": self._engine.everywhere(bad)})}
        statement = held_rows.judged(self._sql, node.key, bad=bad is not None, nulls=node.null_keys_aside)
        judged = self._engine.query(statement, **inputs)
        at_most = made.changes + made.held_before + made.uncomputable
        good = self._engine.query(held_rows.published(self._sql, node.key, run), judged=judged)
        if not self._work.before.has(node.name):
            counts, writes = load(self._work, self._work.writer, node, good, at_most)
            done = Changed.of(counts)
        else:
            observed, seen = self._engine.counted(good, counted(OPS))
            log = self._work.writer.log(node, self._engine.small(observed, at_most))
            done = Changed.of(seen())
            writes = applied(log, done, rebuilt=self._facts.rebuilt(node))
        if bad is not None or made.held_before or made.uncomputable:
            ops = counted({"held_back": "_op = 'Q'", "released": "_op = 'R'"})
            aside, seen = self._engine.counted(self._engine.query(held_rows.set_aside(self._sql, node, run), judged=judged), ops)
            quarantine = self._work.writer.append(table_names.quarantine(node.name), self._engine.small(aside, at_most), node.key)
            return Validated.of({**done.counts, **seen()}), (*writes, quarantine)
        return Validated.as_resolved(done), writes

    def _new_rows(self, changes: Relation, node: Node) -> Relation:
        return self._engine.query(held_rows.new_rows(self._sql, node), changes=changes)

    def _finish(self, node: Node, judging: Judging, done: Validated, writes: tuple[Write, ...]) -> Outcome[Validated]:
        """Judges the table as it would become."""
        after, facts = self._work.after(writes), self._facts
        if done.changes or facts.asked_again(node.name) or watched(node):
            judging.table(after, after.live(node.name), {n: self._measure(node, e, after) for n, e in measured(node)})
        return Outcome(done, writes, judging.detail())

    def _measure(self, node: Node, one: Expectation, after: Reader) -> float | None:
        match one.type:
            case "row_count":
                before = self._facts.before.live(node.name)
                return after.live(node.name) / before - 1 if before else None
            case "matched":
                return share_matched(self._facts.plan, node, one.kwargs["table"], after)
            case _:
                return hours_since_newest(node.name, one.kwargs["column"], after, self._facts.run.opened_at)
