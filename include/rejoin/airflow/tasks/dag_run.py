"""Which rejoin run belongs to which DAG run, and whether that still lives."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.run_owner import Life

if TYPE_CHECKING:
    from airflow.sdk import Context


def owner_of(dag_id: str, run_id: str) -> str:
    """The owner of a DAG run's rejoin run."""
    return run_owner.of_dag(dag_id) + run_id


def life(context: "Context") -> Callable[[str], Life]:
    """What a task can find out about owners: a DAG run lives as long as Airflow has it queued or running, however long it waits."""

    def of(text: str) -> Life:
        other = run_owner.dag_run(text)
        if other is None:
            return run_owner.life(text)
        going = context["ti"].get_dr_count(dag_id=other.dag, run_ids=[other.run], states=["queued", "running"])
        return Life.ALIVE if going else Life.GONE

    return of
