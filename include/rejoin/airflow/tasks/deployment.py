"""Where the lake and the landing files are, and which engine executes a stage: the deployment's settings, none of them in a topology."""

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rejoin.deployed import JOBS
from rejoin.errors import SetupError

if TYPE_CHECKING:
    from airflow.sdk import Connection

CONNECTION = "rejoin_spark"
"""The Airflow connection that says which engine executes the stages; without it they run in the task's own process."""


class Engine(StrEnum):
    """How a stage is executed. The results are the same."""

    PROCESS = "in process"  # Spark starts within the task: for tests and trying out
    CONNECT = "spark connect"  # a warm server: connection type spark_connect
    SUBMIT = "spark submit"  # jobs/<verb>.py by SparkSubmitOperator: connection type spark


@dataclass(frozen=True)
class Place:
    """``lake`` and ``root`` as ``--lake`` and ``--root`` of the command line; ``jobs``: the directory of the Spark entry points."""

    lake: str
    root: str
    jobs: str


def place() -> Place:
    """From the environment: REJOIN_LAKE, REJOIN_ROOT, REJOIN_JOBS (default: those that came with rejoin)."""
    return Place(os.environ.get("REJOIN_LAKE", "lake"), os.environ.get("REJOIN_ROOT", "."), os.environ.get("REJOIN_JOBS", str(JOBS)))


def python_path() -> str:
    """For another Python of this environment: what this one can import."""
    return os.pathsep.join(p for p in sys.path if p)


def engine_of(connection: "Connection | None") -> Engine:
    """The engine that a connection stands for.

    Raises:
        SetupError: the connection has another type.
    """
    if connection is None:
        return Engine.PROCESS
    known = {"spark_connect": Engine.CONNECT, "spark": Engine.SUBMIT}
    if connection.conn_type not in known:
        raise SetupError(
            f"connection {CONNECTION!r} has type {connection.conn_type!r}",
            expected="spark_connect (a Spark Connect server) or spark (any master of spark-submit)",
            next_step="correct the connection, or delete it to run the stages in the tasks' own processes",
        )
    return known[connection.conn_type]
