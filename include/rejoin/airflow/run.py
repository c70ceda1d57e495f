"""Which rejoin run belongs to which DAG run, and whether that still lives."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rejoin import owner
from rejoin.owner import Life

if TYPE_CHECKING:
    from airflow.sdk import Context

_PREFIX = "airflow"


def owner_of(dag_id: str, run_id: str) -> str:
    """The owner of a DAG run's rejoin run. A DAG id holds no colon, so both parts can be told apart again."""
    return f"{_PREFIX}:{dag_id}:{run_id}"


def dag_run_of(text: str) -> tuple[str, str] | None:
    """(DAG id, DAG run id) of an owner; None for any other owner."""
    prefix, _, rest = text.partition(":")
    dag_id, _, run_id = rest.partition(":")
    return (dag_id, run_id) if prefix == _PREFIX and run_id else None


def life(context: "Context") -> Callable[[str], Life]:
    """What a task can find out about owners: a DAG run lives as long as Airflow has it queued or running, however long it waits."""

    def of(text: str) -> Life:
        other = dag_run_of(text)
        if other is None:
            return owner.life(text)
        going = context["ti"].get_dr_count(dag_id=other[0], run_ids=[other[1]], states=["queued", "running"])
        return Life.ALIVE if going else Life.GONE

    return of
