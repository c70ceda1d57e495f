"""Where a step runs: the one place that decides.

In this process where all that the step does is proven to come out there as by Spark; else by Spark. How many rows there
are does not matter: DuckDB spills (``lake.duck.memory``). What is not for the process: expressions that are not portable, values that cannot be
computed, expectations about many rows. Nobody estimates: the process begins, and ``NeedsSpark`` says when it is not its work. What it wrote until then is garbage on a branch of its own.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from rejoin.engines.columnar import ColumnarEngine
from rejoin.engines.engine import Engine, NeedsSpark
from rejoin.errors import EngineRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.plan.model import Plan

T = TypeVar("T")


class Choice(StrEnum):
    """What somebody asks for."""

    AUTO = "auto"  # this process where it can, else Spark
    LOCAL = "local"  # this process, or the run stops
    SPARK = "spark"  # Spark, always


def chosen(stated: str, *, cluster: bool) -> Choice:
    """What holds for a lake: what its file or the command states, else the environment's ``REJOIN_ENGINE``; where nothing is said, Spark if a
    Spark is named.

    Args:
        stated: by the lake's file or the command; ``auto`` where nothing is.
        cluster: the lake's file names a master of Spark on other machines.
    """
    choice = Choice(stated if stated != Choice.AUTO else os.environ.get("REJOIN_ENGINE") or stated)
    named = cluster or "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    return Choice.SPARK if choice is Choice.AUTO and named else choice


def placed(choice: Choice, plan: "Plan", spark: "Callable[[], SparkSession]", work: Callable[[Engine], T]) -> tuple[T, dict[str, str]]:
    """Does some work where it belongs. Returns what it came to, and where and why.

    Args:
        choice: what is asked for.
        plan: whose expressions are run.
        spark: starts Spark, if it is needed.
        work: may be called twice.

    Raises:
        EngineRefused: it is Spark's work, and Spark was not to be used.
    """
    if choice is not Choice.SPARK:
        try:
            return work(ColumnarEngine(plan)), {"engine": "local"}
        except NeedsSpark as reason:
            why = str(reason)
            if choice is Choice.LOCAL:
                raise EngineRefused(
                    f"this step is not for one process: {why}; nothing was committed",
                    expected="portable expressions, and no expectations about many rows, with engine 'local'",
                    next_step="run with --engine auto or --engine spark (needs Java and the packages of rejoin[spark])",
                ) from reason
    else:
        why = "asked for"
    from rejoin.engines.spark import SparkEngine

    return work(SparkEngine(spark())), {"engine": "spark", "engine_why": why}
