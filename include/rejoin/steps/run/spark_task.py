"""Tasks of a Spark job in which DuckDB does what it would do in this process: a whole step where there is one executor, ranges of its rows where there are more.

The task of a whole step makes the attempt anew and writes to its branches; those of ranges write files and send back what these hold. Nobody registers
anything but this process. So a task that is lost, tried again or run twice leaves garbage that no reader sees. Uses no RDD and no SparkContext, so it works
on Spark Connect. The executors must be able to import rejoin, and to reach the lake's files; for whole steps also the catalog.
"""

import fcntl
import os
import pickle
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rejoin import crash, limits
from rejoin.context.outcome import Outcome
from rejoin.engines.deferred_relation import shrunk, sized
from rejoin.engines.duckdb_connection import MEMORY_SETTING
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import NeedsSpark
from rejoin.engines.task_engine import unpacked
from rejoin.errors import EngineFailed, RejoinError, StoreDenied, StoreDown, StoreMissing
from rejoin.failures.engine_errors import TRACE, kind_of, named, tracing
from rejoin.lake.iceberg.refs import Refs
from rejoin.plan.model.step_results import Result
from rejoin.plan.model.steps import Step
from rejoin.plan.sql import suspects
from rejoin.sources.access import SourceAccess
from rejoin.steps.run.attempt import Attempt
from rejoin.steps.run.step_input import AttemptStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done: TypeAlias = tuple[str, Outcome[Result]]
"""The attempt's id, and what it came to."""
WAITS = 3.0
"""Seconds after a task in which a worker that got no other gives memory back. Steps of a run follow sooner, and it takes 20 ms."""
_WORKING = Lock()
"""Held by the task that this worker does."""
_WAITING: list[Timer] = []
"""What gives memory back later: at most one."""
_TOLD = (MEMORY_SETTING, TRACE, *crash.SETTINGS)
"""Variables of the driver's environment that hold for its tasks, too."""


@dataclass(frozen=True)
class TaskInput:
    """What a task is sent.

    Args:
        start: what the attempt starts from.
        step: the step that it is a part of.
        work: what is asked of it (``task_engine.packed``); None: the whole step.
        cores: threads of DuckDB; 0: one for each core of the machine.
        limits: those in force.
        environment: variables to set; what is not there is unset.
    """

    start: AttemptStart
    step: Step
    work: bytes | None
    cores: int
    limits: limits.Limits
    environment: dict[str, str]


@dataclass(frozen=True)
class SparkTasks:
    """Tasks that work for one step.

    Args:
        spark: the session.
        start: what the attempt starts from.
        step: the step.
        cores: of each executor; 0 stands for all of its machine.
        at_once: how many tasks there are at one time, about.
    """

    spark: "SparkSession"
    start: AttemptStart
    step: Step
    cores: int
    at_once: int = 1

    def whole(self) -> Done:
        """Does the step in a job of one task.

        Raises:
            NeedsSpark: Spark SQL has to do the step: as in the process, or since DuckDB gave up or the task was lost for good.
            RejoinError: as in the process.
        """
        done: Done
        ((_, done),) = self._answered(None, 1)
        return done

    def each(self, work: bytes, count: int) -> list[Any]:
        """What some work comes to for each number below ``count``. Raises as ``whole`` does."""
        return [came for _, came in sorted(self._answered(work, count), key=itemgetter(0))]

    def _answered(self, work: bytes | None, count: int) -> list[tuple[int, Any]]:
        config = replace(self.start.config, ledger="", sinks={}, spark={})  # what a task does not need may hold secrets
        bare = replace(self.start, config=config)
        if work is not None:  # which brings what it reads and writes with
            bare = replace(bare, config=replace(config, uri="", properties={}, sources={}), access=SourceAccess(self.start.access.root))
        told = {name: os.environ[name] for name in _TOLD if name in os.environ}
        parcel = pickle.dumps(TaskInput(bare, self.step, work, self.cores, limits.limits(), told))
        try:
            rows = self.spark.range(0, count, 1, count).mapInArrow(partial(_answers, parcel), "id BIGINT, came BINARY").collect()
        except RejoinError:
            raise
        except Exception as error:
            # Where Spark tries no task again (its master is local), and where it has given up. What was killed for its memory would be again.
            kind = kind_of(error)
            raise NeedsSpark(f"its task was lost ({kind.name if kind else type(error).__name__})") from error
        answers = [(row.id, pickle.loads(bytes(row.came))) for row in rows]
        for _, came in answers:
            if isinstance(came, BaseException):
                raise came
        return answers


def _answers(parcel: bytes, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker. Errors are answers: what a task raises Spark would try again, and print."""
    for batch in rows:
        for number in batch["id"].to_pylist():
            came = pickle.dumps(_came_to(pickle.loads(parcel), number))
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int64()), pa.array([came], pa.binary())], ["id", "came"])


def _came_to(parcel: TaskInput, number: int) -> object:
    limits.in_force = parcel.limits  # the worker may have done a task of another process before
    for name in _TOLD:
        os.environ.pop(name, None)
    os.environ.update(parcel.environment)
    start, step = parcel.start, parcel.step
    try:
        with _alone(), _working(parcel.cores):
            if parcel.work is not None:
                return unpacked(parcel.work)(number)
            attempt = Attempt(start, Refs(start.config, start.run.topology))
            return attempt.id, attempt.execute(DuckdbEngine(attempt.plan), step)
    except NeedsSpark as reason:
        return reason
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        if tracing():
            traceback.print_exception(error)
        found = named(error, start.called(step), suspects.of_step(start.run.plan, step.verb, step.target))
        if isinstance(found, StoreDenied | StoreDown | StoreMissing):
            return found  # Spark would ask the same store
        if isinstance(error, MemoryError | OSError) and not isinstance(found, EngineFailed):
            return NeedsSpark(f"its task gave up: {type(error).__name__}")
        kind = kind_of(error)
        return NeedsSpark(f"its task gave up: {kind.engine} says {kind.name}") if kind and isinstance(found, EngineFailed) else found


@contextmanager
def _alone() -> Iterator[None]:
    """One task at a time on an executor, whoever sent it: each takes all cores, and the memory that is meant for one."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]  # Spark makes one for each executor
    own = os.open(Path(folder, "rejoin-task"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(own, fcntl.LOCK_EX)  # the system frees it when the process ends, however it does
        yield
    finally:
        os.close(own)


@contextmanager
def _working(cores: int) -> Iterator[None]:
    """This worker has so many cores and the memory that is stated. It gives the memory back later, if no other task comes."""
    try:
        with _WORKING:
            while _WAITING:
                _WAITING.pop().cancel()
            sized(cores)
            yield
    finally:
        later = Timer(WAITS, _give_back)
        later.daemon = True
        _WAITING.append(later)
        later.start()


def _give_back() -> None:
    """Gives memory back, unless a task has just begun."""
    if _WORKING.acquire(blocking=False):
        try:
            shrunk()
        finally:
            _WORKING.release()
