"""Runs that Airflow made: their owner is the text ``airflow:<dag id>:<dag run id>``."""

from typing import NamedTuple

_PREFIX = "airflow:"


class DagRun(NamedTuple):
    """A DAG run of Airflow. DAG ids hold no colon, run ids do."""

    dag: str
    run: str


def dag_run(owner: str) -> DagRun | None:
    """The DAG run that owns a run; None if something else does."""
    dag, colon, run = owner.removeprefix(_PREFIX).partition(":")
    return DagRun(dag, run) if owner.startswith(_PREFIX) and dag and colon and run else None


def of_dag(dag: str) -> str:
    """How the owner of every run that this DAG made begins."""
    return f"{_PREFIX}{dag}:"


def step_of_task(task: str, steps: list[str]) -> str | None:
    """The step that a task does: names are compared by their letters and digits, because a task id may separate them in another way."""

    def bare(name: str) -> str:
        return "".join(c for c in name if c.isalnum())

    return next((s for s in steps if bare(s) == bare(task)), None)
