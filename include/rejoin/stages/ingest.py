"""ingest: events of a cut and the stored versions become new versions of a source table, at most one a key (the source KTable).

Two entries, for the two kinds of source: ``feed`` (change events with positions) and ``snapshot`` (full snapshots, deletes by absence).
Both return the frame that ``table_rows`` turns into rows to append, and every input record in it has exactly one ``Fate``: that is the
conservation count I4.
"""

from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from rejoin.plan.model import Table
from rejoin.stages.columns import HASH
from rejoin.stages.frames import equal, packed, quoted
from rejoin.stages.hashing import canonical, murmur3


class Fate(StrEnum):
    """What became of one input record. Every record read has exactly one."""

    APPLIED = "applied"  # changed a used column of a row, or made or deleted the row: downstream hears of it
    NOOP = "noop"  # newest of its key, but nothing that any join uses changed (stored where it moves the version or other columns)
    SUPERSEDED = "superseded"  # a newer record of the same key is in the same cut
    DUPLICATE = "duplicate"  # same key and position as a stored version, or as another record of the cut
    STALE = "stale"  # older than the stored version of its key
    QUARANTINED = "quarantined"  # refused, kept aside with reason and coordinates


UNRESOLVED = "TOAST_UNRESOLVED"
"""Quarantine code of an event that does not carry a column whose earlier value is not known either."""


def values(table: Table) -> list[str]:
    """The declared columns that are not key columns."""
    return [c.name for c in table.columns if c.name not in table.key]


def truncation(table: Table, events: DataFrame, stored: DataFrame | None, position: str) -> DataFrame:
    """The events plus one delete at ``position`` for every key that lives or appears: what a truncate event means.

    The deletes are marked by a null ``_arrival``: they are nobody's input record and are not counted.
    """
    keys = events.select(*table.key)
    if stored is not None:
        keys = keys.union(stored.where("_row IS NOT NULL").select(*table.key))
    keys = keys.distinct()
    made = keys.select(
        *table.key, F.lit("delete").alias("_kind"), F.lit(position).alias("_position"), F.array().cast("array<string>").alias("_missing")
    )
    return events.unionByName(made, allowMissingColumns=True)


def feed(table: Table, events: DataFrame, stored: DataFrame | None, *, placed: bool) -> DataFrame:
    """Upserts and deletes with their positions, and the stored ``Versions`` of their keys -> ``classified``.

    ``classified``: the event's columns and ``_fate``; for the newest fresh event of each key also ``_version`` and ``_row`` (what is
    stored). The newest position of a key wins, whatever the order of arrival. ``placed``: every event has a position of its own.
    """
    known = _with_stored(table, events, stored)
    ordered = known if placed else known.withColumn("_position", _placed(table))
    fate = (
        F.when(F.col("_position") < F.col("_version"), str(Fate.STALE))
        .when(F.col("_position") == F.col("_version"), str(Fate.DUPLICATE))
        .otherwise("fresh")
    )
    judged = ordered.withColumn("_fate", fate)
    newest = Window.partitionBy(*_key(table), "_fate").orderBy(F.col("_position").desc(), F.col("_arrival").desc_nulls_last())
    same = F.lag("_position").over(newest) == F.col("_position")
    among = F.when(F.row_number().over(newest) == 1, str(Fate.APPLIED)).when(same, str(Fate.DUPLICATE)).otherwise(str(Fate.SUPERSEDED))
    return judged.withColumn("_fate", F.when(F.col("_fate") == "fresh", among).otherwise(F.col("_fate")))


def _with_stored(table: Table, events: DataFrame, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        columns = ", ".join(f"{quoted(c.name)}: {c.type}" for c in table.columns)
        empty = F.lit(None).cast(f"struct<{columns}, {HASH}: binary>")
        return events.withColumns({"_version": F.lit(None).cast("string"), "_row": empty})
    return events.join(stored.drop("_before"), on=list(table.key), how="left")


def _key(table: Table) -> list[Column]:
    return [F.col(quoted(k)) for k in table.key]


def _placed(table: Table) -> Column:
    """A tombstone has no position of its own: it comes right after the event of its key that arrived before it; if only later ones came
    with it, it is older than those; alone, it deletes the stored version (and is a duplicate if that is a delete already).
    """
    arrival = Window.partitionBy(*_key(table)).orderBy("_arrival")
    arrived = F.when(F.col("_arrival").isNotNull(), F.col("_position"))  # rows held back have arrived before all others
    earlier = F.last(arrived, ignorenulls=True).over(arrival.rowsBetween(Window.unboundedPreceding, -1))
    later = F.first(arrived, ignorenulls=True).over(arrival.rowsBetween(1, Window.unboundedFollowing))
    alone = F.when(F.col("_row").isNull(), F.col("_version")).otherwise(F.concat("_version", F.lit("~")))
    return F.coalesce("_position", F.concat(earlier, F.lit("~")), F.when(later.isNotNull(), ""), alone, F.lit("~"))


def unsettled(table: Table, classified: DataFrame, stored: DataFrame | None) -> DataFrame:
    """The classified events with every value filled that they did not carry (unchanged TOAST), or marked quarantined.

    The value is that of the newest earlier version of the same row since its last delete: an event of the cut, else the stored version.
    A row that changed its primary key continues the row with the old key (one such step a cut), which may have been deleted by an
    earlier cut: a remembered delete keeps the version before.
    """
    filled = _filled(table, classified)
    filled = _filled(table, _adopted(table, filled, stored))
    lost = (F.col("_fate") == str(Fate.APPLIED)) & (F.size("_missing") > 0)
    return filled.withColumns(
        {
            "_fate": F.when(lost, str(Fate.QUARANTINED)).otherwise(F.col("_fate")),
            "_code": F.when(lost, UNRESOLVED).otherwise(F.col("_code")),
            "_reason": F.when(lost, F.concat(F.lit("no known value for unchanged column "), F.array_join("_missing", ", "))).otherwise(
                F.col("_reason")
            ),
        }
    )


def _filled(table: Table, classified: DataFrame) -> DataFrame:
    fresh = F.col("_fate").isin(str(Fate.APPLIED), str(Fate.SUPERSEDED))
    ordered = Window.partitionBy(*_key(table), fresh).orderBy("_position", F.col("_arrival").asc_nulls_first())
    frame = classified.withColumn("_life", F.sum(F.when(F.col("_kind") == "delete", 1).otherwise(0)).over(ordered))
    life = Window.partitionBy(*_key(table), fresh, "_life").orderBy("_position", "_arrival").rowsBetween(Window.unboundedPreceding, 0)
    carried, still = {}, []
    for name in values(table):
        lacks = F.array_contains("_missing", name)
        seen = F.last(F.when(~lacks & (F.col("_kind") == "upsert"), F.struct(F.col(quoted(name)).alias("v"))), ignorenulls=True).over(life)
        kept = F.when((F.col("_life") == 0) & F.col("_row").isNotNull(), F.struct(F.col(f"_row.{quoted(name)}").alias("v")))
        known = F.coalesce(seen, kept)
        carried[f"_known_{name}"] = known
        still.append(F.when(lacks & F.col(f"_known_{name}").isNull(), F.lit(name)))
    frame = frame.withColumns(carried)
    result = {n: F.when(F.array_contains("_missing", n), F.col(f"_known_{n}.v")).otherwise(F.col(quoted(n))) for n in values(table)}
    missing = F.array_compact(F.array(*still)) if still else F.array().cast("array<string>")
    return frame.withColumn("_still", missing).withColumns(result).withColumn("_missing", F.col("_still")).drop("_still", "_life", *carried)


def _adopted(table: Table, filled: DataFrame, stored: DataFrame | None) -> DataFrame:
    """Fills what a PK change's new row lacks from the newest earlier event of its old key in the cut, else from that key's stored row."""
    names = values(table)
    needy = filled.where("_old_key IS NOT NULL AND size(_missing) > 0").select("_arrival", "_old_key", F.col("_position").alias("_until"))
    row = F.struct(*(F.col(quoted(n)) for n in names))
    given = filled.where("_kind = 'upsert' AND size(_missing) = 0").select(
        F.struct(*_key(table)).alias("_old_key"), F.col("_position").alias("_at"), row.alias("_gift")
    )
    if stored is not None:
        alive = F.col("_row").isNotNull()
        last = {n: F.when(alive, F.col(f"_row.{quoted(n)}")).otherwise(F.col(f"_before.{quoted(n)}")) for n in names}
        kept = F.struct(*(value.alias(n) for n, value in last.items()))
        known = stored.where("_row IS NOT NULL OR _before IS NOT NULL").withColumn("_gift", kept)
        given = given.unionByName(known.select(F.struct(*_key(table)).alias("_old_key"), F.col("_version").alias("_at"), "_gift"))
    # The delete of the old key and the new row have one position where events carry no order within their transaction.
    offers = needy.join(given, on="_old_key").where("_at <= _until")
    best = offers.groupBy("_arrival").agg(F.max_by("_gift", "_at").alias("_gift"))
    met = filled.join(best, on="_arrival", how="left")
    has = F.col("_gift").isNotNull()
    result = {n: F.when(has & F.array_contains("_missing", n), F.col(f"_gift.{quoted(n)}")).otherwise(F.col(quoted(n))) for n in names}
    nothing = F.array().cast("array<string>")
    return met.withColumns(result).withColumn("_missing", F.when(has, nothing).otherwise(F.col("_missing"))).drop("_gift")


def snapshot(table: Table, rows: DataFrame, bad_keys: DataFrame, stored: DataFrame | None, *, deletes: bool) -> DataFrame:
    """A full snapshot and the stored ``Versions`` of all keys -> ``classified``.

    Rows that are absent become deletes (with a null ``_arrival``: nobody's input record), except the keys of ``bad_keys``, and none at
    all if ``deletes`` is False. Equal rows of one key are duplicates; different rows of one key are all quarantined.

    Args:
        table: the table.
        rows: the snapshot's readable rows (events of kind upsert).
        bad_keys: keys of quarantined rows whose key was readable: they keep their stored version.
        stored: ``Versions`` of the whole table, None if it is new.
        deletes: False if the snapshot had a row whose key was not readable.
    """
    every = Window.partitionBy(*_key(table))
    marked = rows.withColumn("_bytes", _bytes(table, values(table), ""))
    unlike = F.min("_bytes").over(every) != F.max("_bytes").over(every)
    first = F.row_number().over(every.orderBy("_arrival")) == 1
    fate = F.when(unlike, str(Fate.QUARANTINED)).when(first, str(Fate.APPLIED)).otherwise(str(Fate.DUPLICATE))
    judged = marked.withColumn("_fate", fate).withColumns(
        {
            "_code": F.when(unlike, "DUPLICATE_KEY").otherwise(F.col("_code")),
            "_reason": F.when(unlike, "two different rows of the snapshot have this key").otherwise(F.col("_reason")),
        }
    )
    if stored is None or not deletes:
        return _with_stored(table, judged.drop("_bytes"), stored)
    met = judged.drop("_bytes").join(stored.drop("_before"), on=list(table.key), how="full")
    kept = bad_keys.select(*table.key, F.lit(True).alias("_kept")).distinct()
    gone = F.col("_fate").isNull()
    full = met.join(kept, on=list(table.key), how="left").where(~gone | (F.col("_row").isNotNull() & F.col("_kept").isNull()))
    ordinal = rows.select(F.max("_position").alias("_newest"))
    return (
        full.crossJoin(F.broadcast(ordinal))
        .withColumns(
            {
                "_kind": F.when(gone, "delete").otherwise(F.col("_kind")),
                "_position": F.coalesce("_position", "_newest"),
                "_fate": F.when(gone, str(Fate.APPLIED)).otherwise(F.col("_fate")),
            }
        )
        .drop("_kept", "_newest")
    )


def versions(table: Table, classified: DataFrame, *, keep_unchanged: bool) -> DataFrame:
    """Classified records -> the same with their final ``_fate``, and for those to be stored: ``_op``, ``_new`` (null for a delete),
    ``_before``, ``_newhash``.

    ``_op`` is I, U, D, or N: stored, but no used column changed. ``keep_unchanged``: store a newest version that changes nothing at all,
    because later records may be older than it (feeds; snapshots never go back).
    """
    names = [c.name for c in table.columns]
    after = F.when(F.col("_kind") == "upsert", packed((n, quoted(n)) for n in names))
    newest = F.col("_fate") == str(Fate.APPLIED)
    used_after, used_before = _bytes(table, list(table.used), ""), _bytes(table, list(table.used), "_row.")
    alive = F.col("_row").isNotNull()
    same_used = alive & used_after.eqNullSafe(used_before)
    op = F.when(~newest, F.lit(None)).when(F.col("_kind") == "delete", "D").when(~alive, "I").when(same_used, "N").otherwise("U")
    unchanged = equal((quoted(n), f"_row.{quoted(n)}") for n in values(table)) & alive & (F.col("_kind") == "upsert")
    frame = classified.withColumns({"_op": op, "_before": F.when(newest, F.col("_row")), "_new": F.when(newest, after)})
    quiet = (F.col("_op") == "N") | ((F.col("_op") == "D") & ~alive)
    frame = frame.withColumn("_fate", F.when(quiet, str(Fate.NOOP)).otherwise(F.col("_fate")))
    if not keep_unchanged:
        frame = frame.withColumn("_op", F.when(~unchanged, F.col("_op")))
    # A version that changes no used column keeps the stored hash: subscriptions and outputs hold it.
    carried = F.when(F.col("_op") == "N", F.col(f"_row.{HASH}"))
    made = murmur3(F.when(F.col("_op").isin("I", "U"), used_after))
    return frame.withColumn("_newhash", F.coalesce(carried, made))


def table_rows(table: Table, classified: DataFrame, run: int) -> DataFrame:
    """The result of ``versions`` -> the rows to append to the source table."""
    stored = classified.where("_op IS NOT NULL")
    before = [(n, f"_before.{quoted(n)}") for n in (*values(table), HASH)]
    return stored.select(
        *_key(table),
        F.lit(run).cast("bigint").alias("_run"),
        "_op",
        F.col("_position").alias("_version"),
        F.col("_newhash").alias(HASH),
        *(f"_new.{quoted(n)}" for n in values(table)),
        F.when(F.col("_before").isNotNull(), packed(before)).alias("_before"),
    )


def _bytes(table: Table, names: list[str], prefix: str) -> Column:
    types = {c.name: c.type or "" for c in table.columns}
    return canonical((prefix + quoted(n), types[n]) for n in names)
