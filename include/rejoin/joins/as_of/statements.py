"""Statements of as-of joins."""

from collections.abc import Iterator, Sequence

from rejoin.joins import sides
from rejoin.plan.model.added_columns import DELETED
from rejoin.plan.model.match import AsOf
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import seen


def _match(edge: Edge) -> AsOf:
    assert isinstance(edge.match, AsOf)
    return edge.match


def wanted(sql: Dialect, node: Node, left_key: Sequence[str], by: Sequence[str]) -> str:
    """``lefts``, Rows of the stream -> the distinct keys ``by`` of the right rows that they name."""
    left = sides.lefts(sql, node.left, node.edges[0], left_key, sides.stored(sql, left_key, "lefts"))
    keys = numbered("fk", len(by))
    known = " AND ".join(f"{k} IS NOT NULL" for k in keys)
    return f"SELECT DISTINCT {sql.renamed(keys, by)} FROM ({left}) WHERE {known}"


def state(sql: Dialect, node: Node, left_key: Sequence[str], right_key: Sequence[str]) -> str:
    """``lefts`` and ``rights``, ``Rows`` of both tables -> ``pk_1``.., ``l``, ``r1`` of every record.

    Of several versions of a right row the last one counts that became valid no later than the record happened. The view of the right is
    looked through afterwards: a version that it does not show is no row, and lets no older one shine through.
    """
    edge = node.edges[0]
    match, pks = _match(edge), numbered("pk", len(left_key))
    left = sides.lefts(sql, node.left, edge, left_key, sides.stored(sql, left_key, "lefts"), time=match.left_time)
    met = sides.met(len(match.on), "a", "b")
    if match.right_time is None:
        right = sides.rights(sql, edge.right, match.on, right_key, sides.stored(sql, right_key, "rights"))
        return f"SELECT {sql.names(pks, 'a')}, a.l, b.r1 FROM ({left}) AS a LEFT JOIN ({right}) AS b ON {met}"
    right = f"SELECT {_on(sql, edge, right_key)}, {sql.micros(sql.name(right_key[-1]))} AS rt, _row AS t FROM rights"
    last = f"row_number() OVER (PARTITION BY {sql.names(pks, 'a')} ORDER BY b.rt DESC)"
    found = f"SELECT {sql.names(pks, 'a')}, a.l, b.t, {last} AS nth FROM ({left}) AS a LEFT JOIN ({right}) AS b ON {met} AND b.rt <= a.lt"
    shown = f"CASE WHEN NOT {sql.get('t', DELETED)} THEN {seen(sql, edge.right)} END"
    return f"SELECT {sql.names(pks)}, l, {shown} AS r1 FROM ({found}) WHERE nth = 1"


def _on(sql: Dialect, edge: Edge, right_key: Sequence[str]) -> str:
    return sql.renamed(right_key[: len(_match(edge).on)], numbered("on", len(_match(edge).on)))


def valid(sql: Dialect, edge: Edge, right_key: Sequence[str]) -> str:
    """``versions``, this run's changes of versions, and ``rights``, all versions of their rows -> ``on_1``.., ``since`` and ``until`` (null: no end),
    microseconds: when each was, or would have been, the version that is valid. The end is exclusive.
    """
    key, equal = numbered("on", len(_match(edge).on)), _on(sql, edge, right_key)
    at = sql.micros(sql.name(right_key[-1]))
    every = f"SELECT {equal}, {at} AS since, false AS changed FROM rights UNION ALL SELECT {equal}, {at}, true FROM versions"
    once = f"SELECT {sql.names(key)}, since, max(CASE WHEN changed THEN 1 ELSE 0 END) AS changed FROM ({every}) GROUP BY {sql.names(key)}, since"
    ended = f"SELECT *, lead(since) OVER (PARTITION BY {sql.names(key)} ORDER BY since) AS until FROM ({once})"
    return f"SELECT {sql.names(key)}, since, until FROM ({ended}) WHERE changed = 1"


def touched(sql: Dialect, node: Node, left_key: Sequence[str]) -> str:
    """``lefts``, Rows of the stream, and ``valid`` -> the keys of the records within."""
    match, pks = _match(node.edges[0]), numbered("pk", len(left_key))
    left = sides.lefts(sql, node.left, node.edges[0], left_key, sides.stored(sql, left_key, "lefts"), time=match.left_time)
    within = f"{sides.met(len(match.on), 'a', 'b')} AND a.lt >= b.since AND (b.until IS NULL OR a.lt < b.until)"
    found = f"SELECT DISTINCT {sql.names(pks, 'a')} FROM ({left}) AS a JOIN valid AS b ON {within}"
    return f"SELECT {sql.renamed(pks, left_key)} FROM ({found})"


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    step, edge = step_id(Verb.RESOLVE, node.name), node.edges[0]
    left, right, match = plan.key_of(node.left.table), plan.key_of(edge.right.table), _match(edge)
    if match.left_time is not None:
        yield step, "valid, from versions and rights", valid(sql, edge, right)
        yield step, "touched, from lefts and valid", touched(sql, node, left)
    yield step, "wanted, from lefts", wanted(sql, node, left, right[: len(match.on)])
    yield step, "state, from lefts and rights", state(sql, node, left, right)
