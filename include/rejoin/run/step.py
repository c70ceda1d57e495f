"""One step of an open run, done where it belongs (``engines.placement``)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rejoin.engines.columnar import ColumnarEngine
from rejoin.engines.engine import Engine, NeedsSpark
from rejoin.engines.placement import chosen, placed
from rejoin.lake.config import LakeConfig
from rejoin.lake.session import JobCounter
from rejoin.plan.results import Result
from rejoin.plan.steps import Step
from rejoin.progress import Progress
from rejoin.run.attempt import Attempt
from rejoin.run.work import Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTED_ALREADY = 0.2
"""Seconds within which a step gets a session that somebody else has started."""


@dataclass
class Doing:
    """The attempts at one step.

    ``attempt`` is the last one, ``jobs`` the Spark jobs it took (None: it cannot be told), ``waited`` the seconds until Spark was there: no step's work.

    Args:
        attempts: makes a new attempt.
        config: the lake.
        spark: starts Spark; called only if the step has work for it.
        progress: is told of Spark's tasks.
    """

    attempts: Callable[[], Attempt]
    config: LakeConfig
    spark: "Callable[[], SparkSession]"
    progress: Progress
    attempt: Attempt = field(init=False)
    jobs: int | None = 0
    waited: float = 0.0

    def done(self, step: Step) -> Outcome[Result]:
        """Does the step; registers nothing."""
        self.attempt = self.attempts()
        if (idle := self.attempt.nothing_to_do(step)) is not None:
            return idle
        choice = chosen(self.config.engine, cluster=self.config.cluster)
        outcome, where = placed(choice, self.attempt.plan, self._session, lambda engine: self._tried(engine, step))
        starts = {"spark_start": round(self.waited, 3)} if self.waited > STARTED_ALREADY else {}
        return replace(outcome, detail={**outcome.detail, **where, **starts})

    def _tried(self, engine: Engine, step: Step) -> Outcome[Result]:
        if isinstance(engine, ColumnarEngine):
            try:
                return self.attempt.execute(engine, step)
            except NeedsSpark:
                self.attempt = self.attempts()  # what this one wrote is garbage
                raise
        with JobCounter(engine.by_spark(step.id).spark, f"{step.id}-{self.attempt.id}") as counter:
            self.progress.tasks(step.id, counter.tasks)
            outcome = self.attempt.execute(engine, step)
        self.jobs = counter.jobs
        return outcome

    def _session(self) -> "SparkSession":
        began = time.monotonic()
        made = self.spark()
        self.waited += time.monotonic() - began
        return made
