"""The dialects of change events that a topology can name: rejoin's own, and those of installed packages. Nothing is loaded but what is asked for."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

from rejoin.plan.extensions.installed import known_points, loaded, own_points

GROUP = "rejoin.dialects"
"""The entry points by which a package adds dialects."""
OWN = {
    "debezium": "rejoin.sources.shapes.debezium.versions:decoder",
    "maxwell": "rejoin.sources.shapes.maxwell:Maxwell",
    "canal": "rejoin.sources.shapes.canal:Canal",
    "goldengate": "rejoin.sources.shapes.golden_gate:GoldenGate",
}


def known() -> dict[str, EntryPoint]:
    """Every dialect by its name; rejoin's own go before others of the same name."""
    return known_points(GROUP, OWN)


def dialect(name: str) -> Callable[[Any], Any]:
    """What makes, of a table, the decoder of one file of it (``sources.decode.proven_lines.Careful``).

    Raises:
        SetupError: no package that is installed here brings it.
    """
    found: Callable[[Any], Any] = loaded(own_points(GROUP, OWN) if name in OWN else known(), name, GROUP, "dialect")
    return found
