"""Retention: what runs older than a limit left behind is freed, and files that crashed attempts left.

An expiry is a run of its own kind: it takes the same place as a run, so nothing is written while files are deleted. It changes no table's
state; afterwards ``--as-of`` an older run is refused (``SNAPSHOT_EXPIRED``).
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic

from rejoin import crash
from rejoin.context.progress import SILENT, Progress, telling
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.steps.run.topology import Topology

KEEP = timedelta(days=7)
"""How long the state after a run can be asked for once a newer run was committed, if nobody says otherwise."""
ORPHANS = timedelta(days=3)
"""How old a file that nobody knows must be before it is deleted: a running job may still be about to commit it."""


def expire(topology: Topology, who: str, keep: timedelta = KEEP, progress: Progress = SILENT) -> Run | None:
    """Frees what only runs need that were the newest longer than ``keep`` ago; the newest committed run is always kept. None if nothing was run yet.

    Raises:
        RunBusy: a run is open and alive.
        RunSuperseded: another process has taken the place of this one meanwhile. What it may need is there.
    """
    topology.roll_forward()
    if topology.ledger.head() is None:
        return None
    return topology.upkeep(who, RunKind.EXPIRE, lambda run: _expire(topology, run, datetime.now(UTC) - keep, progress))


def _expire(topology: Topology, run: Run, limit: datetime, progress: Progress) -> None:
    from rejoin.lake.compact import expiry

    old, kept = _old(topology, run, limit)
    topology.drop_garbage()
    tables = topology.refs.tables()
    progress.planned({f"expire.{table}": 1 for table in tables}, "tables")
    expiry.free_exchange(topology.config, topology.plan.topology, datetime.now(UTC) - ORPHANS)
    for table in tables:
        started = monotonic()
        with telling(progress, f"expire.{table}") as counts:
            topology.refs.drop_tags(table, old)
            strays = datetime.now(UTC) - ORPHANS
            counts.update(expiry.free(topology.refs, table, kept.get(table, set()), strays, lambda: topology.ledger.renew(run.number)))
        crash.point(f"expire.{table}:freed")
        topology.ledger.register(run.number, StepRecord(f"expire.{table}", counts, monotonic() - started, 0), "expire", ())


def _old(topology: Topology, run: Run, limit: datetime) -> tuple[list[int], dict[str, set[int]]]:
    """The committed runs whose state nobody needs any more, and the snapshots of every table that are the state of the others."""
    from rejoin.steps.deliver.step import oldest_needed

    # Sinks as of the newest committed run, whose plan this one keeps: a later run that failed may have had others.
    needed = oldest_needed(Topology(run.plan, topology.config, topology.root))
    committed = [r for r in topology.ledger.runs() if r.state == RunState.COMMITTED]
    first = run.base if needed is None else needed  # what a sink still has to get stays, however old
    # Whoever began to read the newest run may still do: how long that one had been the newest does not matter.
    followed = {r.number: after.closed_at or 0.0 for r, after in pairwise(committed)}
    old = {number for number, until in followed.items() if number < (first or 0) and until < limit.timestamp()}
    kept: dict[str, set[int]] = {}
    for number in (r.number for r in committed if r.number not in old):
        for table, snapshot in topology.ledger.states(number).items():
            kept.setdefault(table, set()).add(snapshot)
    return sorted(old), kept
