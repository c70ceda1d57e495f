"""Compaction: folds old versions into a base sorted by key, drops what delete files hide, and lets go of records that no join needs any more. No
reader sees a difference but in streams with a retention, where old records are gone.

A compaction is a run of its own kind: it takes the same place as a run, writes branches, and becomes visible by the same commit.
What it rewrites, ``lake.compact.layout`` decides; it works on the driver, range by range, or by Spark where a table has to be sorted as a whole.
"""

from collections.abc import Callable, Sequence
from time import monotonic, time
from typing import TYPE_CHECKING

from rejoin import crash
from rejoin.context.progress import SILENT, Progress, telling
from rejoin.lake import table_names
from rejoin.lake.compact.folding import fold, todo, with_exact_bounds
from rejoin.lake.compact.stream_retention import letting_go
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.ledger.records import Run, StepRecord, Write
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.table_roles import StateTable, state_tables
from rejoin.plan.change.stream_retention import why_kept
from rejoin.plan.model.plan import Plan
from rejoin.steps.run.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.statements.dialect import Dialect


def compact(topology: Topology, spark: Callable[[], "SparkSession"], who: str, progress: Progress = SILENT) -> Run | None:
    """Compacts every table of the last committed run that needs it. None if none does.

    Raises:
        RunBusy: a run is open and alive.
    """
    topology.roll_forward()
    head = topology.ledger.head()
    if head is None:
        return None
    state, plan = topology.ledger.states(head), topology.ledger.run(head).plan

    now = int(time() * 1_000_000)

    def forgotten(last: Plan, run: int) -> Plan:
        return letting_go(last, topology.ledger.states(run), topology.refs, topology.ledger.kept(run), now)

    known, later = state_tables(plan), forgotten(plan, head)
    gone = {h.stream for h in later.horizons if h.stored != plan.stored_from(h.stream)}
    wanted = [t for t in state if t in gone or todo(topology.refs.require(t, state[t]), state[t], _key(known.get(t)))]
    if not wanted:
        return None

    def work(run: Run) -> None:
        progress.planned({f"compact.{table}": 1 for table in wanted}, "tables")
        for table in wanted:
            with telling(progress, f"compact.{table}") as counts:
                counts.update(_compact(topology, spark, run, table, progress))

    done = topology.upkeep(who, RunKind.COMPACT, work, forgotten)
    topology.drop_garbage()
    return done


def _compact(topology: Topology, spark: Callable[[], "SparkSession"], run: Run, table: str, progress: Progress) -> dict[str, int]:
    if (before := topology.ledger.steps(run.number).get(f"compact.{table}")) is not None:
        return before.counts
    started, attempt = monotonic(), f"compact_{table}"[:40]
    base, known = topology.ledger.states(run.base)[table], state_tables(run.plan).get(table)
    existing, key = topology.refs.require(table, base), _key(known)
    since = _since(run.plan, table)
    done = with_exact_bounds(existing, base) if known is None or key is None else fold(existing, base, key, known.versions, since)
    counts: dict[str, int] = {}
    if done is None:
        assert known is not None
        write = _rewrite(topology, spark(), run, known, attempt, progress)
        if since is not None:
            stored = (files_of(existing, base), files_of(topology.refs.require(table, write.snapshot_id), write.snapshot_id))
            counts = {"let_go": stored[0].rows - stored[1].rows}
    else:
        made = topology.refs.commit_rewrite(table, table_names.branch(run.number, attempt), base, done)
        write = Write(table, made)
        counts = {"folded": done.folded, "merged": done.merged, "repaired": int(not column_bounds.exact(existing, base))}
        counts |= {"let_go": done.let_go} if since is not None else {}
    crash.point(f"compact.{table}:written")
    counts |= topology.refs.added(table, write.snapshot_id)
    topology.ledger.register(
        run.number, StepRecord(f"compact.{table}", counts, monotonic() - started, None if done is None else 0), attempt, (write,)
    )
    return counts


def _since(plan: Plan, name: str) -> int | None:
    """From when on records of a stream stay; None: all that are stored do, as where something reads the stream now that needs old ones."""
    stream = next((t for t in plan.tables if t.name == name), None)
    return None if stream is None or why_kept(plan, stream) is not None else plan.stored_from(name)


def _rewrite(topology: Topology, spark: "SparkSession", run: Run, table: StateTable, attempt: str, progress: Progress) -> Write:
    """The whole table sorted by Spark."""
    from rejoin.engines.spark.engine import SparkEngine, SparkRelation
    from rejoin.lake.read.reader import Reader
    from rejoin.lake.spark.session import JobCounter
    from rejoin.lake.write.writer import Writer, in_order

    states, engine = topology.ledger.states(run.base), SparkEngine(spark)
    reader = Reader(engine, run.plan, states, topology.refs)
    statement = _folded(engine.sql, reader.columns(table.name), table)
    rows = engine.frame_of(statement, found=SparkRelation(reader.table(table.name)))
    if (since := _since(run.plan, table.name)) is not None:
        micros = engine.sql.time_micros(engine.sql.name(table.key[0]), zoned=bool(reader.schema(table.name).field(table.key[0]).type.tz))
        rows = rows.where(f"{micros} IS NULL OR {micros} >= {since}")
    with JobCounter(spark, f"{run.topology}-{run.number}-{attempt}") as counter:
        progress.tasks(f"compact.{table.name}", counter.tasks)
        writer = Writer(engine, topology.refs, states, run.number, attempt)
        return writer.replace(table.name, SparkRelation(rows.sort(*in_order(table.key))), table.key)


def _folded(sql: "Dialect", columns: Sequence[str], table: StateTable) -> str:
    """``found``, the rows of a table -> those that have to stay."""
    from rejoin.lake.read.version_rows import latest

    versions = table.versions
    if versions is None:
        return "SELECT * FROM found"
    shown = {c: sql.name(c) for c in columns}
    if kept := versions.kept_for_deletes:
        shown[kept] = f"CASE WHEN _op = 'D' THEN {kept} END"
    if versions.forgotten:
        shown[versions.forgotten] = sql.null("STRING")
    line = ", ".join(f"{value} AS {sql.name(c)}" for c, value in shown.items())
    return f"SELECT {line} FROM ({latest(sql, columns, table.key)}) WHERE {versions.alive}"


def _key(table: StateTable | None) -> list[str] | None:
    """By which columns its rows are sorted; None: they keep their order, as those of a table that the plan does not know."""
    return list(table.key) if table is not None and table.key else None
