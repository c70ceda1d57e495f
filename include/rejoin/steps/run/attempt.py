"""One attempt at one step of an open run. Everything it writes goes to branches of its own; nothing counts before the ledger has registered it."""

import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rejoin import crash, sources
from rejoin.context.facts import Facts, watched
from rejoin.context.work import Cut, Outcome, Work
from rejoin.engines.placement import WorkSize
from rejoin.engines.relation import Engine
from rejoin.lake import validation_results
from rejoin.lake.config import LakeConfig
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.records import AttemptContext, Run
from rejoin.lake.read.reader import Reader
from rejoin.lake.read.table_sizes import Sizes
from rejoin.lake.write.writer import Writer
from rejoin.plan.model.plan import Node, Plan, Table
from rejoin.plan.model.policy import Refresh
from rejoin.plan.model.step_results import Ending, Ingested, Resolved, Responded, Result, Subscribed, Validated
from rejoin.plan.model.steps import Step, Verb
from rejoin.steps.ingest import snapshot_ends
from rejoin.steps.ingest.step import Ingesting
from rejoin.steps.resolve.step import Resolving
from rejoin.steps.respond.step import Responding
from rejoin.steps.run.self_check import SelfCheck
from rejoin.steps.run.step_size import no_stage, size_of
from rejoin.steps.subscribe.step import Subscribing
from rejoin.steps.validate.step import Validating, as_resolved

SKIPPED: dict[Verb, Result] = {Verb.SUBSCRIBE: Subscribed(), Verb.RESPOND: Responded(), Verb.RESOLVE: Resolved(ending=Ending.KEPT)}
"""What the steps of a node come to that the run leaves out."""


@dataclass(frozen=True)
class AttemptStart:
    """What an attempt starts from. All of it can be sent to another process.

    Args:
        config: the lake.
        run: the open run; its pinned plan is what is executed.
        known: what the ledger knows of it.
        access: how sources are reached.
    """

    config: LakeConfig
    run: Run
    known: AttemptContext
    access: sources.SourceAccess

    def results(self, name: str) -> Path | None:
        """Where the results of a table's or node's validation are kept."""
        return validation_results.directory(self.config, self.run.topology, self.run.number, name)


class Attempt:
    """One try at one step.

    Args:
        start: what it starts from.
        refs: the branches of the topology's tables.
    """

    def __init__(self, start: AttemptStart, refs: Refs) -> None:
        self.id = uuid.uuid4().hex[:10]
        self._refs, self._run, self._access, self._results = refs, start.run, start.access, start.results
        known = start.known
        self._pins, self._base = known.pins, known.base
        self._now = self._base | {w.table: w.snapshot_id for w in known.writes.values()}
        self._facts = Facts(start.run, known, Sizes(refs, self._base), Sizes(refs, self._now))

    @property
    def plan(self) -> Plan:
        """What is executed."""
        return self._run.plan

    def nothing_to_do(self, step: Step) -> Outcome[Result] | None:
        """The outcome of a step that has no input, or needs no Spark for it, so that a run without changes starts none at all; None if it does."""
        facts = self._facts
        if step.verb in SKIPPED and facts.skipped(step.target):
            return Outcome(SKIPPED[step.verb], detail={"refresh": str(Refresh.SKIP), "why": "not asked of this run"})
        if step.verb in SKIPPED and (waited := facts.waits_for(step.target)):
            goes_on = f"a snapshot in the feed of {', '.join(waited)} goes on"
            return Outcome(SKIPPED[step.verb], detail={"refresh": str(Refresh.SKIP), "why": goes_on, "waits_for": waited})
        match step.verb:
            case Verb.INGEST:
                table = facts.plan.table(step.target)
                idle = self._pins[table.name] is None and table.name in self._base
                return self._told(table, Outcome(Ingested())) if idle and not facts.judged_again(table) and not watched(table) else None
            case Verb.SUBSCRIBE:
                return None if facts.left_changed(facts.plan.node(step.target)) else Outcome(Subscribed())
            case Verb.RESPOND:
                node, edge = facts.edge(step.target)
                asked = facts.sent(node) > 0 or facts.right_changed(node, edge)
                if asked and (why := facts.instead(node, edge)):
                    return Outcome(Responded(ending=Ending.DEFERRED), detail={"left_out": why})
                return None if asked else Outcome(Responded())
            case Verb.RESOLVE:
                node = facts.plan.node(step.target)
                if (
                    facts.left_changed(node)
                    or facts.judged_again(node)
                    or facts.answers(node)
                    or facts.deferred(node)
                    or facts.rights_changed(node)
                ):
                    return None
                return Outcome(Resolved())
            case Verb.VALIDATE:
                node = facts.plan.node(step.target)
                if facts.to_be_judged(node) and not facts.skipped(node.name):
                    return None
                return self._checked(node, Outcome(as_resolved(facts.resolved(node))))
            case _:
                raise no_stage(step)

    def size(self, step: Step) -> WorkSize:
        """How much a step that has something to do works on."""
        return size_of(step, self._facts, self._pins.get(step.target) if step.verb is Verb.INGEST else None)

    def execute(self, engine: Engine, step: Step) -> Outcome[Result]:
        """Does the work of a step that has something to do; registers nothing."""
        facts, plan = self._facts, self._run.plan
        before, now = (Reader(engine, plan, states, self._refs) for states in (self._base, self._now))
        work = Work(engine, facts, before, now, Writer(engine, self._refs, self._base, self._run.number, self.id))
        outcome: Outcome[Result]
        match step.verb:
            case Verb.INGEST:
                with sources.coded_errors():
                    table = plan.table(step.target)
                    pinned = self._pins[table.name]
                    cut = Cut(None if pinned is None else sources.Pin.from_dict(pinned), self._access)
                    outcome = self._told(table, Ingesting(work, cut, self._results(table.name)).run(table))
            case Verb.SUBSCRIBE:
                outcome = Subscribing(work).run(plan.node(step.target))
            case Verb.RESPOND:
                outcome = Responding(work).run(*facts.edge(step.target))
            case Verb.RESOLVE:
                outcome = Resolving(work).run(plan.node(step.target))
            case Verb.VALIDATE:
                node = plan.node(step.target)
                outcome = self._checked(node, Validating(work, self._results(node.name)).run(node))
            case _:
                raise no_stage(step)
        crash.point(f"{step.id}:written")
        reads = [asdict(read) for read in (*before.reads, *now.reads)]
        return replace(outcome, detail={**outcome.detail, "reads": reads})

    def _told(self, table: Table, outcome: Outcome[Ingested]) -> Outcome[Ingested]:
        """The outcome of an ingest, which tells what is made of the table to wait."""
        waits = snapshot_ends.waits(self._facts, table, outcome.generations)
        return replace(outcome, result=replace(outcome.result, ending=Ending.INCOMPLETE)) if waits else outcome

    def _checked(self, node: Node, outcome: Outcome[Validated]) -> Outcome[Validated]:
        """The outcome of a node's validation, after the checks that every run makes on itself."""
        now = self._now | {w.table: w.snapshot_id for w in outcome.writes}
        checked = SelfCheck(self._refs, self._run, self._base, now).node(node, outcome.result, self._facts)
        return replace(outcome, detail={**outcome.detail, "self_checks": checked})
