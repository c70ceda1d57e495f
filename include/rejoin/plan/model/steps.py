"""A plan as the steps of a run: one verb a stage, with what must end before. The CLI runs these steps, explain prints them, a DAG is made of them."""

from dataclasses import dataclass
from enum import StrEnum

from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.sinks import sink_id


class Verb(StrEnum):
    """The stages of a run, in their order. The verb is also the folder of its code, the job and the task id."""

    CUT = "cut"  # pins what every source will read
    INGEST = "ingest"  # a source table: one net change a key
    SUBSCRIBE = "subscribe"  # a node: left changes become rows of its subscription tables
    RESPOND = "respond"  # an edge: changed subscriptions and changed right rows become responses
    RESOLVE = "resolve"  # a node: responses and left changes become changes of the output
    VALIDATE = "validate"  # a node: its changes are checked, and bad rows held back
    PUBLISH = "publish"  # the compare-and-swap that makes the run visible
    DELIVER = "deliver"  # a sink: catches up with an output's changes, after the run is closed


ON_ROWS = (Verb.INGEST, Verb.SUBSCRIBE, Verb.RESPOND, Verb.RESOLVE, Verb.VALIDATE)
"""The verbs whose steps work on rows, and may need Spark; the others only read and write the ledger, tables' metadata and sinks."""


def step_id(verb: str, target: str) -> str:
    """What the ledger, the DAG and people call a step."""
    return f"{verb}.{target}" if target else str(verb)


def parts(step: str) -> tuple[str, str]:
    """The verb and the target of a step, or of what a run of upkeep calls one, by what it is called."""
    verb, _, target = step.partition(".")
    return verb, target


@dataclass(frozen=True)
class Step:
    """One unit of work of a run. ``target`` is a table, a node, ``node.edge`` or ``output.sink``; empty for cut and publish."""

    verb: Verb
    target: str
    after: tuple[str, ...]

    @property
    def id(self) -> str:
        return step_id(self.verb, self.target)


def steps(plan: Plan) -> tuple[Step, ...]:
    """All steps of a run in an order that respects ``after``. Deterministic."""
    made = [Step(Verb.CUT, "", ())]
    made += [Step(Verb.INGEST, table.name, (Verb.CUT,)) for table in plan.tables]
    for node in plan.nodes:
        made += _node_steps(plan, node)
    publish = Step(Verb.PUBLISH, "", tuple(s.id for s in made if s.verb in (Verb.INGEST, Verb.VALIDATE)))
    return (*made, publish, *deliveries(plan))


def deliveries(plan: Plan) -> tuple[Step, ...]:
    """The steps after the run: one a sink, none of which waits for another."""
    return tuple(Step(Verb.DELIVER, sink_id(node.name, sink), (Verb.PUBLISH,)) for node in plan.nodes for sink in node.sinks)


def _node_steps(plan: Plan, node: Node) -> list[Step]:
    left = _ready(plan, node.left.table)
    validate = Step(Verb.VALIDATE, node.name, (step_id(Verb.RESOLVE, node.name),))
    subscribe = Step(Verb.SUBSCRIBE, node.name, (left,))
    if node.grouping is not None:
        return [subscribe, Step(Verb.RESOLVE, node.name, (subscribe.id,)), validate]
    if not node.edges:
        return [Step(Verb.RESOLVE, node.name, (left,)), validate]
    if node.match is not None:
        return [Step(Verb.RESOLVE, node.name, tuple(dict.fromkeys((left, _ready(plan, node.edges[0].right.table))))), validate]
    responds = [
        Step(Verb.RESPOND, f"{node.name}.{edge.name}", tuple(dict.fromkeys((subscribe.id, _ready(plan, edge.right.table)))))
        for edge in node.edges
    ]
    return [subscribe, *responds, Step(Verb.RESOLVE, node.name, tuple(s.id for s in responds)), validate]


def _ready(plan: Plan, name: str) -> str:
    """The step after which this run's state of a table or node can be read."""
    return step_id(Verb.INGEST if plan.is_table(name) else Verb.VALIDATE, name)
