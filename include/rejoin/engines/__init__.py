"""Who runs the statements of the stages: this process (``columnar``) or Spark (``spark``). Both give the same rows. ``placement`` decides."""

import os
from enum import StrEnum

from rejoin.errors import SetupError

VARIABLE = "REJOIN_ENGINE"


class Choice(StrEnum):
    """What a lake's file, a command or ``VARIABLE`` may ask for."""

    AUTO = "auto"  # this process where it can, else Spark
    LOCAL = "local"  # this process, or the run stops
    SPARK = "spark"  # Spark, always


def of_environment() -> Choice | None:
    """What the environment asks for; None if nothing.

    Raises:
        SetupError: it names no engine.
    """
    name = os.environ.get(VARIABLE)
    try:
        return Choice(name) if name else None
    except ValueError:
        raise SetupError(f"{VARIABLE}: unknown engine {name!r}", expected=" | ".join(Choice)) from None
