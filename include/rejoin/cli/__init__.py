"""The command line: ``rejoin --help``."""

from typing import Any

import click

from rejoin.cli import local, quarantine, reads, runs, sinks, sql, upkeep
from rejoin.cli.common import err
from rejoin.failures import at_the_rim

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


class _Commands(click.Group):
    """Turns rejoin's errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
            found = at_the_rim(error, f"rejoin {ctx.invoked_subcommand}")
            err.print(str(found), markup=False, soft_wrap=True)
            ctx.exit(found.exit_code)


@click.group(cls=_Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Keeps denormalized tables fresh by foreign-key joins: incremental when either side changes, deletes included.

    \b
    First:  rejoin explain dags/flights.py     what a topology means
            rejoin run     dags/flights.py     one run: costs what changed, all or nothing
            rejoin history                     what was run
            rejoin verify                      compare every output with its SQL
    """  # noqa: D301  click reads the backspace as: keep these lines as they are


for command in (
    runs.run,
    runs.explain,
    runs.history,
    runs.verify,
    runs.abandon,
    reads.get,
    reads.changes,
    sql.sql,
    sql.head,
    quarantine.quarantine,
    sinks.publish,
    sinks.sinks,
    upkeep.compact,
    upkeep.expire,
    local.demo,
    local.up,
    local.down,
    local.replay,
):
    main.add_command(command)
