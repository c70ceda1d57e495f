"""What the commands share: options, where they print, and how they open a topology."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from rejoin.cli import completion
from rejoin.context.progress import SILENT, START, Progress, telling
from rejoin.engines.choice import EngineChoice
from rejoin.errors import RunUnknown, UnknownTable
from rejoin.failures import extras
from rejoin.plan.model.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.lake.config import LakeConfig
    from rejoin.steps.run.topology import Topology

# Without markup and emoji: "[a-z]" and ":x:" in names, keys and expectations are texts. A file or pipe has no width of its own.
out = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)

_PATH = click.Path(readable=False)  # shells complete it; what is wrong with a path is said by whoever opens it

lake_option = click.option(
    "--lake",
    "location",
    envvar="REJOIN_LAKE",
    type=_PATH,
    default="lake",
    show_default=True,
    help="Where the tables live: a directory, or a .toml file that names a catalog, a warehouse and a ledger. [env REJOIN_LAKE]",
)
root_option = click.option(
    "--root",
    envvar="REJOIN_ROOT",
    type=_PATH,
    default=".",
    show_default=True,
    help="Where relative source paths start. [env REJOIN_ROOT]",
)
topology_option = click.option(
    "--topology", "name", default=None, shell_complete=completion.topologies, help="Which topology, if the lake holds several."
)
table_argument = click.argument("table", shell_complete=completion.tables)
topology_argument = click.argument("topology_file", type=_PATH)
optional_topology_argument = click.argument("topology_file", required=False, type=_PATH)
engine_option = click.option(
    "--engine",
    type=click.Choice([str(c) for c in EngineChoice]),
    default=None,
    help="Which engine computes: this process (local), Spark (spark), or this process where expressions are portable, else Spark "
    "(auto, the default unless a cluster or Spark Connect is named).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
always_json = click.option(
    "--json", is_flag=True, expose_value=False, help="Accepted as in other commands; this command always prints JSON."
)


def loaded(file: str) -> Plan:
    """The plan of a topology file. What the file prints goes to standard error: standard output is the command's own."""
    from rejoin.plan.check.topology_file import load

    with redirect_stdout(sys.stderr):
        return load(file)


def opened(plan: Plan, location: str, root: str, engine: str | None = None) -> "Topology":
    from rejoin.lake.config import lake_config
    from rejoin.steps.run.topology import Topology

    return Topology(plan, _asked(lake_config(location), engine), str(Path(root).resolve()))


def _asked(config: "LakeConfig", engine: str | None) -> "LakeConfig":
    return replace(config, engine=EngineChoice(engine) if engine else config.engine)


def existing(location: str, name: str | None, engine: str | None = None) -> "Topology":
    """The named (or only) topology of a lake, with the plan of its newest run. ``engine``: what ``engine_option`` says."""
    from rejoin.lake.ledger.ledger import Ledger
    from rejoin.steps.run.topology import Topology

    config, known = _lake(location)
    if name is None and len(known) == 1:
        name = known[0]
    newest = Ledger(config.ledger, name).newest() if name in known else None
    if newest is None:
        what = f"the lake at {location} has " + (f"no topology {name!r}" if name else f"{len(known)} topologies")
        raise UnknownTable(what, expected=f"--topology with one of: {', '.join(known) or '(none: nothing was run)'}")
    return Topology(newest.plan, _asked(config, engine), ".")


def existing_if_any(location: str, name: str | None) -> "Topology | None":
    """The same; None if nothing was run in the lake yet, which is no mistake of who looks after it."""
    return existing(location, name) if _lake(location)[1] else None


def with_open_run(location: str) -> str | None:
    """The only topology of a lake that has an open run; None: several have.

    Raises:
        RunUnknown: none has.
    """
    from rejoin.lake.ledger.ledger import Ledger

    config, known = _lake(location)
    found = [name for name in known if Ledger(config.ledger, name).open_run() is not None]
    if not found:
        raise RunUnknown(f"no topology of the lake at {location} has an open run", next_step="nothing to do")
    return found[0] if len(found) == 1 else None


def _lake(location: str) -> "tuple[LakeConfig, list[str]]":
    """A lake that is there, and the topologies that were run in it."""
    from rejoin.lake.config import is_there, lake_config
    from rejoin.lake.ledger.records import topologies

    if not is_there(location):
        raise RunUnknown(f"there is no lake at {location}", next_step="pass --lake, or set REJOIN_LAKE")
    config = lake_config(location)
    return config, topologies(config.ledger)


def opened_or_existing(topology_file: str | None, location: str, name: str | None, engine: str | None = None) -> "Topology":
    """The topology of a file, if one is given; else one that the lake knows. ``engine``: what ``engine_option`` says."""
    return existing(location, name, engine) if topology_file is None else opened(loaded(topology_file), location, ".", engine)


def session_of(config: "LakeConfig", progress: Progress = SILENT) -> "Callable[[], SparkSession]":
    from rejoin.lake.spark.session import session

    name = click.get_current_context().info_name

    def start() -> "SparkSession":
        extras.require(f"rejoin {name}", "pyspark")
        with telling(progress, START):
            return session(config)

    return start


def where(topology: "Topology", location: str) -> str:
    """What a command that is typed next needs to find the same lake and topology; empty if it finds them by itself."""
    from rejoin.lake.ledger.records import topologies

    lake = [] if location == os.environ.get("REJOIN_LAKE", "lake") else ["--lake", location]
    name = topology.plan.topology
    return shlex.join([*lake, *(["--topology", name] if topologies(topology.config.ledger) != [name] else [])])
