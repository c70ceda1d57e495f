"""The state of a plan: which tables there are, what each holds, by which columns it is sorted, and how its versions fold. From the plan alone."""

from dataclasses import dataclass
from enum import StrEnum

from rejoin.lake import table_names
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node, Plan, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.statements.own_columns import numbered


class Role(StrEnum):
    """What a table holds."""

    SOURCE = "source"  # the versions of a source table's rows
    REFUSED = "refused"  # records and rows of a source table that are kept aside
    SUBSCRIPTIONS = "subscriptions"  # of an edge or of groups: the versions of who needs which key, or is in which group
    TOTALS = "totals"  # of large groups: the versions of what their aggregates are told from
    RESPONSES = "responses"  # of an edge: one run's, never shown
    CANDIDATES = "candidates"  # of a node: what one run would change, never shown
    OUTPUT = "output"  # of a node: its rows
    CHANGES = "changes"  # of a node: what every run changed
    HELD = "held"  # of a node: the versions of which rows are held back


@dataclass(frozen=True)
class Versions:
    """How the rows of a versioned table fold: the newest row of a key counts.

    Args:
        alive: SQL condition of the newest rows that have to stay once no older row of their key is left.
        kept_for_deletes: a column that only deletes need.
        forgotten: a column that is not needed any more.
    """

    alive: str
    kept_for_deletes: str | None = None
    forgotten: str | None = None


@dataclass(frozen=True)
class StateTable:
    """One table.

    Args:
        name: its name in the lake.
        role: what it holds.
        of: the table or node to which it belongs.
        edge: the edge, or the grouping, where it belongs to one.
        key: the columns by which its compacted rows are sorted; of a table with versions, also what they are versions of. Empty: in their order.
        versions: how its rows fold; None: every row stays.
    """

    name: str
    role: Role
    of: Table | Node
    edge: Edge | Grouping | None = None
    key: tuple[str, ...] = ()
    versions: Versions | None = None


def state_tables(plan: Plan) -> dict[str, StateTable]:
    """Every table that the plan's runs write, by name: what belongs together side by side, in the order in which a run writes it."""
    made = [made for table in plan.tables for made in _of_source(table)]
    made += [made for node in plan.nodes for made in _of_node(plan, node)]
    return {table.name: table for table in made}


def _of_source(table: Table) -> list[StateTable]:
    # A feed may still deliver an event older than a delete; a snapshot source never goes back.
    alive = "_op <> 'D'" if isinstance(table.source, SnapshotSource) else "true"
    versions = Versions(alive=alive, kept_for_deletes="_before")
    return [
        StateTable(table.name, Role.SOURCE, table, key=table.order, versions=versions),
        StateTable(table_names.quarantine(table.name), Role.REFUSED, table),
    ]


def _of_node(plan: Plan, node: Node) -> list[StateTable]:
    made = []
    for to in node.subscribes_to:
        key = (*numbered("fk", len(to.foreign_key)), *numbered("pk", len(plan.key_of(node.left.table))))
        sent = Versions(alive="_op = 'S'", forgotten=None if isinstance(to, Grouping) else "_instruction")
        made.append(StateTable(table_names.subscriptions(node, to), Role.SUBSCRIPTIONS, node, to, key, sent))
        if isinstance(to, Grouping):
            made.append(StateTable(table_names.totals(node, to), Role.TOTALS, node, to, key[: len(to.keys)], sent))
        else:
            made.append(StateTable(table_names.responses(node, to), Role.RESPONSES, node, to))
    held = Versions(alive="_op = 'Q'")
    return [
        *made,
        StateTable(table_names.candidates(node.name), Role.CANDIDATES, node),
        StateTable(node.name, Role.OUTPUT, node, key=node.key),
        StateTable(table_names.changes(node.name), Role.CHANGES, node, key=("_run", *node.key)),
        StateTable(table_names.quarantine(node.name), Role.HELD, node, key=node.key, versions=held),
    ]
