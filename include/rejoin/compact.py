"""Compaction: folds old versions into a base sorted by key, and drops what delete files hide. No reader sees a difference.

A compaction is a run of its own kind: it takes the same place as a run, writes branches, and becomes visible by the same commit.
What it rewrites, ``lake.layout`` decides; it works on the driver, range by range, or by Spark where a table has to be sorted as a whole.
"""

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from rejoin import crash
from rejoin.conduct import Topology
from rejoin.lake import metrics, names
from rejoin.lake.fold import Versions, fold, repair, todo
from rejoin.lake.records import Run, StepRecord, Write
from rejoin.plan.model import Plan, SnapshotSource
from rejoin.progress import SILENT, Progress, telling
from rejoin.stages.frames import numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rejoin.lake.reader import Reader


def compact(topology: Topology, spark: Callable[[], "SparkSession"], who: str, progress: Progress = SILENT) -> Run | None:
    """Compacts every table of the last committed run that needs it. None if none does.

    Raises:
        RunBusy: a run is open and alive.
    """
    topology.roll_forward()
    head = topology.ledger.head()
    if head is None:
        return None
    state = topology.ledger.states(head)
    keys = _keys(topology.ledger.run(head).plan)
    wanted = [t for t in state if todo(topology.refs.require(t, state[t]), state[t], keys.get(t))]
    if not wanted:
        return None

    def work(run: Run) -> None:
        progress.planned({f"compact.{table}": 1 for table in wanted}, "tables")
        for table in wanted:
            with telling(progress, f"compact.{table}") as counts:
                counts.update(_compact(topology, spark, run, table, progress))

    done = topology.upkeep(who, "compact", work)
    topology.drop_garbage()
    return done


def _compact(topology: Topology, spark: Callable[[], "SparkSession"], run: Run, table: str, progress: Progress) -> dict[str, int]:
    if (before := topology.ledger.steps(run.number).get(f"compact.{table}")) is not None:
        return before.counts
    started, attempt = monotonic(), f"compact_{table}"[:40]
    states, key = topology.ledger.states(run.base), _keys(run.plan).get(table)
    existing = topology.refs.require(table, states[table])
    done = repair(existing, states[table]) if key is None else fold(existing, states[table], key, _versions(run.plan, table))
    counts: dict[str, int] = {}
    if done is None:
        write = _rewrite(topology, spark(), run, table, attempt, progress)
    else:
        made = topology.refs.commit_rewrite(table, names.branch(run.number, attempt), states[table], done.kept, done.added, done.deletes)
        write = Write(table, made)
        counts = {"folded": done.folded, "merged": done.merged, "repaired": int(not metrics.exact(existing, states[table]))}
    crash.point(f"compact.{table}:written")
    counts |= topology.refs.added(table, write.snapshot_id)
    topology.ledger.register(
        run.number, StepRecord(f"compact.{table}", counts, monotonic() - started, None if done is None else 0), attempt, (write,)
    )
    return counts


def _rewrite(topology: Topology, spark: "SparkSession", run: Run, table: str, attempt: str, progress: Progress) -> Write:
    """The whole table sorted by Spark."""
    from rejoin.lake.reader import Reader
    from rejoin.lake.session import JobCounter
    from rejoin.lake.writer import Writer

    states, key = topology.ledger.states(run.base), _keys(run.plan)[table]
    rows = _folded(run.plan, Reader(spark, run.plan, states, topology.refs), table, key)
    with JobCounter(spark, f"{run.topology}-{run.number}-{attempt}") as counter:
        progress.tasks(f"compact.{table}", counter.tasks)
        return Writer(spark, topology.refs, states, run.number, attempt).replace(table, rows.sort(*key), key)


def _versions(plan: Plan, table: str) -> Versions | None:
    """How the rows of a versioned table fold; None: every row stays."""
    if plan.is_table(table):
        # A feed may still deliver an event older than a delete; a snapshot source never goes back.
        return Versions(alive="_op <> 'D'" if isinstance(plan.table(table).source, SnapshotSource) else "true", kept_for_deletes="_before")
    if table in {names.subscriptions(n, e) for n in plan.nodes for e in n.edges}:
        return Versions(alive="_op = 'S'", forgotten="_instruction")
    if table in {names.quarantine(n.name) for n in plan.nodes}:
        return Versions(alive="_op = 'Q'")
    return None


def _folded(plan: Plan, reader: "Reader", table: str, key: list[str]) -> "DataFrame":
    from pyspark.sql import functions as F

    from rejoin.lake.reader import latest

    rows, versions = reader.table(table), _versions(plan, table)
    if versions is None:
        return rows
    newest = latest(rows, key).where(versions.alive)
    if versions.kept_for_deletes:
        newest = newest.withColumn(versions.kept_for_deletes, F.when(F.col("_op") == "D", F.col(versions.kept_for_deletes)))
    if versions.forgotten:
        newest = newest.withColumn(versions.forgotten, F.lit(None).cast("string"))
    return newest


def _keys(plan: Plan) -> dict[str, list[str]]:
    """Table -> the columns by which its compacted rows are sorted; for versioned tables also their key."""
    made = {t.name: list(t.key) for t in plan.tables}
    for node in plan.nodes:
        made[node.name] = list(node.key)
        made[names.changes(node.name)] = ["_run", *node.key]
        made[names.quarantine(node.name)] = list(node.key)
        for edge in node.edges:
            made[names.subscriptions(node, edge)] = [*numbered("fk", len(edge.foreign_key)), *numbered("pk", len(node.key))]
    return made
