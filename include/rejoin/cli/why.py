"""``rejoin why``: where a row comes from. It needs no Spark."""

import click
from rich.console import Console

from rejoin.cli.json_output import print_json
from rejoin.cli.key_arguments import Keyed
from rejoin.cli.options import existing, json_option, lake_option, out, root_option, topology_option


@click.command(cls=Keyed)
@click.argument("output")
@click.argument("key", nargs=-1, required=True)
@lake_option
@root_option
@topology_option
@click.option("--as-of", "run", type=int, default=None, help="As of this run; default: the newest.")
@json_option
def why(output: str, key: tuple[str, ...], location: str, root: str, name: str | None, run: int | None, as_json: bool) -> None:
    r"""Show which records of which files made, changed, held back or removed the row of OUTPUT (or of a source table) with this KEY.

    Of a key with several columns give one value each; \N stands for null. A number below zero is a value; any other that begins with a minus stands
    behind ``--``.

    The records' lines are found by reading the files again; where these are gone or changed, only their names are shown.
    """
    from rejoin.lake.query.typed_keys import typed
    from rejoin.lake.source_access import source_access
    from rejoin.why.trace import why as answer
    from rejoin.why.tree import WIDE, tree

    topology = existing(location, name)
    found = answer(topology.ledger, topology.refs, source_access(topology.config, root), output, typed(key), run)
    if as_json:
        print_json(found.to_dict())
    else:
        (out if out.is_terminal else Console(width=WIDE, highlight=False)).print(tree(found))
