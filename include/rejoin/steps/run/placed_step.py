"""One step of an open run, done where it belongs (``engines.placement``)."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rejoin.context.outcome import Outcome
from rejoin.context.progress import Progress
from rejoin.engines.placement import InTask, chosen, placed
from rejoin.engines.relation import Engine
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.spark.session import JobCounter, only_executor
from rejoin.plan.model.step_results import Result
from rejoin.plan.model.steps import Step
from rejoin.steps.run.attempt import Attempt
from rejoin.steps.run.spark_task import in_task
from rejoin.steps.run.step_input import AttemptStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTED_ALREADY = 0.2
"""Seconds within which a step gets a session that somebody else has started."""


@dataclass
class StepAttempts:
    """The attempts at one step.

    ``attempt`` is the id of the last one, ``jobs`` the Spark jobs it took (None: it cannot be told), ``waited`` the seconds until Spark was there: no
    step's work.

    Args:
        start: what each attempt starts from.
        refs: the branches of the topology's tables.
        spark: starts Spark; called only if the step has work for it.
        progress: is told of Spark's tasks.
    """

    start: AttemptStart
    refs: Refs
    spark: "Callable[[], SparkSession]"
    progress: Progress
    attempt: str = ""
    jobs: int | None = 0
    waited: float = 0.0

    def done(self, step: Step) -> Outcome[Result]:
        """Does a step that has something to do; registers nothing."""
        first = Attempt(self.start, self.refs)
        choice = chosen(self.start.config.engine, cluster=self.start.config.cluster)
        sent = InTask(lambda: first.size(step), only_executor, lambda spark, cores: self._sent(spark, step, cores))
        outcome, where = placed(choice, first.plan, self._session, lambda engine: self._tried(engine, step), sent)
        starts = {"spark_start": round(self.waited, 3)} if self.waited > STARTED_ALREADY else {}
        return replace(outcome, detail={**outcome.detail, **where, **starts})

    def _tried(self, engine: Engine, step: Step) -> Outcome[Result]:
        attempt = Attempt(self.start, self.refs)  # what an earlier one wrote is garbage
        self.attempt = attempt.id
        if engine.in_process:
            return attempt.execute(engine, step)
        with self._counted(engine.by_spark(step.id).spark, step):
            return attempt.execute(engine, step)

    def _sent(self, spark: "SparkSession", step: Step, cores: int) -> Outcome[Result]:
        with self._counted(spark, step):
            self.attempt, outcome = in_task(spark, self.start, step, cores)
        return outcome

    @contextmanager
    def _counted(self, spark: "SparkSession", step: Step) -> Iterator[None]:
        """Counts the Spark jobs that are started within, and tells of their tasks."""
        counter = JobCounter(spark, f"{step.id}-{uuid.uuid4().hex[:10]}")
        try:
            with counter:
                self.progress.tasks(step.id, counter.tasks)
                yield
        finally:
            self.jobs = None if counter.jobs is None or self.jobs is None else self.jobs + counter.jobs

    def _session(self) -> "SparkSession":
        began = time.monotonic()
        made = self.spark()
        self.waited += time.monotonic() - began
        return made
