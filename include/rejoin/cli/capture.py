"""``rejoin capture``: what a topology reads of databases becomes files."""

import signal
from pathlib import Path

import click

from rejoin.cli.options import lake_option, loaded, out, root_option, topology_argument
from rejoin.failures import extras


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
