"""respond: the right side answers changed subscriptions and tells its subscribers of its own changes (KIP-213: SubscriptionJoin and ForeignTableJoin)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rejoin.plan.model import Edge
from rejoin.stages.columns import HASH, numbered
from rejoin.stages.frames import renamed, viewed
from rejoin.stages.subscribe import Instruction


def wanted(edge: Edge, subscriptions: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Subscriptions of this run -> the distinct right keys (columns ``key``) that they ask for."""
    asked = subscriptions.where("_op = 'S'")
    return renamed(asked, numbered("fk", len(edge.foreign_key)), key).distinct()


def answer_subscriptions(edge: Edge, subscriptions: DataFrame, rights: DataFrame, key: tuple[str, ...], pks: int) -> DataFrame:
    """Subscriptions of this run and the right Rows they ask for, as of this run -> Responses, as each instruction says.

    Args:
        edge: the edge.
        subscriptions: this run's ``Subscriptions``.
        rights: ``Rows`` of the right table for at least the keys of ``wanted``.
        key: key columns of the right table.
        pks: how many key columns the left table has.
    """
    fks = numbered("fk", len(edge.foreign_key))
    seen = viewed(renamed(rights, key, [f"right_{c}" for c in fks], "_row"), "_row", edge.right, "right").drop("_row")
    matched = subscriptions.alias("s").join(
        seen.alias("r"), on=[F.col(f"s.{c}") == F.col(f"r.right_{c}") for c in fks] + [F.col("s._op") == "S"], how="left"
    )
    silent = (
        f"_instruction = '{Instruction.DELETE_KEY_NO_PROPAGATE}' OR "
        f"(_instruction = '{Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE}' AND right IS NULL)"
    )
    return matched.where(f"NOT ({silent})").select(*numbered("pk", pks), F.col(HASH).alias("left_hash"), "right")


def moved(edge: Edge, changes: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Changes of the right table -> ``fk_1``.. and ``right`` (the new right row through the view, null if gone) of each key that
    the edge's view shows before or after.
    """
    frame = renamed(changes, key, numbered("fk", len(edge.foreign_key)), "_before", "_after")
    frame = viewed(viewed(frame, "_before", edge.right, "was"), "_after", edge.right, "right")
    return frame.where("was IS NOT NULL OR right IS NOT NULL").drop("was", "_before", "_after")


def answer_right_changes(edge: Edge, changed: DataFrame, subscribers: DataFrame, pks: int, run: int) -> DataFrame:
    """The frame of ``moved`` and its subscribers as of this run -> Responses.

    Subscriptions of this very run are left out: they were answered with the same right rows, so a left and a right change of one
    run meet exactly once.
    """
    fks = numbered("fk", len(edge.foreign_key))
    older = subscribers.where(F.col("_run") < run)
    return older.join(changed, on=fks, how="inner").select(*numbered("pk", pks), F.col(HASH).alias("left_hash"), "right")
