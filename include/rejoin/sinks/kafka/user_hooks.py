"""What a topology names as ``module:name``: partitioners and interceptors of the user's own."""

import importlib
from typing import Any

from rejoin.errors import SetupError


def load(name: str) -> Any:
    """What ``module:name`` names.

    Raises:
        SetupError: there is no such module or name, or importing it fails.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SetupError(
            f"{name!r}, which a topology names, cannot be imported: {type(error).__name__}",
            expected="module:name of something that can be imported here",
            next_step="install it, or put its folder into PYTHONPATH",
        ) from error
