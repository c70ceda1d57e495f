"""respond: the right side answers changed subscriptions and tells its subscribers of its own changes (KIP-213: SubscriptionJoin and ForeignTableJoin)."""

from rejoin.joins.foreign_key.subscribe import Instruction
from rejoin.plan.model.plan import Edge
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import HASH, numbered
from rejoin.statements.relations import seen


def wanted(sql: Dialect, edge: Edge, key: tuple[str, ...]) -> str:
    """``subscriptions`` of this run -> the distinct right keys (columns ``key``) that they ask for."""
    return f"SELECT DISTINCT {sql.renamed(numbered('fk', len(edge.foreign_key)), key)} FROM subscriptions WHERE _op = 'S'"


def answer_subscriptions(sql: Dialect, edge: Edge, key: tuple[str, ...], pks: int) -> str:
    """``subscriptions`` of this run and ``rights``, the Rows of the right table for at least the keys of ``wanted``, as of this run ->
    Responses, as each instruction says, with the ``fk_1``.. of their subscriptions.

    Args:
        sql: the dialect.
        edge: the edge.
        key: key columns of the right table.
        pks: how many key columns the left table has.
    """
    fks, pk, right = numbered("fk", len(edge.foreign_key)), sql.names(numbered("pk", pks)), sql.name("right")
    fk = sql.names(fks)
    return f"""
WITH answers AS (
    SELECT {fk}, {seen(sql, edge.right)} AS {right} FROM (SELECT {sql.renamed(key, fks)}, _row AS t FROM rights)
)
SELECT {fk}, {pk}, left_hash, {right} FROM (
    SELECT {sql.names(fks, "s")}, {pk}, s.{HASH} AS left_hash, s._instruction, a.{right}
    FROM subscriptions AS s LEFT JOIN answers AS a ON s._op = 'S' AND {sql.on(fks, "s", "a")}
)
WHERE NOT (
    _instruction = {text(Instruction.DELETE_KEY_NO_PROPAGATE)}
    OR (_instruction = {text(Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)} AND {right} IS NULL)
)"""


def moved(sql: Dialect, edge: Edge, key: tuple[str, ...]) -> str:
    """``changes`` of the right table -> ``fk_1``.. and ``right`` (the new right row through the view, null if gone) of each key that the
    edge's view shows before or after.
    """
    fks, right, row = numbered("fk", len(edge.foreign_key)), sql.name("right"), seen(sql, edge.right)
    fk = sql.names(fks)
    return f"""
SELECT {fk}, {right} FROM (
    SELECT {fk}, was, {row} AS {right} FROM (
        SELECT {fk}, {row} AS was, a AS t FROM (SELECT {sql.renamed(key, fks)}, _before AS t, _after AS a FROM changes)
    )
)
WHERE was IS NOT NULL OR {right} IS NOT NULL"""


def answer_right_changes(sql: Dialect, edge: Edge, pks: int, run: int) -> str:
    """``moved`` and ``subscribers``, the subscriptions to its keys as of this run -> Responses with ``fk_1``...

    Subscriptions of this very run are left out: they were answered with the same right rows, so a left and a right change of one
    run meet exactly once.
    """
    fks = numbered("fk", len(edge.foreign_key))
    return f"""
SELECT {sql.names([*fks, *numbered("pk", pks)], "s")}, s.{HASH} AS left_hash, m.{sql.name("right")}
FROM subscribers AS s JOIN moved AS m ON {sql.on(fks, "s", "m")}
WHERE s._run < {run}"""
