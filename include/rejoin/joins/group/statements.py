"""Statements of groups: members subscribe to their group with what is taken of them, and a group is computed from its members."""

from collections.abc import Iterable, Iterator, Sequence

from rejoin.joins.foreign_key import subscribe
from rejoin.joins.group import totals
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Node, Plan, View
from rejoin.plan.model.steps import Verb, step_id
from rejoin.plan.sql.aggregates import aggregated
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import HASH, numbered
from rejoin.statements.relations import foreign_key, key_parts, seen
from rejoin.statements.value_hash import canonical, hashed


def joined(sql: Dialect, left: View, grouping: Grouping, key: tuple[str, ...], run: int) -> str:
    """``changes`` of the left table -> what members send to the groups that they leave and that they have; see ``subscribe.sent``."""
    values = [f"CASE WHEN _op = 'S' THEN {value.sql} END AS {sql.name(value.name)}" for value in grouping.values]
    return subscribe.sent(sql, left, grouping, key, run, *values)


def members(sql: Dialect, node: Node, key: tuple[str, ...]) -> str:
    """``lefts``, Rows of the left table -> ``fk_1``.., ``pk_1``.. and ``v_1``.. of the members among them."""
    assert node.grouping is not None
    pks = numbered("pk", len(key))
    rows = f"SELECT {sql.names(pks)}, {seen(sql, node.left)} AS l FROM (SELECT {sql.renamed(key, pks)}, _row AS t FROM lefts)"
    values = [f"{value.sql} AS {sql.name(value.name)}" for value in node.grouping.values]
    return f"SELECT {', '.join([key_parts(sql, node.grouping), *pks, *values])} FROM (SELECT *, {foreign_key(sql, node.grouping)} AS fk FROM ({rows}) WHERE l IS NOT NULL)"


def touched(sql: Dialect, inputs: Sequence[tuple[str, Sequence[str]]], count: int) -> str:
    """Inputs, each with its columns of a group's key -> ``fk_1``.. of the groups, each once."""
    every = " UNION ALL ".join(f"SELECT {sql.renamed(columns, numbered('fk', count))} FROM {name}" for name, columns in inputs)
    return f"SELECT DISTINCT * FROM ({every})"


def groups(sql: Dialect, node: Node, members: int) -> str:
    """``members``, ``fk_1``.., ``pk_1``.. and ``v_1``.. of all members of some groups -> ``state``: ``pk_1``.., the key of the group, and ``l``, its row.

    Args:
        sql: the dialect.
        node: the node.
        members: how many columns a member's key has.
    """
    grouping = node.grouping
    assert grouping is not None
    fks = ", ".join(numbered("fk", len(grouping.keys)))
    return _state(sql, grouping, aggregated(sql, grouping, numbered("pk", members)), f"members GROUP BY {fks}")


def longest(sql: Dialect, grouping: Grouping) -> str:
    """``members``, likewise -> one row with how many elements the longest array of every column has that no LIMIT ends; null without members."""
    arrays = [(made.name, (made.collect and made.collect.where) or "*") for made in grouping.unlimited]
    counted = ", ".join(f"count({kept}) AS n_{at}" for at, (_, kept) in enumerate(arrays))
    most = ", ".join(f"max(n_{at}) AS {sql.name(name)}" for at, (name, _) in enumerate(arrays))
    return f"SELECT {most} FROM (SELECT {counted} FROM members GROUP BY {', '.join(numbered('fk', len(grouping.keys)))})"


def told(sql: Dialect, node: Node) -> str:
    """``totals``, Totals of some groups -> ``state``, likewise, of those that have members."""
    assert node.grouping is not None
    return _state(sql, node.grouping, totals.told(sql, node.grouping), "totals WHERE n > 0")


def _state(sql: Dialect, grouping: Grouping, aggregates: Iterable[tuple[str, str]], source: str) -> str:
    """``state`` of the name and the SQL text of every aggregate over a ``source``, the text after FROM."""
    made = [*zip((key.name for key in grouping.keys), numbered("fk", len(grouping.keys)), strict=True), *aggregates]
    shown = ", ".join(f"{text} AS c_{at}" for at, (_, text) in enumerate(made, start=1))
    types, columns = grouping.types, {name: f"c_{at}" for at, (name, _) in enumerate(made, start=1)}
    print_ = hashed(canonical(sql, [(column, types[name]) for name, column in columns.items()]))
    keys = ", ".join(f"c_{at} AS pk_{at}" for at in range(1, len(grouping.keys) + 1))
    return f"SELECT {keys}, {sql.struct([*columns.items(), (HASH, print_)])} AS l FROM (SELECT {shown} FROM {source})"


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    grouping, key = node.grouping, plan.key_of(node.left.table)
    assert grouping is not None
    yield step_id(Verb.SUBSCRIBE, node.name), "subscriptions of members to their groups", joined(sql, node.left, grouping, key, 0)
    step = step_id(Verb.RESOLVE, node.name)
    yield step, "touched, from sent", touched(sql, [("sent", numbered("fk", len(grouping.keys)))], len(grouping.keys))
    members = "members, all live subscriptions to the groups that are touched"
    if totals.without_inverse(grouping) is not None:
        yield step, f"state, from {members}", groups(sql, node, len(key))
        return
    yield step, f"totals, from {members}", totals.of_members(sql, grouping)
    yield step, "totals of large groups, from those known, and those of members that have come and gone", totals.followed(sql, grouping)
    yield step, "state, from totals", told(sql, node)
