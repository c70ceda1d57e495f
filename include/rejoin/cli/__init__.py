"""The command line: ``rejoin --help``."""

import gc
from typing import Any

import click

from rejoin.cli import local, plan, quarantine, reads, runs, sinks, sql, upkeep, why
from rejoin.cli.options import err
from rejoin.cli.versions import print_version, print_versions
from rejoin.failures.engine_errors import at_the_rim

_FEWER_COLLECTIONS = (50_000, 20, 20)
"""Python looks for garbage in circles after so many new objects, 700 by default: while modules are loaded, and records of a topic handed over, there is none. A fifth
of the start of a command, and a fifteenth of reading a topic, went into it."""
EXIT_CODES = """
\b
Exit codes:
  0   done
  1   unexpected error; verify, repair: there are differences; doctor: there are problems
  2   the command or the topology file has mistakes; run: nobody agreed to the plan
  3   the input has problems; nothing was made visible
  4   the run is closed, unknown or beyond retention
  5   set-up: Java, jars, catalog, object store, or a schema change that a table cannot make
  6   a check that every run makes on itself failed; nothing was made visible
  7   the run is committed; a sink did not get it
  75  somebody else's run is open, or the ledger, a store or a sink is busy: try again later
"""


class _Commands(click.Group):
    """Turns rejoin's errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
            found = at_the_rim(error, f"rejoin {ctx.invoked_subcommand}")
            err.print(str(found), soft_wrap=True)
            ctx.exit(found.exit_code)


@click.group(cls=_Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Print the version of rejoin.")
@click.option(
    "--versions",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_versions,
    help="Print the versions of Spark and others, too.",
)
def main() -> None:
    """Keeps denormalized tables fresh by incremental joins: they follow what changes on either side, deletes included.

    \b
    First:  rejoin init DIRECTORY   a small project to start from
            rejoin explain FILE     what a topology means
            rejoin run     FILE     one run: costs what changed, all or nothing
            rejoin history          what was run
            rejoin verify           compare every output with its SQL
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    gc.set_threshold(*_FEWER_COLLECTIONS)


for command in (
    local.init,
    local.discover,
    runs.run,
    runs.explain,
    plan.plan,
    runs.history,
    runs.verify,
    runs.repair,
    runs.abandon,
    reads.get,
    reads.changes,
    why.why,
    sql.sql,
    sql.head,
    quarantine.quarantine,
    upkeep.capture,
    upkeep.accept,
    upkeep.doctor,
    sinks.publish,
    sinks.sinks,
    upkeep.compact,
    upkeep.expire,
    local.setup,
    local.demo,
    local.up,
    local.down,
    local.replay,
):
    main.add_command(command)
