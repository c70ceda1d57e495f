"""What installed packages add to rejoin by entry points."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rejoin.errors import SetupError


def own_points(group: str, own: Mapping[str, str]) -> dict[str, EntryPoint]:
    """Those that rejoin itself has, by their names. They are not looked for among what is installed, which takes 20 ms.

    Args:
        group: of entry points.
        own: name -> what it names.
    """
    return {name: EntryPoint(name, value, group) for name, value in own.items()}


def known_points(group: str, own: Mapping[str, str]) -> dict[str, EntryPoint]:
    """The same with those of installed packages; rejoin's own go before others of the same name."""
    return {point.name: point for point in entry_points(group=group)} | own_points(group, own)


def loaded(known: Mapping[str, EntryPoint], name: str, group: str, what: str) -> Any:
    """What an entry point names.

    Raises:
        SetupError: there is none of that name: a plan was made where the package is installed, and is used where it is not.
    """
    if name not in known:
        raise SetupError(
            f"the {what} {name!r} is not installed: no package here has an entry point {name!r} in the group {group!r}",
            expected="the package that the topology was compiled with, wherever its plan is used",
            next_step="install that package for this Python, and for the Python of Spark's workers where Spark reads",
        )
    return known[name].load()
