"""Commands that keep a lake small: ``rejoin compact`` and ``rejoin expire``."""

import click

from rejoin.cli.options import err, existing_if_any, lake_option, out, session_of, topology_option, where
from rejoin.lake.ledger import run_owner
from rejoin.report.progress import shown


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
