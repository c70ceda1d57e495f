"""``rejoin quarantine``: what is in quarantine."""

import click

from rejoin.cli import completion
from rejoin.cli.json_output import print_lines
from rejoin.cli.key_arguments import Keyed
from rejoin.cli.options import (
    always_json,
    err,
    existing,
    json_option,
    lake_option,
    loaded,
    opened,
    out,
    root_option,
    session_of,
    table_argument,
    topology_argument,
    topology_option,
    where,
)
from rejoin.cli.plan import agree, yes_option
from rejoin.lake.ledger import run_owner
from rejoin.plan.model.policy import RunOptions
from rejoin.report.progress import shown


@click.group()
def quarantine() -> None:
    """Rows and records in quarantine: look at them, try them again, drop them."""


@quarantine.command("list")
@click.argument("table", required=False, shell_complete=completion.tables)
@lake_option
@topology_option
@json_option
def quarantine_list(table: str | None, location: str, name: str | None, as_json: bool) -> None:
    """List what is in quarantine now, of TABLE (a source table or output) or of all."""
    from rejoin.lake.query.quarantine_reader import entries
    from rejoin.report.history import kept_aside

    topology = existing(location, name)
    found = entries(topology.ledger, topology.refs, table)
    print_lines(e.to_dict() for e in found) if as_json else kept_aside(out, found)


@quarantine.command("show", cls=Keyed)
@table_argument
@click.argument("key", nargs=-1)
@lake_option
@topology_option
@always_json
def quarantine_show(table: str, key: tuple[str, ...], location: str, name: str | None) -> None:
    """Print what is in quarantine of TABLE, or of one KEY of it, with the raw record, as JSON lines."""
    from rejoin.lake.query.quarantine_reader import entries

    topology = existing(location, name)
    print_lines(e.to_dict() for e in entries(topology.ledger, topology.refs, table, key))


@quarantine.command("replay")
@topology_argument
@click.argument("table", nargs=-1, required=True, shell_complete=completion.tables)
@lake_option
@root_option
@yes_option
def quarantine_replay(topology_file: str, table: tuple[str, ...], location: str, root: str, agreed: bool) -> None:
    """Run TOPOLOGY_FILE once and try again what is in quarantine of each TABLE, by the definitions and expectations of now."""
    from rejoin.lake.query.quarantine_reader import entries
    from rejoin.report.history import kept_aside
    from rejoin.report.run import ending
    from rejoin.steps.run.schedule import run_topology

    plan, options = loaded(topology_file), RunOptions(replay=table)
    agree(plan, location, options, agreed=agreed)
    topology = opened(plan, location, root)
    for one in table:
        entries(topology.ledger, topology.refs, one)  # refuses a name that nothing has
    with shown(err) as progress:
        done = run_topology(topology, session_of(topology.config, progress), run_owner.this_process(), progress, options)
    ending(out, topology, done, list(topology.ledger.steps(done.number).values()), where(topology, location))
    kept_aside(out, [e for one in table for e in entries(topology.ledger, topology.refs, one)])


@quarantine.command("drop", cls=Keyed)
@table_argument
@click.argument("key", nargs=-1)
@lake_option
@topology_option
def quarantine_drop(table: str, key: tuple[str, ...], location: str, name: str | None) -> None:
    """Remove what is in quarantine of the source table TABLE, or of one KEY of it. Its current rows stay as they are."""
    from rejoin.operate.quarantine import drop

    topology = existing(location, name)
    done = drop(topology, run_owner.this_process(), table, key)
    out.print("nothing to drop" if done is None else f"run {done.number}: dropped")
