"""The commands about sinks: ``rejoin publish`` and ``rejoin sinks``."""

import click

from rejoin.cli.json_output import print_json
from rejoin.cli.options import json_option, lake_option, opened_or_existing, optional_topology_argument, out, topology_option


@click.command()
@optional_topology_argument
@lake_option
@topology_option
@click.option("--sink", "wanted", default=None, help="Which sink (OUTPUT.SINK); default: all.")
@click.option("--from-run", type=int, default=None, help="Deliver the changes of this run and all later ones again.")
@click.option("--snapshot", is_flag=True, help="Deliver the rows of the newest run again, and delete what is not among them.")
def publish(topology_file: str | None, location: str, name: str | None, wanted: str | None, from_run: int | None, snapshot: bool) -> None:
    """Deliver to the sinks the changes of committed runs that they do not have yet. Needs no Spark.

    With --from-run or --snapshot one sink gets again what it had before; event ids stay the same.
    """
    from rejoin.report.sinks import deliveries
    from rejoin.steps.deliver.catch_up import Restart
    from rejoin.steps.deliver.step import deliver_all

    again = from_run is not None or snapshot
    if again and (wanted is None or (from_run is not None and snapshot)):
        raise click.UsageError("--from-run and --snapshot need --sink, and exclude each other")
    topology = opened_or_existing(topology_file, location, name)
    if wanted is None:
        deliver_all(topology)
    else:
        topology.deliver(wanted, Restart(from_run) if again else None)
    deliveries(out, topology)


@click.command()
@optional_topology_argument
@lake_option
@topology_option
@json_option
def sinks(topology_file: str | None, location: str, name: str | None, as_json: bool) -> None:
    """List the sinks: how far each is, how far behind, and what its last delivery was like."""
    from rejoin.report.sinks import deliveries, deliveries_data

    topology = opened_or_existing(topology_file, location, name)
    if as_json:
        print_json(deliveries_data(topology))
    else:
        deliveries(out, topology)
