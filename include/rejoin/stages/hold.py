"""Rows that are held back (ADR 0010): the candidates of a node are split, versions of a source table are quarantined, and come again.

``Candidates``: key columns; ``_op`` I, U, D, or N for a key that is held back and whose new row equals the published one; ``_before``, the
published row; ``_after``, the new row; ``_held``: the key is held back before this run; ``_why``: the new row cannot be computed (``_op`` is N, ``_after`` null), and why.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rejoin.plan.model import Column as TableColumn
from rejoin.plan.model import Node, Table
from rejoin.sources.events import HELD, REPLAYED
from rejoin.stages.columns import HELD_CODE, NOT_COMPUTABLE, REPLAYED_CODE, SOURCE_FILE
from rejoin.stages.frames import packed, quoted
from rejoin.stages.ingest import Fate


def uncomputable(difference: DataFrame, aside: DataFrame | None, key: Sequence[str]) -> DataFrame:
    """The frame of ``resolve.difference`` with ``_why``, by the keys in ``aside``; None: every row could be computed."""
    if aside is None:
        return difference.withColumn("_why", F.lit(None).cast("string"))
    met = difference.join(aside, on=list(key), how="left")
    return met.withColumn("_op", F.when(F.col("_why").isNotNull(), "N").otherwise(F.col("_op")))


def candidates(difference: DataFrame, held: DataFrame | None, key: Sequence[str], *, everything: bool) -> DataFrame:
    """``Changes`` with ``_op`` N where nothing changes -> the same with ``_held``; filtered by ``is_candidate`` they are ``Candidates``.

    Args:
        difference: the frame of ``resolve.difference``.
        held: the keys that are held back, of those in ``difference`` at least; None if there are none.
        key: key columns.
        everything: ``difference`` has all keys there are, so a key held back that it lacks is gone.
    """
    if held is None:
        return difference.withColumn("_held", F.lit(False))
    marks = held.select(*key, F.lit(True).alias("_held"))
    met = difference.join(marks, on=list(key), how="full" if everything else "left")
    return met.withColumns({"_held": F.coalesce("_held", F.lit(False)), "_op": F.coalesce("_op", F.lit("N"))})


IS_CANDIDATE = "_op <> 'N' OR _held OR _why IS NOT NULL"


def judged(candidates: DataFrame, bad: DataFrame | None, key: Sequence[str]) -> DataFrame:
    """``Candidates`` and the keys whose new row is to be held back (with ``_reason``) -> the same with ``_reason``, null for what may be published."""
    if bad is None:
        return candidates.withColumn("_reason", F.col("_why"))
    return candidates.join(F.broadcast(bad), on=list(key), how="left").withColumn("_reason", F.coalesce("_why", "_reason"))


def published(judged: DataFrame, key: Sequence[str], run: int) -> DataFrame:
    """What becomes visible: rows of the changes table."""
    rows = judged.where("_op <> 'N' AND _reason IS NULL")
    return rows.select(F.lit(run).cast("bigint").alias("_run"), "_op", *key, "_before", "_after")


def set_aside(judged: DataFrame, node: Node, run: int) -> DataFrame:
    """Rows of the quarantine table: Q for a key that is held back now, R for one that no longer is."""
    rows = judged.where("_reason IS NOT NULL OR _held")
    bad = F.col("_reason").isNotNull()
    raw = F.to_json(packed((p.name, f"_after.{quoted(p.name)}") for p in node.columns), {"ignoreNullFields": "false"})
    return rows.select(
        *node.key,
        F.lit(run).cast("bigint").alias("_run"),
        F.when(bad, "Q").otherwise("R").alias("_op"),
        F.when(F.col("_why").isNotNull(), NOT_COMPUTABLE).otherwise(HELD_CODE).alias("_code"),
        "_reason",
        F.when(bad, raw).alias("_raw"),
    )


# --- source tables ----------------------------------------------------------------------------------------------------


def held_events(table: Table, held: DataFrame) -> DataFrame:
    """Rows that are held back -> events again, at their own positions. Their ``_arrival`` is -1: they are no records of this cut."""
    kept = set(_fields(held, "_row"))
    values_ = [
        (F.col(f"_row.{quoted(c.name)}") if c.name in kept else F.lit(None)).cast(c.type or "string").alias(c.name) for c in _others(table)
    ]
    return held.select(
        F.lit("upsert").alias("_kind"),
        *table.key,
        *values_,
        F.col("_version").alias("_position"),
        F.lit(HELD).cast("bigint").alias("_arrival"),
        F.array().cast("array<string>").alias("_missing"),
        F.array().cast("array<string>").alias("_absent"),
        F.lit(None)
        .cast(f"struct<{', '.join(f'{quoted(c.name)}: {c.type}' for k in table.key for c in table.columns if c.name == k)}>")
        .alias("_old_key"),
        F.col(SOURCE_FILE).alias("_file"),
        "_line",
        F.lit(1).cast("bigint").alias("_lines"),
        F.lit(None).cast("string").alias("_code"),
        F.lit(None).cast("string").alias("_reason"),
        "_raw",
    )


def no_events(table: Table, held: DataFrame) -> DataFrame:
    """No events at all."""
    return held_events(table, held).where("false")


def new_rows(table: Table, made: DataFrame) -> DataFrame:
    """The result of ``versions`` -> ``_row``: each new row that would become the current version of its key and is another one than that is now."""
    row = packed((c.name, f"_row.{quoted(c.name)}") for c in table.columns)
    changed = made.where(F.col("_op").isin("I", "U", "N") & (F.col("_row").isNull() | ~F.col("_new").eqNullSafe(row)))
    return changed.select(packed((c.name, f"_new.{quoted(c.name)}") for c in table.columns).alias("_row"))


def held_back(made: DataFrame, bad: DataFrame, key: Sequence[str]) -> DataFrame:
    """The result of ``versions`` with the versions of some keys (``bad``, with ``_reason``) quarantined instead of stored."""
    met = made.join(F.broadcast(bad.withColumnRenamed("_reason", "_why")), on=list(key), how="left")
    holds = F.col("_why").isNotNull() & F.col("_op").isNotNull()
    return met.withColumns(
        {
            "_fate": F.when(holds, str(Fate.QUARANTINED)).otherwise(F.col("_fate")),
            "_code": F.when(holds, HELD_CODE).otherwise(F.col("_code")),
            "_reason": F.when(holds, F.col("_why")).otherwise(F.col("_reason")),
            "_op": F.when(~holds, F.col("_op")),
        }
    ).drop("_why")


def records_aside(table: Table, refused: DataFrame, judged: DataFrame, held: DataFrame | None, made: DataFrame, run: int) -> DataFrame:
    """Rows of the quarantine table: refused records, rows held back (``_op`` Q), and R for keys whose row no longer is.

    Args:
        table: the table.
        refused: events that could not be decoded.
        judged: those records of the cut that have a fate; the quarantined ones with their ``_raw``.
        held: what was held back of the keys of the cut.
        made: ``judged``, the rows of ``held`` that were judged again, and refused records that were replayed.
        run: the run.
    """
    types = {c.name: c.type for c in _others(table)}
    row = f"struct<{', '.join(f'{quoted(n)}: {t}' for n, t in types.items())}>" if types else "struct<_: string>"
    is_held = F.col("_code") == HELD_CODE
    file = F.col("_file").alias(SOURCE_FILE)
    own: list[str | Column] = [
        *(F.col(quoted(k)) for k in table.key),
        F.lit(run).cast("bigint").alias("_run"),
        F.lit("Q").alias("_op"),
        "_code",
        "_reason",
        file,
        "_line",
    ]
    bad = judged.where(F.col("_fate") == str(Fate.QUARANTINED)).select(
        *own,
        "_raw",
        F.when(is_held, F.col("_position")).alias("_version"),
        F.when(is_held, packed((n, f"_new.{quoted(n)}") for n in types) if types else None).cast(row).alias("_row"),
    )
    nothing: tuple[Column, ...] = (F.lit(None).cast("string").alias("_version"), F.lit(None).cast(row).alias("_row"))
    applied = (F.col("_arrival") <= REPLAYED) & (F.col("_fate") != str(Fate.QUARANTINED))
    marked = [*(F.col(quoted(k)) for k in table.key), F.lit(run).cast("bigint").alias("_run"), F.lit("R").alias("_op")]
    again = made.where(applied).select(*marked, F.lit(REPLAYED_CODE).alias("_code"), "_reason", file, "_line", "_raw", *nothing)
    kept = refused.select(*own, "_raw", *nothing).unionByName(bad).unionByName(again)
    if held is None:
        return kept
    still = made.where((F.col("_fate") == str(Fate.QUARANTINED)) & is_held).select(*table.key)
    released = held.join(still, on=list(table.key), how="left_anti")
    return kept.unionByName(released.select(*marked, "_code", "_reason", SOURCE_FILE, "_line", "_raw", *nothing))


def _others(table: Table) -> list[TableColumn]:
    return [c for c in table.columns if c.name not in table.key]


def _fields(frame: DataFrame, column: str) -> list[str]:
    kind = frame.schema[column].dataType
    return kind.names if isinstance(kind, StructType) else []
