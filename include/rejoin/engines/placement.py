"""Where a step runs: the one place that decides.

In this process where all that the step does is proven to come out there as by Spark; else by Spark. How many rows there
are does not matter: DuckDB spills (``engines.duckdb_connection.memory``). What is not for the process: expressions that are not portable, values that cannot be
computed, expectations about many rows. Nobody estimates: the process begins, and ``NeedsSpark`` says when it is not its work. What it wrote until then is garbage on a branch of its own.

Where Spark is asked for, small steps are Spark's. A step over many rows is the work of tasks: of one, if all that Spark has is one executor, which does
there what this process would do, on all cores; else of a task for each range of keys (``engines.task_engine``). Both take less than half of the CPU of Spark SQL.
What a task hands back (``NeedsSpark``) is done by Spark SQL.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rejoin.engines.choice import ASKED, EngineChoice, of_environment
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import Engine, NeedsSpark
from rejoin.errors import EngineRefused
from rejoin.limits import limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.plan.model.plan import Plan

T = TypeVar("T")


@dataclass(frozen=True)
class WorkSize:
    """How much a piece of work is: rows that it looks at, about, bytes of input, and whether its rows are judged one by one."""

    rows: int
    input: int = 0
    judged: bool = False

    @property
    def bulk(self) -> bool:
        """Whether a task does it in less time than Spark SQL."""
        return self.rows > limits().task_rows or self.input > limits().task_bytes

    def __str__(self) -> str:
        return f"{self.input:,} bytes" if self.rows <= limits().task_rows else f"{self.rows:,} rows"


@dataclass(frozen=True)
class InTasks(Generic[T]):
    """Work that tasks of a Spark job can do.

    Args:
        size: of the work; asked only if it matters.
        work: does it; also says how many tasks there were at one time, about. Raises ``NeedsSpark`` if it is to be done by Spark SQL.
    """

    size: Callable[[], WorkSize]
    work: "Callable[[SparkSession], tuple[T, int]]"


def chosen(stated: EngineChoice | None, *, cluster: bool) -> EngineChoice:
    """What holds for a lake: what the command or its file states, else the environment's ``REJOIN_ENGINE``. ``AUTO``, as where nothing is said,
    is Spark if a Spark is named.

    Args:
        stated: by the command, else by the lake's file; None where nothing is.
        cluster: the lake's file names a master of Spark on other machines.

    Raises:
        SetupError: the environment names no engine.
    """
    choice = stated or of_environment() or EngineChoice.AUTO
    named = cluster or "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    return EngineChoice.SPARK if choice is EngineChoice.AUTO and named else choice


def placed(
    choice: EngineChoice, plan: "Plan", spark: "Callable[[], SparkSession]", work: Callable[[Engine], T], in_tasks: InTasks[T] | None = None
) -> tuple[T, dict[str, str]]:
    """Does some work where it belongs. Returns what it came to, and where and why.

    Args:
        choice: what is asked for.
        plan: whose expressions are run.
        spark: starts Spark, if it is needed.
        work: may be called twice.
        in_tasks: the same work, if it can be sent.

    Raises:
        EngineRefused: it is Spark's work, and Spark was not to be used.
    """
    if choice is not EngineChoice.SPARK:
        try:
            return work(DuckdbEngine(plan)), {"engine": "local"}
        except NeedsSpark as reason:
            why = str(reason)
            if choice is EngineChoice.LOCAL:
                raise EngineRefused(
                    f"this step is not for one process: {why}; nothing was committed",
                    expected="portable expressions, and no expectations about many rows, with engine 'local'",
                    next_step="run with --engine auto or --engine spark (needs Java and the packages of rejoin[spark])",
                ) from reason
    else:
        try:
            return _sent(in_tasks, spark)
        except NeedsSpark as reason:
            why = str(reason)
    from rejoin.engines.spark.engine import SparkEngine

    return work(SparkEngine(spark())), {"engine": "spark", "engine_why": why}


def _sent(in_tasks: InTasks[T] | None, spark: "Callable[[], SparkSession]") -> tuple[T, dict[str, str]]:
    """Raises ``NeedsSpark`` as tasks do, or where they are the wrong way."""
    if in_tasks is None or not (size := in_tasks.size()).bulk:
        raise NeedsSpark(ASKED)
    if size.judged:
        raise NeedsSpark("expectations about many rows")
    done, at_once = in_tasks.work(spark())
    return done, {"engine": "task", "engine_why": f"{size} for {'the only executor' if at_once == 1 else f'{at_once} tasks at once'}"}
