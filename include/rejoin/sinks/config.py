"""Where sinks are: addresses and secrets, from the lake's ``.toml`` file or the environment, never from a topology or a plan.

``[sinks.<name>]`` in the lake's file holds a sink's settings (``${NAME}`` is an environment variable). The environment variable
``REJOIN_SINK_<NAME>`` does the same without a file, and wins: an address (``host:9092``, ``postgresql://...``), or settings as a JSON object.
"""

import os
from collections.abc import Mapping

from rejoin.errors import SetupError
from rejoin.lake.named_settings import settings

ADDRESS = {"kafka": "bootstrap.servers", "opensearch": "url", "postgres": "url"}
"""The setting that every sink of a kind must have."""


def connection(stated: Mapping[str, Mapping[str, str]], name: str, kind: str) -> dict[str, str]:
    """The settings of a sink.

    Args:
        stated: the sections of the lake's file.
        name: the sink's name in the topology.
        kind: kafka, opensearch or postgres.

    Raises:
        SetupError: there are none, or the address is missing.
    """
    variable, address = f"REJOIN_SINK_{name.upper()}", ADDRESS[kind]
    found = dict(stated.get(name, {}))
    if given := os.environ.get(variable):
        found |= settings(given, variable, address)
    if address not in found:
        raise SetupError(
            f"nothing says where the {kind} sink {name!r} is",
            expected=f"{address} in [sinks.{name}] of the lake's .toml file, or the environment variable {variable}",
            next_step="write it there; the topology file has no addresses",
        )
    return found
