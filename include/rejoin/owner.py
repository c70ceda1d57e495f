"""Who runs: a text that tells whether the one who runs still lives, where that can be known."""

import os
import platform
from enum import StrEnum
from typing import NamedTuple

import psutil

_PREFIX = "process"


class Life(StrEnum):
    """What is known of a run's owner."""

    ALIVE = "alive"  # it goes on, however long it has been silent
    GONE = "gone"  # it will never come back
    UNKNOWN = "unknown"  # only the lease tells


def this_process() -> str:
    """The owner of a run that this very process does: host, pid and start time."""
    return f"{_PREFIX}:{platform.node()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def life(owner: str) -> Life:
    """GONE for a process of this host that has ended; UNKNOWN for anything else."""
    parts = owner.split(":")
    if len(parts) != 4 or parts[0] != _PREFIX or parts[1] != platform.node():
        return Life.UNKNOWN
    try:
        same = f"{psutil.Process(int(parts[2])).create_time():.2f}" == parts[3]
    except psutil.NoSuchProcess:
        same = False
    return Life.UNKNOWN if same else Life.GONE


# --- runs that Airflow makes: ``airflow:<dag id>:<dag run id>`` ----------------------------------------------------------

_AIRFLOW = "airflow:"


class DagRun(NamedTuple):
    """A DAG run of Airflow. DAG ids hold no colon, run ids do."""

    dag: str
    run: str


def of_dag(dag: str) -> str:
    """How the owner of every run that this DAG made begins; its DAG run's id follows."""
    return f"{_AIRFLOW}{dag}:"


def dag_run(owner: str) -> DagRun | None:
    """The DAG run that owns a run; None if something else does."""
    dag, colon, run = owner.removeprefix(_AIRFLOW).partition(":")
    return DagRun(dag, run) if owner.startswith(_AIRFLOW) and dag and colon and run else None
