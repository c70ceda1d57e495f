"""deliver: one sink catches up with the committed runs of its output, from its own cursor, in the order of the runs.

Works from what is committed alone: no run has to be open, and nothing here can hold one up.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rejoin.context.progress import SILENT, Progress
from rejoin.context.topology_lake import TopologyLake
from rejoin.errors import RejoinError, SinksBehind, UnknownTable
from rejoin.failures import extras
from rejoin.failures.engine_errors import named_errors, told
from rejoin.lake.ledger.deliveries import Deliveries, Delivery
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import Sink, Start, sink_id
from rejoin.plan.model.steps import Step
from rejoin.plan.model.steps import deliveries as steps_of
from rejoin.sinks.position import Position

if TYPE_CHECKING:
    from rejoin.steps.deliver.catch_up import Restart

PARALLEL_SINKS = 4


def deliver(topology: TopologyLake, name: str, restart: "Restart | None" = None) -> Delivery:
    """Brings one sink up to date with the newest committed run.

    Args:
        topology: the topology; its plan says which sinks there are.
        name: ``output.sink``.
        restart: deliver again what was delivered already.

    Raises:
        UnknownTable: there is no such sink.
        RunUnknown: ``restart`` names a run that is not committed.
        SinkFenced: a newer attempt has taken over.
        RejoinError: the sink's own trouble. What it has committed stays, and the next delivery goes on from there.
    """
    from rejoin.steps.deliver.catch_up import Attempt

    node, sink = find(topology, name)
    deliveries, started = Deliveries(topology.ledger), time.monotonic()
    head = topology.ledger.head()
    if head is None or node.name not in {n.name for n in topology.ledger.run(head).plan.nodes}:
        return Delivery(name, 0, 0, 0.0, None)
    if restart is None and (newest := _up_to_date(topology, node, sink, deliveries)) is not None:
        return Delivery(name, 0, 0, 0.0, newest)
    cursor = deliveries.begin(name)
    work = Attempt(topology, node, sink, deliveries, cursor, restart)
    try:
        with named_errors(f"delivery to sink {name!r}"):
            work.run()
    except BaseException as error:
        failed = told(error)
        deliveries.end(Delivery(name, cursor.attempt, work.records, time.monotonic() - started, work.upto, failed, work.detail))
        raise
    done = Delivery(name, cursor.attempt, work.records, time.monotonic() - started, work.upto, None, work.detail)
    deliveries.end(done)
    return done


def deliver_all(topology: TopologyLake, progress: Progress = SILENT) -> list[Delivery]:
    """Brings every sink up to date, some at a time; one that fails holds no other up.

    Raises:
        SinksBehind: after all were tried, if any failed.
        SetupError: before any was tried, if the client of one is not installed.
    """
    extras.require_for_delivery(topology.plan)
    steps, failed = steps_of(topology.plan), list[str]()

    def one(step: Step) -> Delivery | BaseException:
        progress.began(step.id)
        try:
            done = deliver(topology, step.target)
        except Exception as error:  # noqa: BLE001  whatever it is, the other sinks go on
            progress.ended(step.id, {}, 0.0)
            return error
        progress.ended(step.id, {"records": done.records}, done.seconds)
        return done

    made = []
    with ThreadPoolExecutor(PARALLEL_SINKS) as pool:
        for step, found in zip(steps, pool.map(one, steps), strict=True):
            if isinstance(found, Delivery):
                made.append(found)
            else:
                failed.append(f"{step.target}: {told(found)}")
    if failed:
        raise SinksBehind(
            f"{len(failed)} of {len(steps)} sinks of topology {topology.plan.topology!r} did not get everything; every run is committed\n  "
            + "\n  ".join(text.replace("\n", "\n  ") for text in failed),
            next_step="act upon the errors above; the next run delivers what is missing, and so does `rejoin publish`",
        )
    return made


def find(topology: TopologyLake, name: str) -> tuple[Node, Sink]:
    """The output and the sink that ``output.sink`` names.

    Raises:
        UnknownTable: there is none.
    """
    known = {sink_id(node.name, sink): (node, sink) for node in topology.plan.nodes for sink in node.sinks}
    if name not in known:
        raise UnknownTable(f"topology {topology.plan.topology!r} has no sink {name!r}", expected=", ".join(known) or "(none)")
    return known[name]


def oldest_needed(topology: TopologyLake) -> int | None:
    """The oldest committed run whose state or changes a sink still needs; None if every sink has everything.

    Whoever expires must keep the changes of this run and all later ones, and the outputs' snapshots of this run.
    """
    deliveries = Deliveries(topology.ledger)
    runs, cursors = deliveries.runs(), deliveries.cursors()
    needs = []
    for step in steps_of(topology.plan):
        cursor, (_, sink) = cursors.get(step.target), find(topology, step.target)
        if cursor is None or cursor.needs is None:
            needs += runs[:1] if sink.start is Start.CHANGES else runs[-1:]
        else:
            needs.append(cursor.needs)
    return min((n for n in needs if runs and n <= runs[-1]), default=None)


def _up_to_date(topology: TopologyLake, node: Node, sink: Sink, deliveries: Deliveries) -> int | None:
    """The newest run, if the ledger says that the sink has it and the sink's target is still the one that was delivered to.

    Raises:
        RejoinError: the target cannot be asked. That is noted, as for any other attempt.
    """
    from rejoin.sinks.connect import identity

    name, newest = sink_id(node.name, sink), deliveries.runs()[-1]
    cursor = deliveries.cursors().get(name)
    position = Position.from_json(cursor.position) if cursor is not None and cursor.position is not None else None
    if position is None or not position.idle or position.done < newest:
        return None
    started = time.monotonic()
    try:
        found = identity(node, sink, topology.config.sinks)
    except RejoinError as error:
        attempt = deliveries.begin(name).attempt
        deliveries.end(Delivery(name, attempt, 0, time.monotonic() - started, position.done, told(error)))
        raise
    return newest if found is not None and position.is_of(found) else None
