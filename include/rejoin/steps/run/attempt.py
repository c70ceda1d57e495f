"""One attempt at one step of an open run. Everything it writes goes to branches of its own; nothing counts before the ledger has registered it."""

import uuid
from dataclasses import asdict, replace

from rejoin import crash, sources
from rejoin.context.outcome import Outcome
from rejoin.context.work import Cut, Work
from rejoin.engines.placement import WorkSize
from rejoin.engines.relation import Engine
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.read.reader import Reader
from rejoin.lake.write.writer import Writer
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.step_results import Result
from rejoin.plan.model.steps import Step, Verb
from rejoin.steps.ingest.step import Ingesting
from rejoin.steps.resolve.step import Resolving
from rejoin.steps.respond.step import Responding
from rejoin.steps.run.step_input import AttemptStart, StepInput, no_stage
from rejoin.steps.run.step_size import size_of
from rejoin.steps.subscribe.step import Subscribing
from rejoin.steps.validate.step import Validating


class Attempt:
    """One try at one step.

    Args:
        start: what it starts from.
        refs: the branches of the topology's tables.
    """

    def __init__(self, start: AttemptStart, refs: Refs) -> None:
        self.id = uuid.uuid4().hex[:10]
        self._refs, self._start, self._input = refs, start, StepInput(start, lambda: refs)

    @property
    def plan(self) -> Plan:
        """What is executed."""
        return self._start.run.plan

    def size(self, step: Step) -> WorkSize:
        """How much a step that has something to do works on."""
        return size_of(step, self._input.facts, self._input.pins.get(step.target) if step.verb is Verb.INGEST else None)

    def execute(self, engine: Engine, step: Step) -> Outcome[Result]:
        """Does the work of a step that has something to do; registers nothing."""
        met, plan, start = self._input, self.plan, self._start
        before, now = (Reader(engine, plan, states, self._refs) for states in (met.base, met.now))
        work = Work(engine, met.facts, before, now, Writer(engine, self._refs, met.base, start.run.number, self.id))
        outcome: Outcome[Result]
        match step.verb:
            case Verb.INGEST:
                with sources.coded_errors():
                    table = plan.table(step.target)
                    pinned = met.pins[table.name]
                    cut = Cut(None if pinned is None else sources.Pin.from_dict(pinned), start.access)
                    outcome = met.told(table, Ingesting(work, table, cut, start.results(table.name)).run())
            case Verb.SUBSCRIBE:
                outcome = Subscribing(work).run(plan.node(step.target))
            case Verb.RESPOND:
                outcome = Responding(work).run(*met.facts.edge(step.target))
            case Verb.RESOLVE:
                outcome = Resolving(work, plan.node(step.target)).run()
            case Verb.VALIDATE:
                node = plan.node(step.target)
                outcome = met.checked(node, Validating(work, start.results(node.name)).run(node))
            case _:
                raise no_stage(step)
        crash.point(f"{step.id}:written")
        reads = [asdict(read) for read in (*before.reads, *now.reads)]
        return replace(outcome, detail={**outcome.detail, "reads": reads})
