"""Who runs the statements: this process (``duckdb_engine``) or Spark (``task_engine``, ``spark``). Both give the same rows. ``placement`` decides."""

import os
from enum import StrEnum

from rejoin.errors import SetupError

VARIABLE = "REJOIN_ENGINE"
ASKED = "asked for"
"""Why Spark does something, if it was asked for."""


class EngineChoice(StrEnum):
    """What a lake's file, a command or ``VARIABLE`` may ask for."""

    AUTO = "auto"  # this process where it can, else Spark
    LOCAL = "local"  # this process, or the run stops
    SPARK = "spark"  # Spark, always


def named(name: object, where: str) -> EngineChoice:
    """The choice of that name. ``where``: what states it.

    Raises:
        SetupError: there is no such engine.
    """
    try:
        return EngineChoice(str(name))
    except ValueError:
        raise SetupError(f"{where}: unknown engine {name!r}", expected=" | ".join(EngineChoice)) from None


def of_environment() -> EngineChoice | None:
    """What the environment asks for; None if nothing. Raises as ``named``."""
    name = os.environ.get(VARIABLE)
    return named(name, VARIABLE) if name else None
