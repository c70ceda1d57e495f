"""One attempt at one step of an open run. Everything it writes goes to branches of its own; nothing counts before the ledger has registered it."""

import uuid
from dataclasses import asdict, replace

from pyspark.sql import SparkSession

from rejoin import crash, sources
from rejoin.checks import no_input
from rejoin.lake.files import Sizes
from rejoin.lake.ledger import Ledger, Run
from rejoin.lake.reader import Reader
from rejoin.lake.refs import Refs
from rejoin.lake.writer import Writer
from rejoin.plan.model import Refresh
from rejoin.plan.steps import Step, Verb
from rejoin.run.facts import Facts
from rejoin.run.ingesting import Ingesting
from rejoin.run.joining import Joining
from rejoin.run.resolving import Resolving
from rejoin.run.work import Outcome, Work

UNCHANGED = dict.fromkeys(("stale", "inserted", "updated", "deleted", "unchanged", "changes"), 0)
SKIPPED = {
    Verb.SUBSCRIBE: {"subscribed": 0, "unsubscribed": 0},
    Verb.RESPOND: {"responses": 0},
    Verb.RESOLVE: {**UNCHANGED, "held": 0},
}
"""What the steps of a node count that the run leaves out."""


class Attempt:
    """One try at one step.

    Args:
        ledger: the topology's ledger.
        refs: the branches of its tables.
        run: the open run; its pinned plan is what is executed.
        root: where relative source paths start.
    """

    def __init__(self, ledger: Ledger, refs: Refs, run: Run, root: str) -> None:
        self.id = uuid.uuid4().hex[:10]
        self._refs, self._run, self._root = refs, run, root
        self._pins = ledger.pins(run.number)
        self._base = ledger.states(run.base)
        self._now = self._base | {w.table: w.snapshot_id for w in ledger.writes(run.number).values()}
        self._facts = Facts(run, ledger.steps(run.number), Sizes(refs, self._base), Sizes(refs, self._now))

    def nothing_to_do(self, step: Step) -> Outcome | None:
        """The outcome of a step that has no input, so that a run without changes starts no Spark at all; None if it has some."""
        facts = self._facts
        if step.verb is not Verb.INGEST and facts.skipped(step.target):
            return Outcome(dict(SKIPPED[step.verb]), detail={"refresh": str(Refresh.SKIP), "why": "not asked of this run"})
        match step.verb:
            case Verb.INGEST:
                idle = self._pins[step.target] is None and step.target in self._base
                return Outcome(no_input()) if idle else None
            case Verb.SUBSCRIBE:
                return None if facts.left_changed(facts.plan.node(step.target)) else Outcome({"subscribed": 0, "unsubscribed": 0})
            case Verb.RESPOND:
                node, edge = facts.edge(step.target)
                asked = facts.sent(node) > 0 or facts.right_changed(node, edge)
                if asked and (why := facts.instead(node, edge)):
                    return Outcome({"responses": 0, "left_out": 1}, detail={"left_out": why})
                return None if asked else Outcome({"responses": 0})
            case Verb.RESOLVE:
                node = facts.plan.node(step.target)
                if facts.left_changed(node) or any(facts.responded(node, e) or facts.left_out(node, e) for e in node.edges):
                    return None
                return Outcome(dict(UNCHANGED))
            case _:
                raise ValueError(f"step {step.id} is not a Spark stage")

    def execute(self, spark: SparkSession, step: Step) -> Outcome:
        """Does the work of a step that has something to do; registers nothing."""
        facts, plan = self._facts, self._run.plan
        before, now = (Reader(spark, plan, states, self._refs) for states in (self._base, self._now))
        work = Work(spark, facts, before, now, Writer(spark, self._refs, self._base, self._run.number, self.id))
        match step.verb:
            case Verb.INGEST:
                with sources.coded_errors():
                    outcome = Ingesting(work).run(plan.table(step.target), self._pins[step.target], self._root)
            case Verb.SUBSCRIBE:
                outcome = Joining(work).subscribe(plan.node(step.target))
            case Verb.RESPOND:
                outcome = Joining(work).respond(*facts.edge(step.target))
            case _:
                outcome = Resolving(work).run(plan.node(step.target))
        crash.point(f"{step.id}:written")
        reads = [asdict(read) for read in (*before.reads, *now.reads)]
        return replace(outcome, detail={**outcome.detail, "reads": reads})
