"""What installed packages add to rejoin by entry points."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

from rejoin.errors import SetupError


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
