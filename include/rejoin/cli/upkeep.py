"""Commands beside runs: ``rejoin capture``, ``rejoin compact`` and ``rejoin expire``, which a scheduler calls, ``rejoin accept``, which somebody decides, and ``rejoin doctor``."""

import signal
import sys
from pathlib import Path

import click

from rejoin.cli import completion
from rejoin.cli.json_output import print_json
from rejoin.cli.options import (
    err,
    existing_if_any,
    json_option,
    lake_option,
    loaded,
    opened,
    out,
    root_option,
    session_of,
    topology_argument,
    topology_option,
    where,
)
from rejoin.errors import PlanNotApproved
from rejoin.failures import extras
from rejoin.lake.ledger import run_owner
from rejoin.report.progress import shown


@click.command()
@topology_argument
@lake_option
@root_option
@click.option("--once", is_flag=True, help="Capture what is committed now, then end.")
@click.option("--resnapshot", is_flag=True, help="Read every table again, after the slot or captured files were lost.")
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
@topology_argument
@lake_option
@root_option
@click.option(
    "--every",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    metavar="HOURS",
    help="How often it runs; default: REJOIN_FRESH_WITHIN, else 26.",
)
@json_option
def doctor(topology_file: str, location: str, root: str, every: float | None, as_json: bool) -> None:
    """Look at the sources of TOPOLOGY_FILE: can they be read, and do they keep what is new until the next run? Exit code 1 if there are problems.

    \b
    of PostgreSQL   settings, rights, publication, slot, replica identity and keys, the last capture
    of topics       rights, retention, compaction, partitions, open transactions, the newest messages, the schema registry
    of files        what is there, what is ignored, the first records of the newest file
    of Iceberg      files that are not read, how long snapshots are kept

    Changes nothing.
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    from datetime import timedelta

    from rejoin.doctor.checkup import findings
    from rejoin.doctor.findings import State
    from rejoin.lake.config import existing_config
    from rejoin.lake.source_access import source_access
    from rejoin.operate.freshness import fresh_within
    from rejoin.report import findings as report

    plan = loaded(topology_file)
    access = source_access(existing_config(location), root if "://" in root else str(Path(root).resolve()))
    found = list(findings(plan, access, fresh_within() if every is None else timedelta(hours=every)))
    print_json(report.findings_data(plan.topology, found)) if as_json else report.findings(out, found)
    if any(one.state is State.PROBLEM for one in found):
        sys.exit(1)


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


@click.command()
@topology_argument
@click.argument("table", shell_complete=completion.tables)
@lake_option
@root_option
@click.option("--yes", "agreed", is_flag=True, help="Agree to what is lost.")
@json_option
def accept(topology_file: str, table: str, location: str, root: str, agreed: bool, as_json: bool) -> None:
    """Let the source table TABLE go on although its topic has lost records, was replaced or has more partitions, so that runs no longer stop.

    It says what is lost and from where the next run reads, and asks on a terminal; elsewhere it needs --yes. Rows that are stored stay. What is lost is not
    made up for: have the producer write all rows once more (a new snapshot) after it.

    \b
      rejoin plan shop.py             refused: SOURCE_OVERRUN
      rejoin accept shop.py orders    40 offsets of partition 1 are lost (10 to 49); it goes on at offset 50
      rejoin run shop.py              reads from there

    It helps against SOURCE_OVERRUN, TOPIC_REPLACED and PARTITIONS_ADDED. If no run would stop, it does nothing.
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    from rejoin.operate.accept import accept as go_on
    from rejoin.operate.accept import proposed

    topology = opened(loaded(topology_file), location, root)
    found = proposed(topology, table)
    if found is None:
        out.print(f"nothing to accept: no run stops at the source of {table}", markup=False)
        return
    err.print(f"runs stop with {found.code} at the source of {table}. If you accept:", markup=False, soft_wrap=True)
    for sentence in found.said:
        err.print(f"  {sentence}", markup=False, soft_wrap=True)
    if not agreed and not (sys.stdin.isatty() and sys.stderr.isatty() and click.confirm("Accept it?", err=True)):
        raise PlanNotApproved(
            f"nobody agreed to how table {table!r} goes on; nothing was done", next_step="read the lines above; --yes agrees"
        )
    done = go_on(topology, run_owner.this_process(), table, found)
    data = {"topology": done.topology, "run": done.number, "table": table, "code": found.code, "said": found.said, "lossy": found.lossy}
    print_json(data) if as_json else out.print(f"run {done.number}: accepted; the next run of {table} reads from there", markup=False)
