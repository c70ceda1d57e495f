"""Commands that run a topology, explain it, check it and list what was run."""

import sys
from collections.abc import Sequence

import click

from rejoin.cli.json_output import print_json, print_lines
from rejoin.cli.options import (
    engine_option,
    err,
    existing,
    json_option,
    lake_option,
    loaded,
    opened,
    opened_or_existing,
    optional_topology_argument,
    out,
    root_option,
    session_of,
    topology_argument,
    topology_option,
    where,
    with_open_run,
)
from rejoin.cli.plan import agree, yes_option
from rejoin.engines.choice import EngineChoice
from rejoin.errors import RunUnknown, SinksBehind, SnapshotOpen
from rejoin.failures import extras
from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import DECLARABLE, Fuse, Refresh, RunOptions
from rejoin.report.progress import shown


@click.command()
@topology_argument
@lake_option
@root_option
@click.option(
    "--owner",
    "who",
    default=None,
    help="The name of whoever runs this. The same name resumes its own failed run and the input of that run.",
)
@click.option("--refresh", type=click.Choice(DECLARABLE), default=None, help="How to bring every output up to date in this run.")
@click.option(
    "--fuse", type=click.Choice([str(f) for f in Fuse]), default=None, help="What to do about an output that would change too much."
)
@engine_option
@click.option(
    "--only", multiple=True, metavar="OUTPUT", help="Update only this output and what it is made of (may be given several times)."
)
@click.option("--note", default="", help="A sentence to keep with the run.")
@yes_option
@json_option
def run(
    topology_file: str,
    location: str,
    root: str,
    who: str | None,
    refresh: str | None,
    fuse: str | None,
    engine: str | None,
    only: tuple[str, ...],
    note: str,
    agreed: bool,
    as_json: bool,
) -> None:
    """Run TOPOLOGY_FILE once: read what is new, update every output, make all of it visible at once.

    Nothing is visible if it fails; running again is always safe. If the file was edited so that something is rebuilt or left behind, or sinks get
    something else, it shows the plan and asks on a terminal; elsewhere it needs --yes.
    """
    from rejoin.report.history import summary_data
    from rejoin.report.run import ending
    from rejoin.report.sinks import deliveries_data
    from rejoin.steps.run.schedule import run_topology

    plan, behind, owned_by = loaded(topology_file), None, who or run_owner.this_process()
    options = RunOptions(Refresh(refresh) if refresh else None, Fuse(fuse) if fuse else None, only, note=note)
    agree(plan, location, options, agreed=agreed)
    topology = opened(plan, location, root, engine)
    if topology.config.engine is EngineChoice.SPARK:
        extras.require("rejoin run", "pyspark")  # before a run is open
    with shown(None if as_json else err) as progress:
        try:
            done = run_topology(topology, session_of(topology.config, progress), owned_by, progress, options)
        except SinksBehind as error:
            done, behind = topology.ledger.run(topology.ledger.head() or 0), error
    steps, at = list(topology.ledger.steps(done.number).values()), where(topology, location)
    print_json(summary_data(done, steps) | deliveries_data(topology)) if as_json else ending(out, topology, done, steps, at)
    if behind is not None:
        raise behind
    _check_complete(done, steps)


def _check_complete(done: Run, steps: Sequence[StepRecord]) -> None:
    """Raises SnapshotOpen, after a run that has left outputs as they were for it."""
    from rejoin.report.history import waiting

    if waits := waiting(steps):
        tables = ", ".join(dict.fromkeys(t for of in waits.values() for t in of))
        raise SnapshotOpen(
            f"run {done.number} of {done.topology} is committed, and left {', '.join(waits)} as it was: a snapshot in the feed of {tables} was not read to its end",
            expected="the end of the snapshot, by on_incomplete='wait' of the source",
            next_step="run again when the rest of the snapshot is there; on_incomplete='publish' makes visible what there is",
        )


@click.command()
@topology_argument
@json_option
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart.")
@click.option("--sql", is_flag=True, help="Print each output's defining query, and the statement of every stage.")
@click.option(
    "--engine",
    type=click.Choice([str(c) for c in EngineChoice]),
    default=None,
    help="With --sql: the statements of a run with this --engine.",
)
@click.option("--run", "number", type=int, default=None, help="Show how this run was done: what was recomputed, what was read, and why.")
@lake_option
def explain(topology_file: str, as_json: bool, mermaid: bool, sql: bool, engine: str | None, number: int | None, location: str) -> None:
    """Show what TOPOLOGY_FILE compiles to: tables, joins and the steps of a run; if it was run, also what the next run makes of the lake's tables.

    Needs no Spark. Only --run needs a lake; without it, the lake is compared if there is one.
    """
    from rejoin.plan import explain as explained
    from rejoin.plan.sql.defining_query import topology_query

    if (as_json or number is not None) + mermaid + sql > 1:
        raise click.UsageError("--mermaid and --sql exclude each other, --json and --run")
    plan = loaded(topology_file)
    if number is not None:
        from rejoin.report.history import decisions, summary_data

        ledger = opened(plan, location, ".").ledger
        one, steps = ledger.run(number), list(ledger.steps(number).values())
        print_json(summary_data(one, steps)) if as_json else decisions(out, one, steps)
    elif as_json:
        from rejoin.plan.model import json_form

        click.echo(json_form.to_json(plan))
    elif mermaid:
        click.echo(explained.mermaid(plan))
    elif sql:
        from rejoin.report.statements import statements

        click.echo("\n\n".join(f"-- {n.name}\n{topology_query(plan, n)}" for n in plan.nodes))
        for made in statements(plan, _choice(location, engine)):
            click.echo(f"\n-- {made.step}: {made.part}\n-- {made.where}\n{made.sql.strip()}")
    else:
        click.echo(explained.text(plan))
        _against_the_lake(plan, location)


def _choice(location: str, engine: str | None) -> EngineChoice:
    """Which engine `run` would ask; makes no lake."""
    from rejoin.engines.placement import chosen
    from rejoin.lake.config import existing_config

    config, asked = existing_config(location), EngineChoice(engine) if engine else None
    return chosen(asked, cluster=False) if config is None else chosen(asked or config.engine, cluster=config.cluster)


def _against_the_lake(plan: Plan, location: str) -> None:
    """What an edited topology means for the tables that are there; nothing without a lake, or if nothing is edited."""
    from rejoin.lake.config import existing_config
    from rejoin.operate.ahead import compared
    from rejoin.report.plan import edits

    found = compared(plan, existing_config(location))
    if found.refused:
        raise found.refused[0]
    edits(out, found, location)


@click.command()
@optional_topology_argument
@lake_option
@topology_option
@click.option("--fast", is_flag=True, help="Compare stored hashes first and recompute only rows whose hash differs.")
@engine_option
@json_option
def verify(topology_file: str | None, location: str, name: str | None, fast: bool, engine: str | None, as_json: bool) -> None:
    """Recompute every output of the last committed run by its SQL and count differences. Exit code 1 if there are any.

    All tables are read by another way than runs read them. `--engine spark` computes by another engine, too.
    """
    from rejoin.operate.verify.verify import verify as compare
    from rejoin.report.history import lost, verification, verification_data

    topology = opened_or_existing(topology_file, location, name, engine)
    with shown(None if as_json else err) as progress:
        found = compare(topology, session_of(topology.config, progress), fast=fast, progress=progress)
    losses = topology.ledger.losses(topology.ledger.head())
    if as_json:
        print_json(verification_data(topology.plan.topology, found, losses, fast=fast))
    else:
        verification(out, found, fast=fast)
        for line in lost(losses):
            out.print(line, markup=False, soft_wrap=True)
        if any(d.total > d.hidden for d in found):
            words = ["rejoin repair", "" if fast else "--full", where(topology, location)]
            out.print(f"next: {' '.join(filter(None, words))}", markup=False, soft_wrap=True)
    if any(d.total for d in found):
        sys.exit(1)


@click.command()
@optional_topology_argument
@lake_option
@topology_option
@click.option("--full", is_flag=True, help="Compare all values, as `rejoin verify` does without --fast.")
@engine_option
@json_option
def repair(topology_file: str | None, location: str, name: str | None, full: bool, engine: str | None, as_json: bool) -> None:
    """Recompute the outputs that `rejoin verify --fast` finds wrong, in one run, and compare again. Exit code 1 if differences are left.

    The run joins what is stored once more, as the last run defined it: it reads no new input. Outputs that are made of a wrong one follow it, sinks get what
    changes, and all of it becomes visible at once. Where nothing is wrong, no run is opened.

    \b
      rejoin verify --fast    which outputs are wrong; changes nothing
      rejoin repair           recompute those
      rejoin repair --full    also find values that were changed in the files of a table
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    from rejoin.operate.repair import repair as recompute
    from rejoin.report.repair import repaired, repaired_data

    topology = opened_or_existing(topology_file, location, name, engine)
    with shown(None if as_json else err) as progress:
        done = recompute(topology, session_of(topology.config, progress), run_owner.this_process(), fast=not full, progress=progress)
    print_json(repaired_data(topology.plan.topology, done, fast=not full)) if as_json else repaired(out, done, fast=not full)
    if any(d.total for d in done.after):
        if done.behind is not None:
            err.print(str(done.behind), soft_wrap=True)
        sys.exit(1)
    if done.behind is not None:
        raise done.behind


@click.command()
@lake_option
@topology_option
@click.option("--last", default=20, show_default=True, help="Show so many runs.")
@click.option("--run", "number", type=int, default=None, help="Show one run, step by step.")
@json_option
def history(location: str, name: str | None, last: int, number: int | None, as_json: bool) -> None:
    """List the runs in the ledger, newest last; with --run, one run's steps."""
    from rejoin.report.history import run_list, summary, summary_data

    topology = existing(location, name)
    if number is not None:
        one, steps = topology.ledger.run(number), list(topology.ledger.steps(number).values())
        print_json(summary_data(one, steps)) if as_json else summary(out, one, steps)
        return
    runs = [(r, list(topology.ledger.steps(r.number).values())) for r in topology.ledger.runs()[-last:]]
    if as_json:
        print_lines(summary_data(r, s) for r, s in runs)
    else:
        run_list(out, runs)


@click.command()
@lake_option
@topology_option
@click.option("--run", "number", type=int, default=None, help="Which run; default: the open one.")
def abandon(location: str, name: str | None, number: int | None) -> None:
    """Close an open run: what it wrote never becomes visible, and the next run reads its input again.

    Without --topology and --run: the only one that is open.
    """
    topology = existing(location, with_open_run(location) if name is None and number is None else name)
    open_run = topology.ledger.open_run()
    if number is None and open_run is None:
        raise RunUnknown(f"topology {topology.plan.topology!r} has no open run", next_step="nothing to do")
    wanted = number if number is not None else open_run.number if open_run else 0
    topology.ledger.abandon(wanted, "abandoned by hand")
    topology.roll_forward()
    out.print(f"run {wanted} is abandoned; the next run reads its input again")
