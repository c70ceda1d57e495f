"""The command line: ``rejoin --help``."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rejoin import cli_sinks, owner
from rejoin.errors import RejoinError, RunUnknown, SinksBehind, UnknownTable
from rejoin.lake.config import LakeConfig, lake_config
from rejoin.plan.model import DECLARABLE, Fuse, Plan, Refresh, RunOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.conduct import Topology

EXIT_CODES = """
\b
Exit codes:
  0   done
  1   unexpected error; verify: there are differences
  2   the command or the topology file has mistakes
  3   the input has problems; nothing was made visible
  4   the run is closed, unknown or beyond retention
  5   set-up: Java, jars, catalog, or a schema change that a table cannot make
  6   a check that every run makes on itself failed; nothing was made visible
  7   the run is committed; a sink did not get it
  75  somebody else's run is open, or the ledger or a sink is busy: try again later
"""

out = Console(highlight=False, width=None if sys.stdout.isatty() else 160)  # a file or pipe has no width of its own
err = Console(stderr=True, highlight=False)


class _Commands(click.Group):
    """Turns rejoin's errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RejoinError as error:
            err.print(str(error), markup=False, soft_wrap=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get("REJOIN_TRACE"):
                raise
            first = str(error).strip().split("\n")[0][:500]
            err.print(
                f"UNEXPECTED {type(error).__name__}: {first}\n  to go on: REJOIN_TRACE=1 shows the whole trace",
                markup=False,
                soft_wrap=True,
            )
            ctx.exit(1)


lake_option = click.option(
    "--lake",
    "location",
    envvar="REJOIN_LAKE",
    default="lake",
    show_default=True,
    help="Where the tables live: a directory, or a .toml file that names a catalog, a warehouse and a ledger. [env REJOIN_LAKE]",
)
root_option = click.option(
    "--root", envvar="REJOIN_ROOT", default=".", show_default=True, help="Where relative source paths start. [env REJOIN_ROOT]"
)
topology_option = click.option("--topology", "name", default=None, help="Which topology, if the lake holds several.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=_Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Keeps denormalized tables fresh by foreign-key joins: incremental when either side changes, deletes included.

    \b
    First:  rejoin explain dags/flights.py     what a topology means
            rejoin run     dags/flights.py     one run: costs what changed, all or nothing
            rejoin history                     what was run
            rejoin verify                      compare every output with its SQL
    """  # noqa: D301  click reads the backspace as: keep these lines as they are


@main.command()
@click.argument("topology_file")
@lake_option
@root_option
@click.option("--owner", "who", default=None, help="Name of whoever runs this: the same name goes on with its own failed run and cut.")
@click.option("--refresh", type=click.Choice(DECLARABLE), default=None, help="How to bring every output up to date in this run.")
@click.option(
    "--fuse", type=click.Choice([str(f) for f in Fuse]), default=None, help="What to do about an output that would change too much."
)
@click.option("--only", multiple=True, metavar="OUTPUT", help="Only this output and what it is made of (may be given several times).")
@click.option("--note", default="", help="A sentence to keep with the run.")
@json_option
def run(
    topology_file: str,
    location: str,
    root: str,
    who: str | None,
    refresh: str | None,
    fuse: str | None,
    only: tuple[str, ...],
    note: str,
    as_json: bool,
) -> None:
    """Run TOPOLOGY_FILE once: read what is new, update every output, make all of it visible at once.

    Nothing is visible if it fails; running again is always safe.
    """
    from rejoin.conduct import run_topology
    from rejoin.report import Live, summary, summary_data
    from rejoin.report_sinks import deliveries, deliveries_data

    topology, behind = _open_topology(_load(topology_file), location, root), None
    with Live(err) as live:
        try:
            done = run_topology(
                topology,
                _session(topology.config),
                who or owner.this_process(),
                live.progress,
                RunOptions(Refresh(refresh) if refresh else None, Fuse(fuse) if fuse else None, only, note=note),
            )
        except SinksBehind as error:
            done, behind = topology.ledger.run(topology.ledger.head() or 0), error
    steps = list(topology.ledger.steps(done.number).values())
    if as_json:
        click.echo(json.dumps(summary_data(done, steps) | deliveries_data(topology)))
    else:
        summary(out, done, steps)
        deliveries(out, topology)
    if behind is not None:
        raise behind


@main.command()
@click.argument("topology_file")
@json_option
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart.")
@click.option("--sql", is_flag=True, help="Print each output's defining query.")
@click.option("--run", "number", type=int, default=None, help="How this run was done: what was recomputed, what was read, and why.")
@lake_option
def explain(topology_file: str, as_json: bool, mermaid: bool, sql: bool, number: int | None, location: str) -> None:
    """Show what TOPOLOGY_FILE compiles to: tables, joins and the steps of a run. Needs no Spark, and only with --run a lake."""
    from rejoin.plan import explain as explained
    from rejoin.plan.query import topology_query
    from rejoin.report import decisions

    plan = _load(topology_file)
    if number is not None:
        ledger = _open_topology(plan, location, ".").ledger
        decisions(out, ledger.run(number), list(ledger.steps(number).values()))
    elif as_json:
        click.echo(plan.to_json())
    elif mermaid:
        click.echo(explained.mermaid(plan))
    elif sql:
        click.echo("\n\n".join(f"-- {n.name}\n{topology_query(plan, n)}" for n in plan.nodes))
    else:
        click.echo(explained.text(plan))


@main.command()
@click.argument("topology_file", required=False)
@lake_option
@topology_option
@click.option("--fast", is_flag=True, help="Compare stored hashes first and recompute only rows whose hash differs.")
def verify(topology_file: str | None, location: str, name: str | None, fast: bool) -> None:
    """Recompute every output of the last committed run by its SQL and count differences. Exit code 1 if there are any."""
    from rejoin.report import verification
    from rejoin.verify import verify as compare

    topology = _open_topology(_load(topology_file), location, ".") if topology_file else _existing(location, name)
    found = compare(topology, _session(topology.config)(), fast=fast)
    verification(out, found, fast=fast)
    if any(d.total for d in found):
        sys.exit(1)


@main.command()
@lake_option
@topology_option
@click.option("--last", default=20, show_default=True, help="How many runs.")
@click.option("--run", "number", type=int, default=None, help="One run, step by step.")
@json_option
def history(location: str, name: str | None, last: int, number: int | None, as_json: bool) -> None:
    """List the runs in the ledger, newest last; with --run, one run's steps."""
    from rejoin.report import run_list, summary, summary_data

    topology = _existing(location, name)
    if number is not None:
        one, steps = topology.ledger.run(number), list(topology.ledger.steps(number).values())
        click.echo(json.dumps(summary_data(one, steps))) if as_json else summary(out, one, steps)
        return
    runs = [(r, list(topology.ledger.steps(r.number).values())) for r in topology.ledger.runs()[-last:]]
    if as_json:
        _print_lines(summary_data(r, s) for r, s in runs)
    else:
        run_list(out, runs)


@main.command()
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@lake_option
@topology_option
@click.option("--as-of", "run", type=int, default=None, help="The state after this run; default: the newest.")
def get(table: str, key: tuple[str, ...], location: str, name: str | None, run: int | None) -> None:
    """Print the row of TABLE with this KEY (one value a key column) as JSON. Exit code 4 if there is none."""
    from rejoin.lake.pointquery import PointQuery

    topology = _existing(location, name)
    query = PointQuery(topology.ledger, topology.refs, run)
    row = query.get(table, key)
    if row is None:
        raise RunUnknown(f"table {table!r} has no row with this key as of run {query.run}")
    _print_lines([row])


@main.command()
@click.argument("table")
@lake_option
@topology_option
@click.option("--run", "number", type=int, default=None, help="Which run; default: the newest.")
@click.option("--limit", type=int, default=None, help="At most so many changes.")
def changes(table: str, location: str, name: str | None, number: int | None, limit: int | None) -> None:
    """Print what a run changed in TABLE (an output), one JSON line a key: {"op", "before", "after"}."""
    from rejoin.lake.pointquery import PointQuery

    topology = _existing(location, name)
    query = PointQuery(topology.ledger, topology.refs)
    wanted = query.run if number is None else topology.ledger.run(number).number
    found = query.changes(table, wanted)
    _print_lines(row for _, row in zip(range(limit), found, strict=False)) if limit is not None else _print_lines(found)


@main.command()
@lake_option
@topology_option
def compact(location: str, name: str | None) -> None:
    """Fold old versions into a sorted base and drop what deletes hide. Readers see no difference."""
    from rejoin.compact import compact as fold
    from rejoin.report import summary

    topology = _existing(location, name)
    done = fold(topology, _session(topology.config), owner.this_process())
    if done is None:
        out.print("nothing to compact")
    else:
        summary(out, done, list(topology.ledger.steps(done.number).values()))


@main.command()
@lake_option
@topology_option
@click.option("--keep-days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="States of runs younger than this stay.")
def expire(location: str, name: str | None, keep_days: float) -> None:
    """Free the storage that only older runs need, and files that crashed attempts left (older than three days)."""
    from datetime import timedelta

    from rejoin.expire import expire as free
    from rejoin.report import summary

    topology = _existing(location, name)
    done = free(topology, _session(topology.config), owner.this_process(), timedelta(days=keep_days))
    if done is None:
        out.print("nothing to expire: nothing was run yet")
    else:
        summary(out, done, list(topology.ledger.steps(done.number).values()))


@main.command()
@lake_option
@topology_option
@click.option("--run", "number", type=int, default=None, help="Which run; default: the open one.")
def abandon(location: str, name: str | None, number: int | None) -> None:
    """Close an open run: what it wrote never becomes visible, and the next run reads its input again."""
    topology = _existing(location, name)
    open_run = topology.ledger.open_run()
    if number is None and open_run is None:
        raise RunUnknown(f"topology {topology.plan.topology!r} has no open run", next_step="nothing to do")
    wanted = number if number is not None else open_run.number if open_run else 0
    topology.ledger.abandon(wanted, "abandoned by hand")
    topology.roll_forward()
    out.print(f"run {wanted} is abandoned; the next run reads its input again")


@main.group()
def quarantine() -> None:
    """Rows and records that are kept aside: look at them, try them again, drop them."""


@quarantine.command("list")
@click.argument("table", required=False)
@lake_option
@topology_option
@json_option
def quarantine_list(table: str | None, location: str, name: str | None, as_json: bool) -> None:
    """List what is kept aside now, of TABLE (a source table or output) or of all."""
    from rejoin.quarantine import entries
    from rejoin.report import kept_aside

    found = entries(_existing(location, name), table)
    _print_lines(e.to_dict() for e in found) if as_json else kept_aside(out, found)


@quarantine.command("show")
@click.argument("table")
@click.argument("key", nargs=-1)
@lake_option
@topology_option
def quarantine_show(table: str, key: tuple[str, ...], location: str, name: str | None) -> None:
    """Print what is kept aside of TABLE, or of one KEY of it, with the raw record, as JSON lines."""
    from rejoin.quarantine import entries

    _print_lines(e.to_dict() for e in entries(_existing(location, name), table, key))


@quarantine.command("replay")
@click.argument("topology_file")
@click.argument("table", nargs=-1, required=True)
@lake_option
@root_option
def quarantine_replay(topology_file: str, table: tuple[str, ...], location: str, root: str) -> None:
    """Run TOPOLOGY_FILE once and judge again what is kept aside of each TABLE, through the same stages and by what is true now."""
    from rejoin.conduct import run_topology
    from rejoin.quarantine import entries
    from rejoin.report import Live, kept_aside, summary

    topology = _open_topology(_load(topology_file), location, root)
    for one in table:
        entries(topology, one)  # refuses a name that nothing has
    with Live(err) as live:
        done = run_topology(topology, _session(topology.config), owner.this_process(), live.progress, options=RunOptions(replay=table))
    summary(out, done, list(topology.ledger.steps(done.number).values()))
    kept_aside(out, [e for one in table for e in entries(topology, one)])


@quarantine.command("drop")
@click.argument("table")
@click.argument("key", nargs=-1)
@lake_option
@topology_option
def quarantine_drop(table: str, key: tuple[str, ...], location: str, name: str | None) -> None:
    """Forget what is kept aside of the source table TABLE, or of one KEY of it. Its current rows stay as they are."""
    from rejoin.quarantine import drop

    topology = _existing(location, name)
    done = drop(topology, owner.this_process(), table, key)
    out.print("nothing to drop" if done is None else f"run {done.number}: dropped")


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--runs", type=click.Choice(["per-event", "single"]), default="per-event", show_default=True, help="One run an event, or all in one."
)
@click.option("--lake", "location", default=None, help="Where to keep the tables; default: a temporary directory, removed at the end.")
def replay(files: tuple[str, ...], runs: str, location: str | None) -> None:
    """Run scenario FILES (JSON lines, optionally .gz) through the engine; one JSON line a scenario.

    A scenario is what Kafka Streams was given: {"name", "join", "events": [{"side", "key", "value", "ts"}], ...}. The answer is
    {"name", "changes": [a list a run: [[key, value or null], ...]], "table": {key: value}}.
    """
    from rejoin.replay import replay as play

    _print_lines(play(files, per_event=runs == "per-event", location=location))


@main.command()
@click.option(
    "--lake", "location", default="build/demo", show_default=True, help="A directory for the demo's lake and landing files; emptied first."
)
@click.option("--airflow", is_flag=True, help="Every run through Airflow, which is started for the demo.")
def demo(location: str, airflow: bool) -> None:
    """The flights of New York 2013: first load, several runs of changes, then verify."""
    from rejoin.demo import demo as show

    if show(out, Path(location), airflow=airflow):
        sys.exit(1)


@main.command()
@click.option("--dir", "folder", default="build/up", show_default=True, help="Where its database, logs, lake and landing files are.")
@click.option("--port", default=8080, show_default=True, help="Of the UI.")
def up(folder: str, port: int) -> None:
    """Start Airflow with the DAGs of dags/ and a warm Spark Connect server on this machine; print the login."""
    from rejoin.airflow import local
    from rejoin.examples import deliver

    delivered = deliver(Path(folder))
    made = local.up(Path(folder), port, lambda text: err.print(text, markup=False))
    out.print(f"Airflow   {made.url}   user {local.USER}   password {made.password}", soft_wrap=True)
    out.print(
        f"files     {made.folder}: landing/, lake/, logs/{' (the examples have their first files)' if delivered else ''}", soft_wrap=True
    )
    out.print(f"Spark     {made.remote}   by hand: REJOIN_LAKE={made.folder}/lake rejoin history", soft_wrap=True)
    out.print("next      unpause `flights` or `shop` in the UI and trigger it; stop all of it with `make down`")


@main.command()
@click.option("--dir", "folder", default="build/up", show_default=True, help="The folder that `rejoin up` was given.")
def down(folder: str) -> None:
    """Stop what `rejoin up` has started. Its files stay."""
    from rejoin.airflow import local

    if local.state(Path(folder)) is None:
        out.print(f"nothing runs in {folder}")
    local.down(Path(folder), out.print)


main.add_command(cli_sinks.publish)
main.add_command(cli_sinks.sinks)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _load(topology_file: str) -> Plan:
    from rejoin.load import load

    return load(topology_file)


def _open_topology(plan: Plan, location: str, root: str) -> "Topology":
    from rejoin.conduct import Topology

    return Topology(plan, lake_config(location), str(Path(root).resolve()))


def _existing(location: str, name: str | None) -> "Topology":
    """The named (or only) topology of a lake, with the plan of its newest run."""
    from rejoin.conduct import Topology
    from rejoin.lake.ledger import Ledger, topologies

    if not location.endswith(".toml") and not Path(location).is_dir():
        raise RunUnknown(f"there is no lake at {location}", next_step="pass --lake, or set REJOIN_LAKE")
    config = lake_config(location)
    known = topologies(config.ledger)
    if name is None and len(known) == 1:
        name = known[0]
    if name is None or name not in known:
        what = f"the lake at {location} has " + (f"no topology {name!r}" if name else f"{len(known)} topologies")
        raise UnknownTable(what, expected=f"--topology with one of: {', '.join(known) or '(none: nothing was run)'}")
    runs = Ledger(config.ledger, name).runs()
    return Topology(runs[-1].plan, config, ".")


def _session(config: LakeConfig) -> "Callable[[], SparkSession]":
    from rejoin.lake.session import session

    return partial(session, config)


def _print_lines(rows: Iterable[Any]) -> None:
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False, default=str))


if __name__ == "__main__":
    main()
