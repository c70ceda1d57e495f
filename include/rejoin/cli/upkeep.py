"""Commands that a scheduler calls beside runs: ``rejoin capture``, ``rejoin compact`` and ``rejoin expire``."""

import signal
from pathlib import Path

import click

from rejoin.cli.options import (
    err,
    existing_if_any,
    lake_option,
    loaded,
    out,
    root_option,
    session_of,
    topology_argument,
    topology_option,
    where,
)
from rejoin.failures import extras
from rejoin.lake.ledger import run_owner
from rejoin.report.progress import shown


@click.command()
@topology_argument
@lake_option
@root_option
@click.option("--once", is_flag=True, help="Capture what is committed now, then end.")
@click.option("--resnapshot", is_flag=True, help="Read every table again: after a slot was lost, or files were.")
def capture(topology_file: str, location: str, root: str, once: bool, resnapshot: bool) -> None:
    """Read the changes of PostgreSQL's tables into files below --root.

    The first time it makes a publication and a slot, and reads the tables that are declared as debezium(captured(...)). Without --once it
    goes on until it is stopped (SIGTERM, Ctrl-C). Killed at any point, it goes on where it was.
    """
    extras.require("rejoin capture", "adbc_driver_manager", "adbc_driver_postgresql", "psycopg2")
    from rejoin.capture.capture import Request
    from rejoin.capture.capture import capture as run
    from rejoin.lake.config import existing_config
    from rejoin.lake.source_access import source_access

    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopped.append(received))
    root = root if "://" in root else str(Path(root).resolve())
    access = source_access(existing_config(location), root)
    request = Request(root, access.connections, once, resnapshot, out.print, lambda: bool(stopped))
    for done in run(loaded(topology_file), request):
        out.print(f"{done.at}: {done.rows} rows, {done.changes} changes of {done.tables} tables, {done.files} files of changes")


@click.command()
@lake_option
@topology_option
def compact(location: str, name: str | None) -> None:
    """Fold old versions into a sorted base, drop what deletes hide, and let old records of streams with a retention go. Results stay."""
    from rejoin.operate.compact import compact as fold
    from rejoin.report.run import upkeep

    topology = existing_if_any(location, name)
    if topology is None:
        out.print("nothing to compact: nothing was run yet")
        return
    with shown(err) as progress:
        done = fold(topology, session_of(topology.config, progress), run_owner.this_process(), progress)
    if done is None:
        out.print("nothing to compact")
    else:
        upkeep(out, done, list(topology.ledger.steps(done.number).values()), "compacted", where(topology, location))


@click.command()
@lake_option
@topology_option
@click.option(
    "--keep-days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="States of runs stay so long after a newer run."
)
def expire(location: str, name: str | None, keep_days: float) -> None:
    """Free the storage that only older runs need, and files that crashed attempts left (older than three days)."""
    from datetime import timedelta

    from rejoin.operate.expire import expire as free
    from rejoin.report.run import upkeep

    topology = existing_if_any(location, name)
    done = None
    if topology is not None:
        with shown(err) as progress:
            done = free(topology, run_owner.this_process(), timedelta(days=keep_days), progress)
    if topology is None or done is None:
        out.print("nothing to expire: nothing was run yet")
    else:
        upkeep(out, done, list(topology.ledger.steps(done.number).values()), "looked at", where(topology, location))
