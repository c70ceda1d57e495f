"""The statement of every stage of a plan as it runs, and where: for people who read, or debug, what a run does."""

from collections.abc import Iterator
from dataclasses import dataclass

from rejoin.engines.choice import EngineChoice
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import NeedsSpark
from rejoin.joins.registry import shown
from rejoin.limits import limits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.expectations import can_hold
from rejoin.plan.model.plan import Node, Plan, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import DUCKDB, SPARK, Dialect, picked
from rejoin.steps.ingest import statements as ingest
from rejoin.steps.resolve import statements as resolve

HERE = "DuckDB, in this process"
REFUSED = "; with engine 'local' the step ends with ENGINE_REFUSED"


@dataclass(frozen=True)
class Statement:
    """One statement. ``step``: its step; ``part``: what of it; ``where``: who runs it, and why; ``sql``: the text, inputs being named as tables."""

    step: str
    part: str
    where: str
    sql: str


def statements(plan: Plan, choice: EngineChoice = EngineChoice.AUTO) -> Iterator[Statement]:
    """Those that every run of the plan may need, in the order of its steps. What only rows held back and truncations need is left out.

    Args:
        plan: what is run.
        choice: the engine that is asked for.
    """
    usual: tuple[Dialect, str] = (SPARK, by_spark()) if choice is EngineChoice.SPARK else (DUCKDB, HERE)
    for table in plan.tables:
        for part, text in _of_table(usual[0], table):
            yield Statement(step_id(Verb.INGEST, table.name), part, usual[1], text)
    for node in plan.nodes:
        sql, where = usual
        try:
            portable = DuckdbEngine(plan).node(node)
        except NeedsSpark as reason:
            portable, sql, where = node, SPARK, f"Spark: {reason}{REFUSED if choice is EngineChoice.LOCAL else ''}"
        for step, part, text in _of_node(sql, plan, node if sql is SPARK else portable):
            yield Statement(step, part, where, text)


def by_spark() -> str:
    """Where a step runs for which Spark is asked: how many rows there are, and which executors, is known when it runs."""
    many = f"over more than {limits().task_rows:,} rows or {limits().task_bytes >> 10} KiB of input, if Spark has one executor"
    return f"Spark SQL, as asked for; {many}, one task of Spark that runs DuckDB, with the statements of engine 'local'"


def _of_table(sql: Dialect, table: Table) -> Iterator[tuple[str, str]]:
    if isinstance(table.source, SnapshotSource):
        yield "classified, from events, bad_keys and stored", ingest.snapshot(sql, table, stored=True, deletes=True)
        yield "made, from classified", ingest.versions(sql, table, keep_unchanged=False)
    else:
        yield "classified, from events and stored", ingest.feed(sql, table, stored=True, placed=True)
        yield "made, from classified", ingest.versions(sql, table, keep_unchanged=True)
    yield "versioned, from made", ingest.table_rows(sql, table, 0)
    yield "rows of the table, from versioned", picked(sql, ingest.appended(table), "versioned", ingest.APPENDED)


def _of_node(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    yield from shown(sql, plan, node)
    step, types = step_id(Verb.RESOLVE, node.name), {p.name: p.type or "STRING" for p in node.columns}
    yield step, "made, from state", resolve.join(sql, node, fingerprint(plan, node))
    if node.star:
        yield (
            step,
            "old, where DuckDB makes it, from made (of what was before) and the hashes that are stored",
            resolve.proven(sql, node, held=can_hold(node.expectations)),
        )
    yield step, "changes, from made and old", resolve.difference(sql, node, types, stored=True)
