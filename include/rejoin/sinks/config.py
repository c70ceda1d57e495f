"""Where sinks are: addresses and secrets, from the lake's ``.toml`` file or the environment, never from a topology or a plan.

``[sinks.<name>]`` in the lake's file holds a sink's settings (``${NAME}`` is an environment variable). The environment variable
``REJOIN_SINK_<NAME>`` does the same without a file, and wins: an address (``host:9092``, ``postgresql://...``), or settings as a JSON object.
"""

import os
from collections.abc import Mapping

from rejoin.errors import SetupError
from rejoin.lake.named_settings import settings
from rejoin.plan.model.sinks import Sink


def connection(stated: Mapping[str, Mapping[str, str]], sink: Sink) -> dict[str, str]:
    """The settings of a sink.

    Args:
        stated: the sections of the lake's file.
        sink: as the plan has it.

    Raises:
        SetupError: there are none, or the address is missing.
    """
    variable = f"REJOIN_SINK_{sink.name.upper()}"
    found = dict(stated.get(sink.name, {}))
    if given := os.environ.get(variable):
        found |= settings(given, variable, sink.address)
    if sink.address not in found:
        raise SetupError(
            f"nothing says where the {sink.kind} sink {sink.name!r} is",
            expected=f"{sink.address} in [sinks.{sink.name}] of the lake's .toml file, or the environment variable {variable}",
            next_step="write it there; the topology file has no addresses",
        )
    return found
