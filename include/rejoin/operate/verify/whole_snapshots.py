"""The rows of a source table as the snapshots within its feed say them: for comparisons, by another way than a run (ADR 0018)."""

from rejoin.engines.relation import Engine, Relation
from rejoin.joins.sides import among
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read.reader import Reader
from rejoin.lake.read.version_rows import latest
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.shapes.debezium.positions import OF_A_CHANGE
from rejoin.statements.dialect import text
from rejoin.statements.own_columns import BEHIND


def with_snapshots(engine: Engine, reader: Reader, table: Table, generations: Generations, rows: Relation) -> Relation:
    """``rows``, all that live, without those that the newest whole snapshot did not bring though it should have: their newest version is older than it, and it
    is a row of an earlier snapshot, or a change that came in an earlier run than the snapshot's end. What is in quarantine of a key may be what it brought.
    """
    if generations.floor in ("", generations.only):
        return rows
    stored = reader.every(table.name, [*table.key, "_run", "_op", "_version"])
    newest = engine.query(latest(engine.sql, stored.columns, table.key), found=stored)
    before = f"(_run < {generations.since} OR NOT {_of_a_change(table)})"
    older = engine.query(f"SELECT * FROM newest WHERE _op <> 'D' AND _version < {text(generations.floor)} AND {before}", newest=newest)
    for aside in (reader.held(table.name, None), reader.refused(table.name)):
        older = older if aside is None else _without(engine, older, aside, table)
    return _without(engine, rows, older, table)


def _of_a_change(table: Table) -> str:
    """SQL text: whether a version is that of a change, not of a row of a snapshot."""
    return f"_version LIKE {text(OF_A_CHANGE)}" if isinstance(table.source, DebeziumSource) else f"NOT _version LIKE {text(f'%{BEHIND}%')}"


def _without(engine: Engine, rows: Relation, gone: Relation, table: Table) -> Relation:
    return engine.query(among(engine.sql, table.key, absent=True), rows_=rows, keys=gone)
