"""A lake with one committed run of any topology, made without Spark."""

from collections.abc import Mapping

import pyarrow as pa

from rejoin import Lake, Topology, snapshot
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan


def publish(location: str, plan: Plan, tables: Mapping[str, pa.Table | int]) -> int:
    """One run that has written these rows (beside those that are there), or snapshots that are there already. Returns its number."""
    config = lake_config(location)
    ledger, refs = Ledger(config.ledger, plan.topology), Refs(config, plan.topology)
    refs.ensure_namespace()
    run = ledger.open("process:here:1:2.0", plan, {})
    states = ledger.states(run.base)
    writes = []
    for name, rows in tables.items():
        if not isinstance(rows, int):
            refs.create(name, rows.schema, {})
            base = states.get(name) or refs.empty(name)
            rows = refs.commit_files(name, f"run_{run.number}_a", base, data_files(refs.require(name, base), rows))  # noqa: PLW2901
        writes.append(Write(name, rows))
    ledger.register(run.number, StepRecord("cut", {"files": 0, "bytes": 0}, 0.1, 0), "a", writes)
    ledger.publish(run.number)
    return run.number


def answer(lake: Lake, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in lake.sql(query).to_arrow().to_pylist()]


def one_table(name: str, table: str, schema: str, key: object = "id") -> Plan:
    made = Topology(name)
    source = made.table(table, key=key, schema=schema, source=snapshot("landing"))  # type: ignore[arg-type]
    source.select(["*"]).named(f"{table}_out")
    return compile(made)
