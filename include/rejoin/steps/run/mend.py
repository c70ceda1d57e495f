"""Mends what earlier versions of rejoin stored wrong, before a run writes more of it. Needs no Spark. Nothing to do is one look at metadata."""

from collections.abc import Callable
from time import monotonic

from rejoin.context.progress import SILENT, Progress, telling
from rejoin.context.topology_lake import TopologyLake
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Run, StepRecord, Write
from rejoin.lake.wall_clocks import Path, wall_clocks


def mend(topology: TopologyLake, as_run: Callable[[Callable[[Run], None]], Run], progress: Progress = SILENT) -> Run | None:
    """Rewrites the tables that hold a wall clock as an instant. None if there are none.

    Args:
        topology: whose tables these are.
        as_run: does some work as a run of its own kind.
        progress: is told of it.

    Raises:
        RunBusy: a run is open and alive.
    """
    head = topology.ledger.head()
    if head is None:
        return None
    walls = {name: paths for name, paths in wall_clocks(topology.ledger.run(head).plan).items() if paths}
    if not walls:
        return None
    from rejoin.lake.iceberg import wall_clock_columns as columns

    states, wrong = topology.ledger.states(head), dict[str, set[Path]]()
    for name in sorted(walls):
        table = topology.refs.table(name)
        if table is not None and columns.instants(columns.schema_of(table, states.get(name)), walls[name]):
            wrong[name] = walls[name]
    if not wrong:
        return None

    def work(run: Run) -> None:
        progress.planned({f"mend.{name}": 1 for name in wrong}, "tables")
        for name, paths in wrong.items():
            if name not in states:
                columns.retype_empty(topology.refs, name, paths)
            elif f"mend.{name}" not in topology.ledger.steps(run.number):
                with telling(progress, f"mend.{name}") as counts:
                    counts.update(_mend(topology, run, name, paths))

    return as_run(work)


def _mend(topology: TopologyLake, run: Run, name: str, paths: set[Path]) -> dict[str, int]:
    from rejoin.lake.iceberg import wall_clock_columns as columns

    started, attempt = monotonic(), f"mend_{name}"[:40]
    base = topology.ledger.states(run.base)[name]
    write = Write(name, columns.mend(topology.refs, name, table_names.branch(run.number, attempt), base, paths))
    counts = topology.refs.added(name, write.snapshot_id)
    topology.ledger.register(run.number, StepRecord(f"mend.{name}", counts, monotonic() - started, 0), attempt, (write,))
    return counts
