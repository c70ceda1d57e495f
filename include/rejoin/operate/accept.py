"""A source table goes on whose source does not go on as it was read: somebody accepts what that loses, and a small run of its own keeps it."""

from time import monotonic

from rejoin.errors import LedgerConflict, UnknownTable
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.lake.ledger.runs import RunKind
from rejoin.plan.model.steps import step_id
from rejoin.sources import GoingOn, Pin, going_on
from rejoin.steps.ingest import snapshot_ends
from rejoin.steps.run.topology import Topology


def proposed(topology: Topology, name: str) -> GoingOn | None:
    """What there is to accept of a source table; None if no run would stop for what somebody can accept.

    Raises:
        UnknownTable: no such source table.
        SourceError: the source stops runs, and cannot go on.
    """
    if not topology.plan.is_table(name):
        known = ", ".join(table.name for table in topology.plan.tables)
        raise UnknownTable(f"topology {topology.plan.topology!r} has no source table {name!r}", expected=f"one of: {known}")
    last = topology.ledger.last_pin(name)
    return None if last is None else going_on(topology.plan.table(name), topology.access, Pin.from_dict(last))


def accept(topology: Topology, who: str, name: str, proposal: GoingOn) -> Run:
    """Keeps in the ledger that the table goes on so. The next run reads from there; a snapshot of which rows may be lost deletes nothing.

    Raises:
        RunBusy: a run is open and alive.
        LedgerConflict: another run has read the source since it was looked at.
    """
    return topology.upkeep(who, RunKind.ACCEPT, lambda run: _accept(topology, run, name, proposal))


def _accept(topology: Topology, run: Run, name: str, proposal: GoingOn) -> None:
    started, ledger, table = monotonic(), topology.ledger, topology.plan.table(name)
    last = ledger.last_pin(name)
    if last is None or Pin.from_dict(last).ordinal + 1 != proposal.pin.ordinal:
        raise LedgerConflict(f"the source of {name!r} was read while it was looked at; nothing was done", next_step="try again")
    ledger.pin(run.number, {name: proposal.pin.to_dict()})
    detail = {"code": proposal.code, "said": list(proposal.said), "lossy": proposal.lossy}
    torn = snapshot_ends.torn(table, ledger.generations(run.base).get(name)) if proposal.lossy else None
    record = StepRecord(step_id(RunKind.ACCEPT, name), {}, monotonic() - started, 0, detail, generations=torn)
    ledger.register(run.number, record, RunKind.ACCEPT, ())
