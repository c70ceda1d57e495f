"""subscribe: left changes become rows of an edge's subscription table (KIP-213: SubscriptionSend and SubscriptionReceive)."""

from enum import StrEnum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rejoin.plan.model import Edge, JoinKind, View
from rejoin.stages.columns import HASH, numbered
from rejoin.stages.frames import renamed, viewed


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


def subscribe(left: View, edge: Edge, changes: DataFrame, key: tuple[str, ...], run: int) -> DataFrame:
    """Changes of the left table -> Subscriptions of one edge, at most one row a (fk, pk).

    A foreign key with a null in it subscribes to nothing. A row that the left view filters out counts as absent.

    Args:
        left: the node's left view.
        edge: the edge.
        changes: ``Changes`` of the left table in this run (whose used columns changed).
        key: key columns of the left table.
        run: the run's number, stored with each row.
    """
    pks, fks = numbered("pk", len(key)), numbered("fk", len(edge.foreign_key))
    frame = renamed(changes, key, pks, "_before", "_after")
    frame = _with_foreign_key(viewed(frame, "_before", left, "l"), edge, "was")
    frame = _with_foreign_key(viewed(frame, "_after", left, "l"), edge, "now")
    frame = frame.withColumn("alive", F.expr("l IS NOT NULL"))
    off = f"CASE WHEN was IS NOT NULL AND NOT was <=> now THEN named_struct('fk', was, 'op', 'D', 'instruction', {_off(edge)}) END"
    on = f"CASE WHEN now IS NOT NULL THEN named_struct('fk', now, 'op', 'S', 'instruction', {_on(edge)}) END"
    sent = frame.withColumn("sent", F.expr(f"explode(array_compact(array({off}, {on})))"))
    return sent.select(
        *(F.col(f"sent.fk.{c}").alias(c) for c in fks),
        *pks,
        F.lit(run).cast("bigint").alias("_run"),
        F.col("sent.op").alias("_op"),
        F.col(f"_after.{HASH}").alias(HASH),
        F.col("sent.instruction").alias("_instruction"),
    )


def foreign_key(edge: Edge) -> str:
    """SQL text of the struct ``fk_1``.. over ``l``; null if any part is null."""
    names = numbered("fk", len(edge.foreign_key))
    fields = ", ".join(f"'{n}', {text}" for n, text in zip(names, edge.foreign_key, strict=True))
    present = " AND ".join(f"({text}) IS NOT NULL" for text in edge.foreign_key)
    return f"CASE WHEN l IS NOT NULL AND {present} THEN named_struct({fields}) END"


def _with_foreign_key(frame: DataFrame, edge: Edge, into: str) -> DataFrame:
    return frame.withColumn(into, F.expr(foreign_key(edge)))


def _off(edge: Edge) -> str:
    answered_elsewhere = "now IS NOT NULL" if edge.kind is JoinKind.INNER else "alive"
    return f"CASE WHEN {answered_elsewhere} THEN '{Instruction.DELETE_KEY_NO_PROPAGATE}' ELSE '{Instruction.DELETE_KEY_AND_PROPAGATE}' END"


def _on(edge: Edge) -> str:
    # A new foreign key of an inner join may have to retract the result with the old one: it wants an answer in any case.
    if edge.kind is JoinKind.LEFT:
        return f"'{Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE}'"
    return (
        f"CASE WHEN was IS NOT NULL AND NOT was <=> now THEN '{Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE}' "
        f"ELSE '{Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE}' END"
    )
