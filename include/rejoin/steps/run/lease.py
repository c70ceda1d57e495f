"""The hold of a process on its run: a lease that is renewed while it works, and given back if it fails."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rejoin.errors import LedgerConflict, RunSuperseded
from rejoin.failures.engine_errors import told
from rejoin.lake.ledger.ledger import LEASE_SECONDS, Ledger
from rejoin.lake.ledger.records import Run, superseded
from rejoin.lake.ledger.runs import RunState


@contextmanager
def working(ledger: Ledger, run: Run) -> Iterator[None]:
    """A run in the hands of this process: alive while it works, and without a lease, its error written down, if it fails.

    Raises:
        RunSuperseded: something failed, and others have closed the run.
    """
    try:
        with alive(ledger, run):
            yield
    except BaseException as error:
        _if_closed(ledger, run, error)
        with suppress(Exception):  # the first error is the one to tell
            ledger.fail(run.number, told(error))
        raise


@contextmanager
def alive(ledger: Ledger, run: Run) -> Iterator[None]:
    """Renews the lease in the background."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(LEASE_SECONDS / 4):
            try:
                ledger.renew(run.number)
            except RunSuperseded:
                return
            except Exception:  # noqa: BLE001  a lost beat is made up for by the next one
                continue

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def trying(ledger: Ledger, run: Run, step: str) -> Iterator[None]:
    """A try of a step: counted, and its error kept if it fails.

    Raises:
        RunSuperseded: it failed, and others have closed the run.
    """
    ledger.began(run.number, step)
    try:
        yield
    except Exception as error:
        _if_closed(ledger, run, error)
        with suppress(Exception):  # the first error is the one to tell
            ledger.broke(run.number, step, told(error))
        raise


def _if_closed(ledger: Ledger, run: Run, error: BaseException) -> None:
    """Raises RunSuperseded for what fails in a run that others have abandoned: they go on without it, and may have deleted what it reads."""
    with suppress(LedgerConflict):  # the first error is the one to tell
        if isinstance(error, Exception) and (now := ledger.run(run.number)).state == RunState.ABANDONED:
            raise superseded(now.topology, now.number, now.note)
