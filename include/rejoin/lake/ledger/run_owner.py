"""Who runs: a text that tells whether the one who runs still lives, where that can be known."""

import hashlib
import os
import platform
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PREFIX = "process"


class Life(StrEnum):
    """What is known of a run's owner."""

    ALIVE = "alive"  # it goes on, however long it has been silent
    GONE = "gone"  # it will never come back
    UNKNOWN = "unknown"  # only the lease tells


def this_process() -> str:
    """The owner of a run that this very process does: host, pid and start time, and where that pid means this process."""
    import psutil

    return f"{_PREFIX}:{platform.node()}:{os.getpid()}:{psutil.Process().create_time():.2f}:{_pids()}"


def is_process(owner: str) -> bool:
    """Whether an owner is a process, as of the command line."""
    return owner.startswith(f"{_PREFIX}:")


@cache
def _pids() -> str:
    """Names the set of pids that this process is in: containers of one host, and machines of one name, have sets of their own."""
    try:
        boot, space = Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")  # noqa: PTH115  not a path
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:12]


def life(owner: str) -> Life:
    """GONE for a process that has ended, where its pid can be looked up: the same host and set of pids; UNKNOWN for anything else."""
    import psutil

    parts = owner.split(":")
    if len(parts) != 5 or parts[0] != _PREFIX or parts[1] != platform.node() or not _pids() or parts[4] != _pids():
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
