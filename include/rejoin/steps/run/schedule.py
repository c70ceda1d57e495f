"""A whole run in one process: each step as soon as the steps it comes after have ended, in parallel where the plan allows it."""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING

from rejoin.context.progress import SILENT, Progress, telling
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.plan.model.policy import RunOptions
from rejoin.plan.model.steps import ON_ROWS, Step, Verb, steps
from rejoin.steps.run.idle_steps import end_idle_steps
from rejoin.steps.run.lease import working
from rejoin.steps.run.topology import EVERYTHING, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARALLEL_STEPS = 3
"""Steps that run at once in one session: small steps wait for the driver more than for cores."""


def run_topology(
    topology: Topology,
    spark: Callable[[], "SparkSession"],
    who: str,
    progress: Progress = SILENT,
    options: RunOptions = EVERYTHING,
) -> Run:
    """One run from open to visible, then every sink. Returns the committed run.

    An error closes nothing: the run stays open without a lease, so the same owner can go on and any other takes over. Nothing is visible.

    Raises:
        SinksBehind: the run is committed, and some sinks did not get it.
    """
    from rejoin.lake.spark.expression_analysis import refuse_wrong_expressions
    from rejoin.steps.deliver.step import deliver_all

    spark = _once(spark)
    refuse_wrong_expressions(topology.plan, topology.ledger, spark)
    run = topology.open(who, options, progress)
    progress.planned({step.id: 1 for step in steps(run.plan)}, "steps")
    with working(topology.ledger, run):
        with telling(progress, Verb.CUT) as counts:
            counts.update(topology.cut(run, options.note).counts)
        _run_steps(topology, spark, run, progress)
        with telling(progress, Verb.PUBLISH) as counts:
            counts.update(topology.publish(run).counts)
    deliver_all(topology, progress)
    return topology.ledger.run(run.number)


def _once(spark: "Callable[[], SparkSession]") -> "Callable[[], SparkSession]":
    """The same session for every thread, started when the first one needs it."""
    lock, started = threading.Lock(), cache(spark)

    def get() -> "SparkSession":
        with lock:
            return started()

    return get


def _run_steps(topology: Topology, spark: "Callable[[], SparkSession]", run: Run, progress: Progress) -> None:
    """Every Spark step as soon as the steps it comes after have ended."""
    waiting = [s for s in steps(run.plan) if s.verb in ON_ROWS]
    ended = {str(Verb.CUT)}
    running: dict[Future[StepRecord], Step] = {}
    for record in end_idle_steps(topology, run, waiting):
        progress.began(record.step)
        progress.ended(record.step, record.counts, record.seconds)
        ended.add(record.step)
    waiting = [s for s in waiting if s.id not in ended]

    def one(step: Step) -> StepRecord:
        progress.began(step.id)
        done = topology.stage(spark, run, step, progress)
        progress.ended(step.id, done.counts, done.seconds)
        return done

    with ThreadPoolExecutor(PARALLEL_STEPS) as pool:
        while waiting or running:
            for step in [s for s in waiting if set(s.after) <= ended]:
                waiting.remove(step)
                running[pool.submit(one, step)] = step
            done = wait(running, return_when=FIRST_COMPLETED).done
            for future in done:
                step = running.pop(future)
                try:
                    future.result()
                except BaseException:
                    waiting.clear()
                    raise
                ended.add(step.id)
