"""The rows of a source table as the snapshots within its feed say them, by Spark: for comparisons, by another way than a run (ADR 0018)."""

from pyspark.sql import DataFrame

from rejoin.engines.relation import Relation
from rejoin.engines.spark_engine import SparkEngine, by_key
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read.reader import Reader, latest
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.shapes.debezium.positions import OF_A_CHANGE
from rejoin.statements.dialect import text
from rejoin.statements.own_columns import BEHIND


def with_snapshots(engine: SparkEngine, reader: Reader, table: Table, generations: Generations, rows: DataFrame) -> DataFrame:
    """``rows``, all that live, without those that the newest whole snapshot did not bring though it should have: their newest version is older than it, and it
    is a row of an earlier snapshot, or a change that came in an earlier run than the snapshot's end. What is in quarantine of a key may be what it brought.
    """
    if generations.floor in ("", generations.only):
        return rows
    stored = reader.every(table.name, [*table.key, "_run", "_op", "_version"])
    newest = engine.query(latest(engine.sql, stored.columns, table.key), found=stored)
    before = f"(_run < {generations.since} OR NOT {_of_a_change(table)})"
    older = engine.frame_of(f"SELECT * FROM newest WHERE _op <> 'D' AND _version < {text(generations.floor)} AND {before}", newest=newest)
    for aside in (reader.held(table.name, None), reader.refused(table.name)):
        older = _without(engine, older, aside, table)
    return by_key(rows, older.select(*table.key), table.key, "left_anti", nulls=False)


def _of_a_change(table: Table) -> str:
    """SQL text: whether a version is that of a change, not of a row of a snapshot."""
    return f"_version LIKE {text(OF_A_CHANGE)}" if isinstance(table.source, DebeziumSource) else f"NOT _version LIKE {text(f'%{BEHIND}%')}"


def _without(engine: SparkEngine, rows: DataFrame, aside: Relation | None, table: Table) -> DataFrame:
    return rows if aside is None else by_key(rows, engine.frame(aside).select(*table.key), table.key, "left_anti", nulls=False)
