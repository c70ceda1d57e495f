"""What a step of an open run meets: enough to see that it has nothing to do, without PyIceberg and without an engine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rejoin.context.facts import Facts, watched
from rejoin.context.open_snapshots import waits
from rejoin.context.outcome import Outcome
from rejoin.lake import validation_results
from rejoin.lake.config import LakeConfig
from rejoin.lake.ledger.records import AttemptContext, Run
from rejoin.lake.read.table_sizes import Sizes
from rejoin.plan.model.plan import Node, Table
from rejoin.plan.model.policy import Refresh
from rejoin.plan.model.step_results import Ending, Ingested, Resolved, Responded, Result, Subscribed, Validated
from rejoin.plan.model.steps import Step, Verb

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs
    from rejoin.sources import SourceAccess

SKIPPED: dict[Verb, Result] = {Verb.SUBSCRIBE: Subscribed(), Verb.RESPOND: Responded(), Verb.RESOLVE: Resolved(ending=Ending.KEPT)}
"""What the steps of a node come to that the run leaves out."""


def no_stage(step: Step) -> ValueError:
    """The error of a step that no attempt does."""
    return ValueError(f"step {step.id} is none that an attempt does")


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
    access: "SourceAccess"

    def results(self, name: str) -> Path | None:
        """Where the results of a table's or node's validation are kept."""
        return validation_results.directory(self.config, self.run.topology, self.run.number, name)

    def called(self, step: Step) -> str:
        """How errors name a step."""
        return f"step {step.id} in run {self.run.number} of topology {self.run.topology!r}"


class StepInput:
    """The facts of a run before one of its steps.

    Args:
        start: what an attempt starts from.
        refs: gives the branches of the topology's tables; called only if they are asked.
    """

    def __init__(self, start: AttemptStart, refs: "Callable[[], Refs]") -> None:
        self._refs, self._run = refs, start.run
        self.pins, self.base = start.known.pins, start.known.base
        self.now = self.base | {w.table: w.snapshot_id for w in start.known.writes.values()}
        self.facts = Facts(start.run, start.known, Sizes(refs, self.base), Sizes(refs, self.now))

    def nothing_to_do(self, step: Step) -> Outcome[Result] | None:
        """The outcome of a step that has no input, or needs no engine for it, so that a run without changes loads none at all; None if it does."""
        facts = self.facts
        if step.verb in SKIPPED and facts.skipped(step.target):
            return Outcome(SKIPPED[step.verb], detail={"refresh": str(Refresh.SKIP), "why": "not asked of this run"})
        if step.verb in SKIPPED and (waited := facts.waits_for(step.target)):
            goes_on = f"a snapshot in the feed of {', '.join(waited)} goes on"
            return Outcome(SKIPPED[step.verb], detail={"refresh": str(Refresh.SKIP), "why": goes_on, "waits_for": waited})
        match step.verb:
            case Verb.INGEST:
                table = facts.plan.table(step.target)
                idle = self.pins[table.name] is None and table.name in self.base
                return self.told(table, Outcome(Ingested())) if idle and not facts.judged_again(table) and not watched(table) else None
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
                return self.checked(node, Outcome(Validated.as_resolved(facts.resolved(node))))
            case _:
                raise no_stage(step)

    def told(self, table: Table, outcome: Outcome[Ingested]) -> Outcome[Ingested]:
        """The outcome of an ingest, which tells what is made of the table to wait."""
        late = waits(self.facts, table, outcome.generations)
        return replace(outcome, result=replace(outcome.result, ending=Ending.INCOMPLETE)) if late else outcome

    def checked(self, node: Node, outcome: Outcome[Validated]) -> Outcome[Validated]:
        """The outcome of a node's validation, after the checks that every run makes on itself; they need changes."""
        if not (outcome.result.changes or (node.subscribes_to and self.facts.sent(node))):
            return replace(outcome, detail={**outcome.detail, "self_checks": {}})
        from rejoin.steps.run.self_check import SelfCheck

        now = self.now | {w.table: w.snapshot_id for w in outcome.writes}
        found = SelfCheck(self._refs(), self._run, self.base, now).node(node, outcome.result, self.facts)
        return replace(outcome, detail={**outcome.detail, "self_checks": found})
