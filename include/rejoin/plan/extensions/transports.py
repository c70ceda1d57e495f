"""The transports that the path of a source can name: rejoin's own, and those of installed packages. Nothing is loaded but what is asked for."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rejoin.plan.extensions.installed import loaded

GROUP = "rejoin.transports"
"""The entry points by which a package adds transports."""
OWN = {"files": "rejoin.sources.transports.files:Files"}


@cache
def known() -> dict[str, EntryPoint]:
    """Every transport by its scheme; rejoin's own go before others of the same name."""
    return {point.name: point for point in entry_points(group=GROUP)} | _own()


def _own() -> dict[str, EntryPoint]:
    return {name: EntryPoint(name, value, GROUP) for name, value in OWN.items()}


def is_known(scheme: str) -> bool:
    """Whether a path of this scheme has a transport of its own."""
    return scheme in OWN or scheme in known()


def transport(name: str) -> Callable[[Any, Any], Any]:
    """What makes, of a table and a ``SourceAccess``, its transport.

    Raises:
        SetupError: no package that is installed here brings it.
    """
    found: Callable[[Any, Any], Any] = loaded(_own() if name in OWN else known(), name, GROUP, "transport")
    return found
