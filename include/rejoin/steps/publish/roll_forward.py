"""What follows the end of a run: tables show what the ledger says of it. Every part can be repeated, and is finished by whoever opens the next run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rejoin import crash
from rejoin.context.topology_lake import TopologyLake
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import Run, Write
from rejoin.lake.ledger.runs import RunKind, RunState

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs


def finished(topology: TopologyLake, run: Run, opened: int | None) -> bool:
    """Shows what a committed run has written, or takes back what an abandoned one has changed. False if that has to wait: another run is open.

    Args:
        topology: whose run it is; its tables are loaded only if there is something to show or to take back.
        run: the closed run.
        opened: the run that the caller has just opened; None: none.
    """
    if run.state != RunState.COMMITTED:
        return _taken_back(topology.ledger, topology.refs, run, opened)
    if writes := topology.ledger.writes(run.number):
        _show(topology.ledger, topology.refs, run, writes)
    return True


def _show(ledger: Ledger, refs: "Refs", run: Run, writes: Mapping[str, Write]) -> None:
    from rejoin.lake.iceberg.schema_evolution import drop_columns

    def is_newest() -> bool:
        newest = ledger.newest()
        return newest is not None and newest.number == run.number

    outputs = {n.name: n for n in run.plan.nodes}
    for table, write in writes.items():
        shown = None if write.transient else write.snapshot_id
        refs.roll_forward(table, run.number, shown, tagged=table in outputs and run.kind == RunKind.RUN)
        if table in outputs:
            drop_columns(refs, table, {p.name for p in outputs[table].columns} | {"_run", "_hash"}, is_newest)
        crash.point(f"roll_forward:{table}")


def _taken_back(ledger: Ledger, refs: "Refs", run: Run, opened: int | None) -> bool:
    """Drops the branches of an abandoned run, and what it has made of columns. False if an open run may be about to write, so that it has to wait."""
    from rejoin.lake.iceberg.schema_evolution import take_back
    from rejoin.lake.table_roles import state_tables

    head = ledger.head()

    def alone() -> bool:
        current = ledger.open_run()
        idle = current is None or (current.number == opened and not ledger.steps(opened))
        return idle and ledger.head() == head

    newest, published = ledger.newest(), ledger.states(head)
    first = opened if opened is not None else run.number + 1 if newest is None else newest.number + 1
    written = published.keys() | state_tables(run.plan).keys()  # somebody may have put tables of their own beside them
    for table in [name for name in refs.tables() if name in written]:
        refs.roll_forward(table, run.number, None, tagged=False)
        take_back(refs, table, published.get(table), first, alone)
        crash.point(f"take_back:{table}")
    return alone()
