"""The Spark session: all settings in one place. ``SPARK_REMOTE`` (Spark Connect) is honoured; otherwise a session in this process."""

import atexit
import logging
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self, cast

from rejoin.errors import SetupError
from rejoin.failures.engine_errors import tracing
from rejoin.lake.config import LakeConfig
from rejoin.lake.spark import jvm, setup_check
from rejoin.lake.spark.setup_check import java_problem, spark_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

RUNTIME = {
    "spark.sql.session.timeZone": "UTC",
    # Errors instead of silent nulls, and one text form of decimals (the value hash depends on it).
    "spark.sql.ansi.enabled": "true",
    # Else an expression that is selected twice is looked at for every row, also where it stands behind AND: b <> 0 AND a / b > 1 raises an error.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Frames made from rows of the driver are RDDs. As a local relation their rows are part of the plan, and every rule of every analysis walks
    # through all of them: half of the time of a run of 100,000 changes.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # An RDD's size is unknown to Spark, and a join's is the product of its sides'. Both would be taken for large, and single partitions shuffled.
    "spark.sql.defaultSizeInBytes": "1",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # A partition is a task that sorts and compresses: with the default of 64 MB a million rows were the work of one core.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # A broadcast is a job of its own: small frames have one partition and need none, and large joins say so where they want it.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
}
"""Settings that results and plans depend on; set on every session, a Spark Connect one included."""

STATIC = {
    # Else every operation on a column asks the JVM some eight times where in Python it stands, for messages about code that is not the user's.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # What Spark's pages and event logs do not show of settings: by default not ``credential``, the name of a REST catalog's secret.
    "spark.redaction.regex": "(?i)secret|password|token|credential|authorization|connection-string|access[.-]?key|account[.-]?key",
}
"""Settings that cannot be changed once a session has started, whoever starts its JVM."""

_SETTLED = ("CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG")
"""What Spark says of a lake's setting that counts when its JVM starts, and has no meaning for a further session."""

LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For Spark on this machine. Executors on others would look for the driver there, and not find it."""

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:, *\d+)?\])?")
"""The master that is this machine: cores, and how often a task is tried."""
_EXECUTORS = ("spark.executor.instances", "spark.executor.cores", "spark.dynamicAllocation.enabled")

_first: "list[SparkSession]" = []
"""This process's first session: Spark's own notion of an active one is per thread."""
_starting = Lock()


def static_settings(config: LakeConfig) -> dict[str, str]:
    """Settings that a Spark process must be started with; a Spark Connect server for this lake is started with the same ones."""
    cores = os.cpu_count() or 2
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "rejoin",
        "spark.jars": ",".join(spark_jars(s3=config.s3)),
        "spark.driver.memory": "4g",
        **({} if config.cluster else LOOPBACK),
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),  # unused; the default would be a folder in the working directory
        "spark.ui.showConsoleProgress": "false",
        # Every run compiles the same few hundred classes; the default of 100 would forget them between two runs.
        "spark.sql.codegen.cache.maxEntries": "5000",
        "spark.python.daemon.module": "rejoin.steps.run.spark_worker_daemon",
        # Only large frames are shuffled. What is small is put together again; with four, those of 10 million rows were sorted on disk.
        "spark.sql.shuffle.partitions": str(24 * cores),
        "spark.sql.extensions": EXTENSIONS,
        **STATIC,
        **RUNTIME,
        **config.spark_settings(),
    }


def worker_python(config: LakeConfig) -> str:
    """The Python that executors start: what the lake names, else this one. Without it that is whatever python3 their PATH has."""
    return config.spark.get("spark.pyspark.python", sys.executable)


def spark_submit() -> str:
    """The spark-submit of the installed pyspark, found without importing it.

    Raises:
        SetupError: there is none.
    """
    return str(setup_check.spark_submit())


def properties(settings: Mapping[str, str]) -> str:
    """The text of a properties file for spark-submit: settings may hold the catalog's password, and command lines are public."""
    lines = "".join(f"{key}={value}\n" for key, value in settings.items())
    return lines.replace("\\", "\\\\")


def session(config: LakeConfig) -> "SparkSession":
    """A session that reads and writes the lake. A process may hold sessions of several lakes: each has its own catalog.

    Raises:
        SetupError: no Java 17 or 21, or the jars are missing; the Spark Connect server refuses the token.
        SparkDown: no Spark Connect server answers (``lake/spark/remote_session.py``).
    """
    if not tracing():
        for context in ("SQL", "DataFrame"):  # pyspark prints every error of every expression, with its values
            logging.getLogger(f"{context}QueryContextLogger").disabled = True
    os.environ.setdefault("PYSPARK_PYTHON", worker_python(config))

    if remote := os.environ.get("SPARK_REMOTE"):
        from rejoin.lake.spark.remote_session import connect

        return _with_settings(cast("SparkSession", connect(remote)), config)
    with _starting:
        if _first:
            return _with_settings(_first[0].newSession(), config)
        _first.append(_start(config))
        return _first[0]


def _start(config: LakeConfig) -> "SparkSession":
    from pyspark.sql import SparkSession

    # Quiet start: without a configuration Spark's loggers write a page of warnings before anybody can set their level.
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    if problem := java_problem():
        raise SetupError(problem)
    builder = SparkSession.builder
    # spark-submit has started the JVM: master, memory and jars are its affair.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {**STATIC, **RUNTIME, **config.spark_settings()} if submitted else static_settings(config)
    for key, value in settings.items():
        builder = builder.config(key, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    if not submitted and not tracing():
        jvm.start(settings)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR" if tracing() else "OFF")
    if config.cluster and not submitted:
        atexit.register(_stop, spark)
    return spark


def _stop(spark: "SparkSession") -> None:
    """Gives the executors back. A container ends with this process: its JVM would have no time left for that."""
    with suppress(Exception):  # a JVM that is gone has none
        spark.stop()


def _with_settings(spark: "SparkSession", config: LakeConfig) -> "SparkSession":
    from pyspark.errors import AnalysisException

    for key, value in {**RUNTIME, **config.spark_settings()}.items():
        try:
            spark.conf.set(key, value)
        except AnalysisException as error:
            if key not in config.spark or error.getCondition() not in _SETTLED:
                raise
    return spark


@dataclass(frozen=True)
class Executors:
    """Those of a session.

    Attributes:
        cores: of each; 0 stands for all of its machine.
        at_once: tasks at one time, about, on all of them; 1: there is one executor only.
    """

    cores: int
    at_once: int


def executors(spark: "SparkSession") -> Executors:
    """What a session has been told of its executors: a local master is one, and so is ``spark.executor.instances=1``. Of several nobody says how many there are
    at this moment, but how many tasks suit them.
    """
    told = {key: spark.conf.get(key, "") or "" for key in ("spark.master", *_EXECUTORS)}
    if local := _LOCAL.fullmatch(told["spark.master"]):
        return Executors(0 if local[1] == "*" else int(local[1] or 1), 1)
    instances, cores, dynamic = (told[key] for key in _EXECUTORS)
    each = int(cores or not told["spark.master"].startswith("spark://"))
    if instances == "1" and dynamic != "true":
        return Executors(each, 1)
    return Executors(each, max(2, int(instances or 0) * max(each, 1), _parallelism(spark)))


def _parallelism(spark: "SparkSession") -> int:
    """The cores of the executors that there are, where the session can tell (not through Spark Connect)."""
    return 0 if os.environ.get("SPARK_REMOTE") else int(spark.sparkContext.defaultParallelism)


class JobCounter:
    """Counts the Spark jobs of one step, where the session can tell (not through Spark Connect)."""

    def __init__(self, spark: "SparkSession", group: str) -> None:
        self._context = None if os.environ.get("SPARK_REMOTE") else spark.sparkContext
        self._group = group

    def __enter__(self) -> Self:
        if self._context is not None:
            self._context.setJobGroup(self._group, self._group)
        return self

    def tasks(self) -> tuple[int, int] | None:
        """How many tasks of the stages that run at this moment have ended, of how many; None: none runs, or it cannot be told. Of the stages
        that come later Spark itself does not know yet how many tasks they have.
        """
        if self._context is None:
            return None
        tracker = self._context.statusTracker()
        jobs = set(tracker.getJobIdsForGroup(self._group)) & set(tracker.getActiveJobsIds())
        mine = {stage for job in jobs if (info := tracker.getJobInfo(job)) is not None for stage in info.stageIds}
        running = [found for i in mine & set(tracker.getActiveStageIds()) if (found := tracker.getStageInfo(i)) is not None]
        return (sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running)) if running else None

    def __exit__(self, *_: object) -> None:
        self.jobs: int | None = None if self._context is None else len(self._context.statusTracker().getJobIdsForGroup(self._group))
