"""DAGs that look after every topology of the lake: compaction and expiry, verification, freshness, abandoning a run by hand.

A task that fails is the alert: give ``on_failure`` a notifier, or a function that tells people.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from rejoin.airflow.arguments import RUN_TIMEOUT
from rejoin.airflow.tasks import trigger_form
from rejoin.airflow.tasks.command import CommandOperator
from rejoin.airflow.tasks.deployment import place
from rejoin.airflow.tasks.retry import RetryByError
from rejoin.errors import RunUnknown, Stale
from rejoin.operate.freshness import fresh_within

START = datetime(2024, 1, 1, tzinfo=UTC)
TRIES, FIRST = 3, timedelta(seconds=30)
BUSY = 200
"""Tries of a task that waits for runs to end."""
NAME = "^[a-z][a-z0-9_]*$"
"""Of a topology."""
NAMED = "{{ task.topology }}"
"""What the UI calls a mapped task instead of its number."""


def maintenance(schedule: Any = "30 3 * * *", keep_days: float = 7, on_failure: Any = None) -> DAG:
    """Compacts every topology, then frees what runs left behind that a newer one followed more than ``keep_days`` ago, and stray files."""
    with _dag("rejoin_maintenance", schedule, on_failure, "Compaction, expiry of old states, stray files.") as dag:
        names = topologies()
        compact = CommandOperator.partial(task_id="compact", command=["compact"], map_index_template=NAMED).expand(topology=names)
        words = ["expire", "--keep-days", str(keep_days)]
        expire = CommandOperator.partial(task_id="expire", command=words, map_index_template=NAMED).expand(topology=names)
        compact >> expire
    return dag


def verification(schedule: Any = "0 4 * * *", on_failure: Any = None) -> DAG:
    """Compares every output with its SQL, by Spark, whoever runs the steps: by stored hashes daily, by recomputing everything on Sundays or when asked."""
    full = trigger_form.switch("Recompute everything", "Not only where stored hashes differ.")
    with _dag("rejoin_verify", schedule, on_failure, "Is every output what its SQL says?", {"full": full}) as dag:
        how = "{{ '' if params.full or dag_run.run_after.weekday() == 6 else '--fast' }}"
        words = ["verify", "--engine", "spark", how]
        CommandOperator.partial(task_id="verify", command=words, map_index_template=NAMED).expand(topology=topologies())
    return dag


def freshness(within: timedelta | None = None, schedule: Any = "*/15 * * * *", on_failure: Any = None) -> DAG:
    """Fails for every topology whose newest published run is older than ``within``; None: as REJOIN_FRESH_WITHIN says, which the page shows, too."""
    within = within or fresh_within()
    with _dag("rejoin_freshness", schedule, on_failure, f"Was every topology published within {within}?") as dag:
        published.partial(seconds=within.total_seconds()).expand(topology=topologies())
    return dag


def abandon(on_failure: Any = None) -> DAG:
    """By hand: closes a topology's open run (of no topology in particular: the only open one), so that the next run starts afresh with the same input."""
    params = {
        "topology": Param(
            None, type=["null", "string"], pattern=NAME, title="Topology", description="Empty: the only one that has an open run."
        ),
        "run": Param(None, type=["null", "integer"], minimum=1, title="Run", description="Empty: the open one."),
    }
    with _dag("rejoin_abandon", None, on_failure, "Closes an open run; what it wrote never becomes visible.", params) as dag:
        which = ["{{ '--run' if params.run else '' }}", "{{ params.run or '' }}"]
        CommandOperator(task_id="abandon", command=["abandon", *which], topology="{{ params.topology or '' }}")
    return dag


@task
def topologies() -> list[str]:
    """The topologies that the lake's ledger knows."""
    from rejoin.lake.config import lake_config
    from rejoin.lake.ledger.records import topologies as known

    return known(lake_config(place().lake).ledger)


@task(map_index_template="{{ task.op_kwargs['topology'] }}")
def published(topology: str, seconds: float) -> str:
    """How long ago the newest run was published.

    Raises:
        Stale: longer ago than ``seconds``, or never.
    """
    from rejoin.lake.config import lake_config
    from rejoin.lake.ledger.history import History

    newest = History(lake_config(place().lake).ledger, topology).published()
    if newest is None or newest.closed_at is None:
        raise RunUnknown(f"topology {topology!r} was never published", next_step="look at its DAG")
    age = time.time() - newest.closed_at
    if age > seconds:
        raise Stale(
            f"topology {topology!r} was last published {timedelta(seconds=int(age))} ago",
            expected=f"at most {timedelta(seconds=int(seconds))} ago",
            next_step="look at its DAG's newest run: paused, failing, or waiting",
        )
    return str(timedelta(seconds=int(age)))


def _dag(dag_id: str, schedule: Any, on_failure: Any, what: str, params: dict[str, Param] | None = None) -> DAG:
    return DAG(
        dag_id,
        description=what,
        schedule=schedule,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        tags=["rejoin", "operations"],
        params=params,
        on_failure_callback=on_failure,
        dagrun_timeout=RUN_TIMEOUT,
        default_args={"retries": BUSY, "retry_policy": RetryByError(TRIES, FIRST), "execution_timeout": RUN_TIMEOUT},
    )
