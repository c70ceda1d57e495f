"""``rejoin plan``, and the question that ``rejoin run`` asks before it runs an edited topology."""

import sys
from pathlib import Path

import click

from rejoin.cli.json_output import print_json
from rejoin.cli.options import err, json_option, lake_option, loaded, out, root_option, topology_argument
from rejoin.errors import PlanNotApproved
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import RunOptions

yes_option = click.option(
    "--yes", "agreed", is_flag=True, help="Agree to what an edited topology rebuilds, leaves behind or changes for sinks."
)


@click.command()
@topology_argument
@lake_option
@root_option
@json_option
def plan(topology_file: str, location: str, root: str, as_json: bool) -> None:
    """Show what the next run of TOPOLOGY_FILE will do to the lake: what is new, rebuilt, changed or left behind, what sinks get, what it costs.

    Runs and writes nothing, and needs no Spark. New input is counted, and read once for its checksums. Ends with the exit code of the refusal if the
    next run would be refused.
    """
    from rejoin.lake.config import existing_config
    from rejoin.lake.source_access import source_access
    from rejoin.operate.ahead import compared, measured, to_dict
    from rejoin.report import plan as report_plan

    wanted, config = loaded(topology_file), existing_config(location)
    ahead = measured(wanted, config, compared(wanted, config), source_access(config, str(Path(root).resolve())))
    if as_json:
        print_json(to_dict(ahead))
    else:
        report_plan.plan(out, ahead, location)
        if ahead.outlook.asks and not ahead.refused:
            out.print("\n`rejoin run` asks before it does this; --yes agrees")
    if ahead.refused:
        raise ahead.refused[0]


def agree(wanted: Plan, location: str, options: RunOptions, *, agreed: bool) -> None:
    """Shows what an edited topology does to what is stored, and asks on a terminal. Says nothing where nobody has to agree.

    Args:
        wanted: the plan to run.
        location: of the lake.
        options: what is asked of the run.
        agreed: somebody has agreed already.

    Raises:
        PlanNotApproved: nobody has agreed.
        SchemaRefused: the lake's tables cannot become what the plan says.
    """
    from rejoin.lake.config import existing_config
    from rejoin.operate.ahead import compared, measured
    from rejoin.report import plan as report_plan

    config, made = existing_config(location), wanted.with_options(options)
    found = compared(made, config)
    if not found.asks:
        return
    if found.refused:
        raise found.refused[0]
    report_plan.plan(err, measured(made, config, found, None), location)
    if agreed:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PlanNotApproved(
            f"the definition of topology {wanted.topology!r} was edited since run {found.run}, and nobody agreed to the plan above; nothing was run",
            next_step="look at the plan (`rejoin plan` shows it with the input that waits), then run with --yes",
        )
    if not click.confirm("\nRun it?", err=True):
        raise PlanNotApproved(
            f"the plan for topology {wanted.topology!r} was turned down; nothing was run", next_step="edit the topology file"
        )
