"""One step of an open run, done where it belongs (``engines.placement``)."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rejoin.context.outcome import Outcome
from rejoin.context.progress import Progress
from rejoin.engines.placement import InTasks, chosen, placed
from rejoin.engines.relation import Engine
from rejoin.engines.task_engine import TaskEngine
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.spark.session import JobCounter, executors
from rejoin.lake.write.exchange import Exchange
from rejoin.plan.model.step_results import Result
from rejoin.plan.model.steps import Step
from rejoin.steps.run.attempt import Attempt
from rejoin.steps.run.spark_task import SparkTasks
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
        sent = InTasks(lambda: first.size(step), lambda spark: self._sent(spark, step))
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

    def _sent(self, spark: "SparkSession", step: Step) -> tuple[Outcome[Result], int]:
        """The step in tasks, and how many of these there were at one time, about."""
        found = executors(spark)
        tasks = SparkTasks(spark, self.start, step, found.cores, found.at_once)
        with self._counted(spark, step):
            if found.at_once == 1:
                self.attempt, outcome = tasks.whole()
            else:
                outcome = self._spread(tasks, step)
        return outcome, found.at_once

    def _spread(self, tasks: SparkTasks, step: Step) -> Outcome[Result]:
        attempt, exchange = Attempt(self.start, self.refs), Exchange.of(self.start.config, self.start.run.topology)
        self.attempt = attempt.id
        try:
            return attempt.execute(TaskEngine(attempt.plan, tasks, exchange), step)
        finally:
            exchange.clear()

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
