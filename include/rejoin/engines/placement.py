"""Where a step runs: the one place that decides.

In this process where all that the step does is proven to come out there as by Spark; else by Spark. How many rows there
are does not matter: DuckDB spills (``engines.duckdb_connection.memory``). What is not for the process: expressions that are not portable, values that cannot be
computed, expectations about many rows. Nobody estimates: the process begins, and ``NeedsSpark`` says when it is not its work. What it wrote until then is garbage on a branch of its own.

Where Spark is asked for, small steps are Spark's. A step over many rows is one task of a Spark job if all that Spark has is one executor: the task does
there what this process would do, on all cores, in less than half of the CPU. Where there are more executors, Spark SQL works on all of them, which one task
could not. What a task hands back (``NeedsSpark``) is done by Spark SQL.
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
class InTask(Generic[T]):
    """Work that one task of a Spark job can do.

    Args:
        size: of the work; asked only if it matters.
        cores: of the only executor that the session has, None if it may have several; 0 stands for all of its machine.
        work: does it, on so many cores. Raises ``NeedsSpark`` if it is to be done by Spark SQL.
    """

    size: Callable[[], WorkSize]
    cores: "Callable[[SparkSession], int | None]"
    work: "Callable[[SparkSession, int], T]"


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
    choice: EngineChoice, plan: "Plan", spark: "Callable[[], SparkSession]", work: Callable[[Engine], T], in_task: InTask[T] | None = None
) -> tuple[T, dict[str, str]]:
    """Does some work where it belongs. Returns what it came to, and where and why.

    Args:
        choice: what is asked for.
        plan: whose expressions are run.
        spark: starts Spark, if it is needed.
        work: may be called twice.
        in_task: the same work, if it can be sent.

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
    elif in_task is None or not (size := in_task.size()).bulk:
        why = ASKED
    else:
        try:
            return _sent(in_task, spark(), size), {"engine": "task", "engine_why": f"{size} for the only executor"}
        except NeedsSpark as reason:
            why = str(reason)
    from rejoin.engines.spark_engine import SparkEngine

    return work(SparkEngine(spark())), {"engine": "spark", "engine_why": why}


def _sent(in_task: InTask[T], spark: "SparkSession", size: WorkSize) -> T:
    """Raises ``NeedsSpark`` as the task does, or where one task is the wrong way."""
    cores = in_task.cores(spark)
    if cores is None:
        raise NeedsSpark(f"{size} for several executors")
    if size.judged:
        raise NeedsSpark("expectations about many rows")
    return in_task.work(spark, cores)
