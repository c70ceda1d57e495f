"""Commands that read tables: a row, what a run changed. They need no Spark."""

import click

from rejoin.cli import completion
from rejoin.cli.json_output import print_json, print_lines
from rejoin.cli.key_arguments import Keyed
from rejoin.cli.options import always_json, existing, lake_option, table_argument, topology_option
from rejoin.errors import RowAbsent


@click.command(cls=Keyed)
@table_argument
@click.argument("key", nargs=-1, required=True)
@lake_option
@topology_option
@always_json
@click.option("--as-of", "run", type=int, default=None, help="The state after this run; default: the newest.")
def get(table: str, key: tuple[str, ...], location: str, name: str | None, run: int | None) -> None:
    r"""Print the row of TABLE with this KEY (one value per key column, \N for null) as JSON. Exit code 4 if there is none.

    A number below zero is a value; any other that begins with a minus stands behind ``--``.
    """
    from rejoin.lake.query.point_query import PointQuery
    from rejoin.lake.query.typed_keys import typed

    topology = existing(location, name)
    query = PointQuery(topology.ledger, topology.refs, run)
    row = query.get(table, typed(key))
    if row is None:
        raise RowAbsent(
            f"table {table!r} has no row with this key as of run {query.run}", next_step="--as-of N asks for the state after run N"
        )
    print_json(row)


@click.command()
@click.argument("table", shell_complete=completion.outputs)
@lake_option
@topology_option
@click.option("--run", "number", type=int, default=None, help="Which run; default: the newest.")
@click.option("--limit", type=int, default=None, help="At most this many changes.")
@always_json
def changes(table: str, location: str, name: str | None, number: int | None, limit: int | None) -> None:
    """Print what a run changed in TABLE (an output), one JSON line per key: {"op", "before", "after"}."""
    from rejoin.lake.query.point_query import PointQuery

    topology = existing(location, name)
    query = PointQuery(topology.ledger, topology.refs)
    wanted = query.run if number is None else topology.ledger.run(number).number
    found = query.changes(table, wanted)
    print_lines(row for _, row in zip(range(limit), found, strict=False)) if limit is not None else print_lines(found)
