"""The transports that the path of a source can name: rejoin's own, and those of installed packages. Nothing is loaded but what is asked for."""

import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from rejoin.plan.extensions.installed import known_points, loaded, own_points
from rejoin.plan.pin import FILES

GROUP = "rejoin.transports"
"""The entry points by which a package adds transports."""
OWN = {
    "files": "rejoin.sources.transports.files:Files",
    "iceberg": "rejoin.sources.transports.iceberg_fields:of_table",
    "kafka": "rejoin.sources.transports.kafka.topic:KafkaTopic",
    "capture": "rejoin.sources.transports.captured:Captured",
}


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def name_of(path: str) -> str:
    """The name of the transport of a source with this path: its scheme, or files where no transport has that scheme."""
    scheme = _SCHEME.match(path)
    name = scheme[1].lower() if scheme else FILES
    return name if name in OWN or name in known() else FILES


@cache
def known() -> dict[str, EntryPoint]:
    """Every transport by its scheme; rejoin's own go before others of the same name."""
    return known_points(GROUP, OWN)


def transport(name: str) -> Callable[[Any, Any], Any]:
    """What makes, of a table and a ``SourceAccess``, its transport.

    Raises:
        SetupError: no package that is installed here brings it.
    """
    found: Callable[[Any, Any], Any] = loaded(own_points(GROUP, OWN) if name in OWN else known(), name, GROUP, "transport")
    return found
