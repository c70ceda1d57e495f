"""The formats of files that installed packages bring. Nothing is loaded but what is asked for."""

import json
from importlib.metadata import EntryPoint
from typing import Any

from rejoin.plan.extensions.installed import known_points, loaded
from rejoin.plan.model.sources import InstalledFormat

GROUP = "rejoin.formats"
"""The entry points by which a package adds formats."""


def known() -> dict[str, EntryPoint]:
    """Every such format by its name."""
    return known_points(GROUP, {})


def row_format(written: InstalledFormat) -> Any:
    """What reads files of this format (``sources.formats.row_format.RowFormat``).

    Raises:
        SetupError: no package that is installed here brings it.
        TypeError, ValueError: the format refuses its options.
    """
    return loaded(known(), written.kind, GROUP, "format")(**json.loads(written.options))
