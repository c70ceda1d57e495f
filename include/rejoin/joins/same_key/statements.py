"""Statements of joins by the same key."""

from collections.abc import Iterator, Sequence

from rejoin.joins import sides
from rejoin.plan.model.match import JoinKind, SameKey
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered


def state(sql: Dialect, node: Node, left_key: Sequence[str], right_key: Sequence[str]) -> str:
    """``lefts`` and ``rights``, ``Rows`` of both tables for the same keys -> ``pk_1``.., ``l``, ``r1`` of every key that is on a side whose rows the join keeps.

    A key with a null in it is equal to none, so such a row has no partner.
    """
    edge = node.edges[0]
    assert isinstance(edge.match, SameKey)
    count = len(left_key)
    pks, rks = numbered("pk", count), numbered("rk", count)
    left = sides.lefts(sql, node.left, edge, left_key, sides.stored(sql, left_key, "lefts"))
    right = sides.rights(sql, edge.right, edge.right.key, right_key, sides.stored(sql, right_key, "rights"))
    shown = ", ".join(f"coalesce(a.{p}, b.{r}) AS {p}" for p, r in zip(pks, rks, strict=True))
    on = " AND ".join(f"a.{p} = b.{r}" for p, r in zip(pks, rks, strict=True))
    kept = "FULL" if edge.kind is JoinKind.FULL else "RIGHT" if edge.kind.keeps_right else "LEFT"
    return f"SELECT {shown}, a.l, b.r1 FROM ({left}) AS a {kept} JOIN ({right}) AS b ON {on}"


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    step, left, right = step_id(Verb.RESOLVE, node.name), plan.key_of(node.left.table), plan.key_of(node.edges[0].right.table)
    yield step, "state, from lefts and rights", state(sql, node, left, right)
