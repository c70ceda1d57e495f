"""Statements of what right and full foreign-key joins add to the star: right rows without a left row."""

from collections.abc import Iterator, Mapping, Sequence

from rejoin.joins import sides
from rejoin.joins.foreign_key import statements as star
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import foreign_key, key_parts, seen


def _keyed(sql: Dialect, node: Node, lefts: int) -> str:
    """``state`` of a star with one edge -> the same keyed by both rows, ``pk_1``.. of so many ``lefts`` columns and then the right key (null without a right row)."""
    right = node.edges[0].right
    pks = numbered("pk", lefts + len(right.key))
    named = [f"{sql.get('r1', k)} AS {p}" for k, p in zip(right.key, pks[lefts:], strict=True)]
    return f"SELECT {', '.join([*pks[:lefts], *named])}, l, r1 FROM state"


def results(sql: Dialect, node: Node, left_key: Sequence[str], right_key: Sequence[str]) -> str:
    """``state`` of a star with one edge, and ``rights``, Rows of the right table that no left row has -> ``state`` of all results, keyed by both rows (``pk_1``..).
    ``none``, Rows of the left table, of which there are none, lends the types of what right rows lack: a range of ``state`` that is used twice reads all of it.
    """
    edge, lefts = node.edges[0], len(left_key)
    rks, pks = numbered("rk", len(right_key)), numbered("pk", lefts + len(right_key))
    right = sides.rights(sql, edge.right, edge.right.key, right_key, sides.stored(sql, right_key, "rights"))
    shown = [*(f"n.{p}" for p in pks[:lefts]), *(f"r.{k} AS {p}" for k, p in zip(rks, pks[lefts:], strict=True))]
    nothing = f"SELECT {sql.names(pks[:lefts])}, {seen(sql, node.left)} AS l FROM (SELECT {sql.renamed(left_key, pks[:lefts])}, _row AS t FROM none)"
    alone = f"SELECT {', '.join(shown)}, n.l, r.r1 FROM ({right}) AS r LEFT JOIN ({nothing}) AS n ON false"
    return f"{_keyed(sql, node, lefts)} UNION ALL {alone}"


def met(sql: Dialect, node: Node) -> str:
    """``lefts``, Rows of the left table -> ``fk_1``.., the right keys that its rows have, each once."""
    (edge,) = node.edges
    rows = f"SELECT {seen(sql, node.left)} AS l FROM (SELECT _row AS t FROM lefts)"
    return f"SELECT DISTINCT {key_parts(sql, edge)} FROM (SELECT {foreign_key(sql, edge)} AS fk FROM ({rows})) WHERE fk IS NOT NULL"


def touched(sql: Dialect, given: Mapping[str, Sequence[str]], names: Sequence[str], lefts: Sequence[str]) -> str:
    """Inputs, each with its columns of a right key -> those keys under other names, each once.

    Of ``held``, keys of results, those that have a right row: all but those with a left row (a value in the columns ``lefts``) and no right one.
    """
    paired = " OR ".join([*(f"{sql.name(k)} IS NOT NULL" for k in names), f"({' AND '.join(f'{sql.name(k)} IS NULL' for k in lefts)})"])
    which = {"held": f" WHERE {paired}"}
    every = " UNION ALL ".join(f"SELECT {sql.renamed(key, names)} FROM {name}{which.get(name, '')}" for name, key in given.items())
    return f"SELECT DISTINCT * FROM ({every})"


def alone(sql: Dialect, left: Sequence[str], right: Sequence[str]) -> str:
    """``theirs``, keys of right rows (the columns ``right``) -> the keys of their results without left row. ``none``, which has no rows, lends the types of the columns ``left``."""
    nothing = f"SELECT {sql.names(left)} FROM none"
    return f"SELECT {', '.join([*(f'n.{sql.name(c)}' for c in left), *(f't.{sql.name(c)}' for c in right)])} FROM theirs AS t LEFT JOIN ({nothing}) AS n ON false"


def in_scope(sql: Dialect, key: Sequence[str], lefts: int) -> str:
    """``rows_`` with the columns ``key`` of results -> those of left rows in ``mine`` (their key columns), and those without left row of the right rows in
    ``theirs`` (likewise).
    """
    left, right = key[:lefts], key[lefts:]
    mine = f"EXISTS (SELECT 1 FROM mine AS m WHERE {sql.on(left, 'm', 'o', nulls=True)})"
    theirs = f"EXISTS (SELECT 1 FROM theirs AS t WHERE {sql.on(right, 't', 'o', nulls=True)})"
    alone = " AND ".join(f"o.{sql.name(k)} IS NULL" for k in left)
    return f"SELECT * FROM rows_ AS o WHERE ({mine} AND NOT ({alone})) OR ({alone} AND {theirs})"


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    yield from star.shown(sql, plan, node)
    step, left, right = step_id(Verb.RESOLVE, node.name), plan.key_of(node.left.table), plan.key_of(node.edges[0].right.table)
    yield (
        step,
        "rights, of rows_ that are not among keys, those of left rows",
        sides.among(sql, right, numbered("fk", len(right)), absent=True),
    )
    yield step, "state, by both keys, from state and rights", results(sql, node, left, right)
