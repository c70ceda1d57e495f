"""Which results of two streams rest on records that were let go, by Spark: for comparisons, by another way than a run (ADR 0012)."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rejoin.engines.spark_engine import SparkEngine
from rejoin.lake.read.reader import Reader
from rejoin.plan.change.stream_retention import settled
from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Node, Plan, View

FOUND, TIME, SETTLED = "__found_{}", "__time_{}", "__settled"


def with_settled(engine: SparkEngine, plan: Plan, reader: Reader, node: Node, rows: DataFrame) -> DataFrame:
    """What the output of a node should be: the rows that its query gives, and in the place of settled ones those that it has."""
    if not isinstance(node.match, Window) or not settled(plan, node) or not reader.has(node.name):
        return rows
    columns = [p.name for p in node.columns]
    stored = engine.frame(reader.current(node.name)).select("_row.*").select(*columns)
    given, kept = (_marked(engine, plan, reader, node, some) for some in (rows.select(*columns), stored))
    return given.where(f"NOT {SETTLED}").select(*columns).union(kept.where(SETTLED).select(*columns))


def _marked(engine: SparkEngine, plan: Plan, reader: Reader, node: Node, rows: DataFrame) -> DataFrame:
    """The rows with ``SETTLED``: a record of theirs is not stored, or they have one whose partners may not be."""
    window, right = node.match, node.edges[0].right
    assert isinstance(window, Window)
    parts = len(plan.key_of(node.left.table))
    keys = (node.key[:parts], node.key[parts:])
    views: tuple[tuple[View, str, int], ...] = ((node.left, window.left_time, window.before), (right, window.right_time, window.after))
    conditions = list[Column]()
    for at, (view, time, reach) in enumerate(views):
        table_key, column = plan.key_of(view.table), view.stored(time)
        micros = F.unix_micros(F.col(f"_row.`{column}`").cast("timestamp"))
        named = [F.col(f"`{k}`").alias(f"__key_{at}_{i}") for i, k in enumerate(table_key)]
        records = engine.frame(reader.current(view.table)).select(*named, F.lit(1).alias(FOUND.format(at)), micros.alias(TIME.format(at)))
        same = [rows[f"`{k}`"] == records[f"__key_{at}_{i}"] for i, k in enumerate(keys[at])]
        rows = rows.join(records, reduce(Column.__and__, same), "left")
        mine, other = F.col(f"`{keys[at][0]}`"), F.col(f"`{keys[1 - at][0]}`")
        conditions.append(mine.isNotNull() & F.col(FOUND.format(at)).isNull())
        partners = plan.stored_from(views[1 - at][0].table)
        if partners is not None:
            conditions.append(other.isNull() & F.coalesce(F.col(TIME.format(at)) - reach < partners, F.lit(False)))
    return rows.withColumn(SETTLED, reduce(Column.__or__, conditions))
