"""Who runs the statements of the stages: this process (``columnar``) or Spark (``spark``). Both give the same rows. ``placement`` decides."""

from enum import StrEnum


class Choice(StrEnum):
    """What a lake's file, a command or ``REJOIN_ENGINE`` may ask for."""

    AUTO = "auto"  # this process where it can, else Spark
    LOCAL = "local"  # this process, or the run stops
    SPARK = "spark"  # Spark, always
