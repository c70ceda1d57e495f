"""Compaction: folds old versions into a base sorted by key, and drops what delete files hide. No reader sees a difference.

A compaction is a run of its own kind: it takes the same place as a run, writes branches, and becomes visible by the same commit.
"""

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from rejoin import crash
from rejoin.conduct import Topology
from rejoin.errors import code_of
from rejoin.lake import names
from rejoin.lake.ledger import Run, StepRecord
from rejoin.plan.model import Plan, SnapshotSource
from rejoin.stages.frames import numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rejoin.lake.reader import Reader

SMALL = 1
"""A table of at most so many data files, without delete files, is compact already."""


def compact(topology: Topology, spark: Callable[[], "SparkSession"], who: str) -> Run | None:
    """Compacts every table of the last committed run that needs it. None if none does.

    Raises:
        RunBusy: a run is open and alive.
    """
    topology.roll_forward()
    head = topology.ledger.head()
    if head is None:
        return None
    state = topology.ledger.states(head)
    plan = topology.ledger.run(head).plan
    todo = [t for t in state if t in _keys(plan) and _scattered(topology, t, state[t])]
    if not todo:
        return None
    run = topology.open_compaction(who)
    try:
        for table in todo:
            _rewrite(topology, spark(), run, table)
        topology.publish(run)
    except BaseException as error:
        topology.ledger.fail(run.number, f"{code_of(error)}: {str(error)[:2000]}")
        raise
    topology.drop_garbage()
    return topology.ledger.run(run.number)


def _scattered(topology: Topology, table: str, snapshot_id: int) -> bool:
    summary = topology.refs.summary(table, snapshot_id)
    return int(summary.get("total-data-files", 0)) > SMALL or int(summary.get("total-delete-files", 0)) > 0


def _rewrite(topology: Topology, spark: "SparkSession", run: Run, table: str) -> None:
    from rejoin.lake.reader import Reader
    from rejoin.lake.writer import Writer

    started, attempt = monotonic(), f"compact_{table}"[:40]
    states = topology.ledger.states(run.base)
    key = _keys(run.plan)[table]
    rows = _folded(run.plan, Reader(spark, run.plan, states, topology.refs), table, key)
    write = Writer(spark, topology.refs, states, run.number, attempt).replace(table, rows.sort(*key), key)
    crash.point(f"compact.{table}:written")
    added = int(topology.refs.summary(table, write.snapshot_id).get("added-records", 0))
    record = StepRecord(f"compact.{table}", {"rows": added}, monotonic() - started, None)
    topology.ledger.register(run.number, record, attempt, (write,))


def _folded(plan: Plan, reader: "Reader", table: str, key: list[str]) -> "DataFrame":
    from pyspark.sql import functions as F

    from rejoin.lake.reader import latest

    rows = reader.table(table)
    if plan.is_table(table):
        # A row that changed its key may still need what its old key held when it was deleted.
        newest = latest(rows, key).withColumn("_before", F.when(F.col("_op") == "D", F.col("_before")))
        # A feed may still deliver an event older than a delete; a snapshot source never goes back.
        return newest.where("_op <> 'D'") if isinstance(plan.table(table).source, SnapshotSource) else newest
    if table in {names.subscriptions(n, e) for n in plan.nodes for e in n.edges}:
        return latest(rows, key).where("_op = 'S'").withColumn("_instruction", F.lit(None).cast("string"))
    return rows


def _keys(plan: Plan) -> dict[str, list[str]]:
    """Table -> the columns by which its compacted rows are sorted; for versioned tables also their key."""
    made = {t.name: list(t.key) for t in plan.tables}
    for node in plan.nodes:
        made[node.name] = list(node.key)
        made[names.changes(node.name)] = ["_run", *node.key]
        for edge in node.edges:
            made[names.subscriptions(node, edge)] = [*numbered("fk", len(edge.foreign_key)), *numbered("pk", len(node.key))]
    return made
