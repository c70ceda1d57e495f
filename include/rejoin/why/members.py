"""The members of a group: how many there are, and the newest ones, which have changed it. Reads stored rows, evaluates no SQL of the user."""

from collections.abc import Sequence
from typing import Any

from rejoin.lake import table_names
from rejoin.plan.model.plan import Node
from rejoin.statements.own_columns import RUN, numbered
from rejoin.why.answer import Cause, Member, Members, Reason
from rejoin.why.reasons import shown
from rejoin.why.right_sides import Trace

SHOWN = 3
"""So many members are followed to their records."""


def members(trace: Trace, node: Node, key: Sequence[Any]) -> Members:
    """The members of the group with this key, the newest first: those that a run has added, changed or taken away last."""
    assert node.grouping is not None
    own, fks = numbered("pk", len(trace.plan.key_of(node.left.table))), numbered("fk", len(node.grouping.keys))
    found = trace.query.having(table_names.subscriptions(node, node.grouping), dict(zip(fks, key, strict=True)))
    if found is None:
        return Members(None, ())
    newest = {tuple(row[c] for c in own): row for row in found.sort_by(RUN).to_pylist()}
    latest = sorted(newest.items(), key=lambda item: -int(item[1][RUN]))[:SHOWN]
    rows = tuple(Member(trace.any(node.left.table, pk)[0], int(row[RUN]), left=row["_op"] == "D") for pk, row in latest)
    return Members(sum(row["_op"] == "S" for row in newest.values()), rows)


def reasons(node: Node, found: Members, *, there: bool, held: str | None, kept: bool) -> tuple[tuple[Reason, ...], bool]:
    """Why there is no group, or not the newest one: all of these hold if the second is True."""
    if kept:
        return (Reason(Cause.SKIPPED, node.name),), True
    if held is not None:
        return (Reason(Cause.HELD, node.name),), True
    if there:
        return (), True
    if found.count == 0:
        return (Reason(Cause.NO_MEMBER, node.left.table),), True
    if found.count is not None and node.where is not None:
        return (Reason(Cause.FILTER, node.name, shown(node.where, node)),), True
    return (Reason(Cause.UNTOLD, node.name),), False
