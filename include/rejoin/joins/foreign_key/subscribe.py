"""subscribe: left changes become rows of an edge's subscription table (KIP-213: SubscriptionSend and SubscriptionReceive)."""

from enum import StrEnum

from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, View
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import HASH, numbered
from rejoin.statements.relations import foreign_key, seen


class Instruction(StrEnum):
    """What the right side has to answer to a subscription. Names and meaning are those of KIP-213."""

    DELETE_KEY_NO_PROPAGATE = "DELETE_KEY_NO_PROPAGATE"
    """Unsubscribe and say nothing: the subscription to the new foreign key answers."""
    DELETE_KEY_AND_PROPAGATE = "DELETE_KEY_AND_PROPAGATE"
    """Unsubscribe and answer null: nothing else will answer for this primary key."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    """Subscribe; answer the right row, or null if there is none."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"
    """Subscribe; answer only if there is a right row."""


def subscribe(sql: Dialect, left: View, edge: Edge, key: tuple[str, ...], run: int) -> str:
    """``changes`` -> Subscriptions of one edge, at most one row a (fk, pk).

    ``changes`` are ``Changes`` of the left table in this run (whose used columns changed). A foreign key with a null in it subscribes to
    nothing. A row that the left view filters out counts as absent.

    Args:
        sql: the dialect.
        left: the node's left view.
        edge: the edge.
        key: key columns of the left table.
        run: the run's number, stored with each row.
    """
    told = f"CASE WHEN _op = 'D' THEN {_off(edge)} ELSE {_on(edge, _MOVED)} END AS _instruction"
    return sent(sql, left, edge, key, run, told)


_MOVED = "was IS NOT NULL AND was IS DISTINCT FROM now"
"""The condition that a left row leaves the key that it had."""


def sent(sql: Dialect, left: View, to: Edge | Grouping, key: tuple[str, ...], run: int, *also: str) -> str:
    """``changes`` -> what left rows send to what they are subscribed to: ``D`` to a key that they leave, ``S`` to the one that they have.

    Args:
        sql: the dialect.
        left: the node's left view.
        to: what they are subscribed to.
        key: key columns of the left table.
        run: the run's number, stored with each row.
        also: SQL texts of other columns over ``l``, the left row after the change, ``was`` and ``now``, the structs of both keys, ``alive`` and ``_op``.
    """
    pks, fks = numbered("pk", len(key)), numbered("fk", len(to.foreign_key))
    pk, fk, row = sql.names(pks), foreign_key(sql, to), seen(sql, left)
    chosen = ", ".join(f"CASE WHEN _op = 'D' THEN {sql.get('was', c)} ELSE {sql.get('now', c)} END AS {c}" for c in fks)
    return f"""
WITH before AS (
    SELECT {pk}, {fk} AS was, t FROM (
        SELECT {pk}, {row} AS l, a AS t FROM (SELECT {sql.renamed(key, pks)}, _before AS t, _after AS a FROM changes)
    )
),
sides AS (
    SELECT {pk}, was, {fk} AS now, l, l IS NOT NULL AS alive, {HASH} FROM (
        SELECT {pk}, was, {row} AS l, {sql.get("t", HASH)} AS {HASH} FROM before
    )
),
sent AS (SELECT *, {sql.each(sql.array(["'D'", "'S'"]))} AS _op FROM sides)
SELECT {", ".join([chosen, pk, f"{sql.cast(str(run), 'BIGINT')} AS _run", "_op", HASH, *also])}
FROM sent
WHERE (_op = 'D' AND {_MOVED}) OR (_op = 'S' AND now IS NOT NULL)"""


def _off(edge: Edge) -> str:
    answered_elsewhere = "alive" if edge.kind.keeps_left else "now IS NOT NULL"
    silent, loud = text(Instruction.DELETE_KEY_NO_PROPAGATE), text(Instruction.DELETE_KEY_AND_PROPAGATE)
    return f"CASE WHEN {answered_elsewhere} THEN {silent} ELSE {loud} END"


def _on(edge: Edge, moved: str) -> str:
    # A new foreign key of an inner join may have to retract the result with the old one: it wants an answer in any case.
    always = text(Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)
    if edge.kind.keeps_left:
        return always
    return f"CASE WHEN {moved} THEN {always} ELSE {text(Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)} END"
