"""The statement of every stage of a plan as it runs, and where: for people who read, or debug, what a run does."""

from collections.abc import Iterator
from dataclasses import dataclass

from rejoin.engines.columnar import ColumnarEngine
from rejoin.engines.engine import NeedsSpark
from rejoin.joins import shown
from rejoin.plan.fingerprint import fingerprint
from rejoin.plan.model import Node, Plan, Table
from rejoin.plan.sources import SnapshotSource
from rejoin.plan.steps import Verb, step_id
from rejoin.stages import ingest, resolve
from rejoin.stages.dialect import DUCKDB, SPARK, Dialect

HERE = "DuckDB, in this process"


@dataclass(frozen=True)
class Statement:
    """One statement. ``step``: its step; ``part``: what of it; ``where``: who runs it, and why; ``sql``: the text, inputs being named as tables."""

    step: str
    part: str
    where: str
    sql: str


def statements(plan: Plan) -> Iterator[Statement]:
    """Those that every run of the plan may need, in the order of its steps. What only rows held back and truncations need is left out."""
    for table in plan.tables:
        for part, text in _of_table(DUCKDB, table):
            yield Statement(step_id(Verb.INGEST, table.name), part, HERE, text)
    for node in plan.nodes:
        sql: Dialect = DUCKDB
        try:
            spoken, where = ColumnarEngine(plan).node(node), HERE
        except NeedsSpark as reason:
            spoken, sql, where = node, SPARK, f"Spark: {reason}"
        for step, part, text in _of_node(sql, plan, spoken):
            yield Statement(step, part, where, text)


def _of_table(sql: Dialect, table: Table) -> Iterator[tuple[str, str]]:
    if isinstance(table.source, SnapshotSource):
        yield "classified, from events, bad_keys and stored", ingest.snapshot(sql, table, stored=True, deletes=True)
        yield "made, from classified", ingest.versions(sql, table, keep_unchanged=False)
    else:
        yield "classified, from events and stored", ingest.feed(sql, table, stored=True, placed=True)
        yield "made, from classified", ingest.versions(sql, table, keep_unchanged=True)
    yield "versioned, from made", ingest.table_rows(sql, table, 0)
    yield "rows of the table, from versioned", ingest.appended(sql, table)


def _of_node(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    yield from shown(sql, plan, node)
    step, types = step_id(Verb.RESOLVE, node.name), {p.name: sql.type(p.type or "STRING") for p in node.columns}
    yield step, "made, from state", resolve.join(sql, node, fingerprint(plan, node))
    everything = node.match is not None or node.two_sided
    yield step, "changes, from made and old", resolve.difference(sql, node, types, stored=True, everything=everything)
