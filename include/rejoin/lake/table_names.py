"""Names of the lake's tables: one namespace a topology, user names as they are, internal names behind a double underscore."""

import re

from rejoin.lake.config import CATALOG
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node


def changes(node: str) -> str:
    """The append-only changes table of an output."""
    return f"{node}__changes"


def subscriptions(node: Node, to: Edge | Grouping) -> str:
    """The table of subscriptions to the right rows of an edge, or of members to their groups, keyed (foreign key, primary key)."""
    return f"{node.name}__subscriptions__{to.name}"


def totals(node: Node, grouping: Grouping) -> str:
    """The totals of large groups, keyed by the group's key. They have the types of what members have."""
    return f"{node.name}__totals__{grouping.name}"


def responses(node: Node, edge: Edge) -> str:
    """The responses of an edge: one run's rows on a branch, never on main."""
    return f"{node.name}__responses__{edge.name}"


def quarantine(table: str) -> str:
    """What is kept aside of a source table (refused records, rows held back) or of an output (rows held back)."""
    return f"{table}__quarantine"


def candidates(node: str) -> str:
    """What a node that can hold rows back would change: one run's rows on a branch, never on main."""
    return f"{node}__candidates"


def branch(run: int, attempt: str) -> str:
    """The branch of one attempt of one step: later attempts and other runs never touch it."""
    return f"run_{run}_{attempt}"


def is_branch_of(name: str, run: int) -> bool:
    """Whether a branch was made by an attempt of this run."""
    return name.startswith(f"run_{run}_")


def run_of(branch: str) -> int | None:
    """The run of which an attempt made a branch; None if none did."""
    found = re.match(r"run_([0-9]+)_", branch)
    return None if found is None else int(found[1])


def tag(run: int) -> str:
    """The tag of an output's state after a committed run."""
    return f"run_{run}"


EMPTY = "empty"
"""The tag of a table's first, empty snapshot."""


def full(topology: str, table: str) -> str:
    """A table's name in Spark SQL."""
    return f"{CATALOG}.{topology}.{table}"
