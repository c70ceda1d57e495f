"""Reading the newest committed run while others may commit newer ones, and expire the state that is being read."""

from collections.abc import Callable
from typing import TypeVar

from rejoin.errors import LedgerConflict, RunUnknown
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.records import Records

TRIES = 3
Read = TypeVar("Read")


def of_newest(ledger: Records, refs: Refs, read: Callable[[int], Read]) -> Read:
    """What ``read`` makes of the newest committed run; of the newest one by then, if an expiry took away what it was reading.

    Args:
        ledger: of a topology.
        refs: its tables.
        read: is given the number of the run. May be called several times.

    Raises:
        RunUnknown: nothing was committed yet.
        LedgerConflict: an expiry took away every run that was tried.
    """
    for _ in range(TRIES):
        head = ledger.head()
        if head is None:
            raise RunUnknown(f"topology {ledger.topology!r} has no committed run", next_step="run it first")
        try:
            return read(head)
        except Exception:
            if not _expired(ledger, refs, head):
                raise
    raise LedgerConflict(
        f"topology {ledger.topology!r}: {TRIES} times newer runs were committed and what was being read was expired",
        next_step="try again; `rejoin expire` with more --keep-days leaves the state of a run to those who read it",
    )


def _expired(ledger: Records, refs: Refs, run: int) -> bool:
    """Whether a run is no longer the newest, and some of its state is gone. Files go after the snapshots that need them."""
    if ledger.head() == run:
        return False
    tables = ((refs.table(name), snapshot) for name, snapshot in ledger.states(run).items())
    return any(table is None or table.snapshot_by_id(snapshot) is None for table, snapshot in tables)
