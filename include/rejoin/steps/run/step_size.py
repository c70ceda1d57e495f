"""How much a step works on, from what the ledger and the tables' metadata say: so that it can be placed before it begins."""

from typing import Any

from rejoin import sources
from rejoin.context.facts import Facts
from rejoin.engines.placement import WorkSize
from rejoin.plan.model.plan import Node, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.model.steps import Step, Verb
from rejoin.steps.run.step_input import no_stage
from rejoin.steps.validate.judging import asks_of_rows


def size_of(step: Step, facts: Facts, pin: dict[str, Any] | None) -> WorkSize:
    """The size of a step that has something to do. ``pin``: what the run reads of the step's source table."""
    match step.verb:
        case Verb.INGEST:
            return _of_ingest(facts.plan.table(step.target), facts, None if pin is None else sources.Pin.from_dict(pin))
        case Verb.SUBSCRIBE:
            return WorkSize(facts.left_rows(facts.plan.node(step.target)))
        case Verb.RESPOND:
            node, edge = facts.edge(step.target)
            return WorkSize(facts.sent(node) + facts.told(node, edge))
        case Verb.RESOLVE:
            return WorkSize(_of_resolve(facts.plan.node(step.target), facts))
        case Verb.VALIDATE:
            node = facts.plan.node(step.target)
            return WorkSize(facts.resolved(node).changes + facts.held(node), judged=asks_of_rows(node))
        case _:
            raise no_stage(step)


def _of_ingest(table: Table, facts: Facts, pin: sources.Pin | None) -> WorkSize:
    rows = facts.held(table) if facts.judged_again(table) else 0
    if pin is not None and isinstance(table.source, SnapshotSource) and not pin.partial:
        rows += facts.before.rows(table.name)  # it is compared with all of them
    return WorkSize(rows, 0 if pin is None else sources.unpacked(pin), judged=asks_of_rows(table))


def _of_resolve(node: Node, facts: Facts) -> int:
    """What is recomputed reads both sides."""
    if facts.recomputed(node) is None:
        return facts.affected(node)
    return sum(facts.now.rows(name) for name in set(node.reads))
