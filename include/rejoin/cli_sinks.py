"""The commands about sinks: ``rejoin publish`` and ``rejoin sinks``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rejoin.conduct import Topology

_lake = click.option(
    "--lake", "location", envvar="REJOIN_LAKE", default="lake", show_default=True, help="Where the tables live. [env REJOIN_LAKE]"
)
_topology = click.option("--topology", "name", default=None, help="Which topology, if the lake holds several.")


@click.command()
@click.argument("topology_file", required=False)
@_lake
@_topology
@click.option("--sink", "wanted", default=None, help="Which sink (OUTPUT.SINK); default: all.")
@click.option("--from-run", type=int, default=None, help="Deliver the changes of this run and all later ones again.")
@click.option("--snapshot", is_flag=True, help="Deliver the rows of the newest run again, and delete what is not among them.")
def publish(topology_file: str | None, location: str, name: str | None, wanted: str | None, from_run: int | None, snapshot: bool) -> None:
    """Deliver to sinks what they have not got yet, from the committed runs. Needs no Spark.

    With --from-run or --snapshot one sink gets again what it had; event ids stay the same.
    """
    from rejoin.cli import out
    from rejoin.deliver import Restart, deliver_all
    from rejoin.report_sinks import deliveries

    again = from_run is not None or snapshot
    if again and (wanted is None or (from_run is not None and snapshot)):
        raise click.UsageError("--from-run and --snapshot need --sink, and exclude each other")
    topology = _opened(topology_file, location, name)
    if wanted is None:
        deliver_all(topology)
    else:
        topology.deliver(wanted, Restart(from_run) if again else None)
    deliveries(out, topology)


@click.command()
@click.argument("topology_file", required=False)
@_lake
@_topology
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sinks(topology_file: str | None, location: str, name: str | None, as_json: bool) -> None:
    """List the sinks: how far each is, how far behind, and what its last delivery was like."""
    from rejoin.cli import out
    from rejoin.report_sinks import deliveries, deliveries_data

    topology = _opened(topology_file, location, name)
    if as_json:
        click.echo(json.dumps(deliveries_data(topology)))
    else:
        deliveries(out, topology)


def _opened(topology_file: str | None, location: str, name: str | None) -> "Topology":
    from rejoin import cli
    from rejoin.conduct import Topology
    from rejoin.lake.config import lake_config
    from rejoin.load import load

    if topology_file is None:
        return cli._existing(location, name)  # noqa: SLF001 -- the other half of one command line
    return Topology(load(topology_file), lake_config(location), str(Path.cwd()))
