"""The steps of a run that have nothing to do, seen by the ledger alone and registered together: by itself each takes five transactions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import monotonic

from rejoin import crash
from rejoin.failures.engine_errors import named_errors
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.plan.model.steps import Step, Verb
from rejoin.plan.sql import suspects
from rejoin.steps.run.step_input import StepInput
from rejoin.steps.run.topology import Topology


def end_idle_steps(topology: Topology, run: Run, waiting: Iterable[Step]) -> list[StepRecord]:
    """Registers, in one transaction, the steps that have nothing to do, and before which no step has. Returns their records, in order.

    None of them if another process has registered one meanwhile: then each step is looked at by itself.

    Args:
        topology: whose run it is.
        run: the open run, after its cut.
        waiting: the steps on rows that it has not begun, each behind those that it comes after.

    Raises:
        RunSuperseded: the run is closed.
    """
    found = list(_idle(topology, run, waiting))
    for record in found:
        crash.point(f"{record.step}:registering")
    if not found or not topology.ledger.register_idle(run.number, found):
        return []
    for record in found:
        crash.point(f"{record.step}:registered")
    return found


def _idle(topology: Topology, run: Run, waiting: Iterable[Step]) -> Iterator[StepRecord]:
    start = topology.start(run)
    ended = {str(Verb.CUT), *start.known.steps}
    for step in waiting:
        if step.id in ended or not ended.issuperset(step.after):
            continue
        began = monotonic()
        with named_errors(start.called(step), suspects.of_step(run.plan, step.verb, step.target)):
            outcome = StepInput(start, lambda: topology.refs).nothing_to_do(step)
        if outcome is None:
            continue
        made = outcome.result
        record = StepRecord(step.id, made.counts, monotonic() - began, 0, outcome.detail, made.ending)
        start = replace(start, known=replace(start.known, steps={**start.known.steps, step.id: record}))
        ended.add(step.id)
        yield record
