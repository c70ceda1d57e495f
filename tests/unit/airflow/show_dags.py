"""Prints what Airflow makes of the files in dags/, as JSON: run by the test in a process of its own, with an AIRFLOW_HOME of its own."""

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[3]


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags")}
        os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "ERROR"
        import airflow.sdk  # noqa: F401  what Airflow has loaded long before it reads a DAG file
        from airflow.dag_processing.dagbag import DagBag
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator  # noqa: F401
        from airflow.serialization.serialized_objects import DagSerialization

        started = time.process_time()
        bag = DagBag(str(PROJECT / "dags"))
        seconds = time.process_time() - started
        for dag in bag.dags.values():
            DagSerialization.from_dict(DagSerialization.to_dict(dag))  # as the scheduler gets it
        heavy = sorted({m.partition(".")[0] for m in sys.modules} & {"pyspark", "pyiceberg", "great_expectations", "duckdb"})
        limits = {d: [dag.dagrun_timeout, {t.task_id: t.execution_timeout for t in dag.tasks}] for d, dag in bag.dags.items()}
        more = {"limits": limits, "arguments": arguments(), "asked": asked(bag.dags["shop"])}
        said = json.dumps(more, default=lambda seconds: seconds.total_seconds())
        shown = {d: shape(dag) for d, dag in sorted(bag.dags.items())}
        print(json.dumps({"errors": bag.import_errors, "seconds": seconds, "heavy": heavy, "dags": shown} | json.loads(said)))


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "each": {"owner": "me", "pool": "small", "queue": "night", "tags": ["b"], "retries": 0, "execution_timeout": timedelta(minutes=5)},
    "no limits": {"execution_timeout": None, "dagrun_timeout": None},
    "default_args": {"default_args": {"owner": "us", "retries": 2, "execution_timeout": None, "priority_weight": 7, "num_executors": 3}},
    "both": {"owner": "me", "retries": 4, "default_args": {"owner": "us", "retries": 2, "pool": "large"}},
    "a misspelt name": {"default_args": {"retry_dealy": timedelta(minutes=1)}},
    "a name of ours": {"default_args": {"trigger_rule": "all_done"}},
    "no dict": {"default_args": ["owner"]},
    "an empty pool": {"pool": " "},
    "a queue of no text": {"queue": 3},
    "no owner": {"owner": None},
    "a time below zero": {"execution_timeout": timedelta(seconds=-1)},
    "a time of no unit": {"dagrun_timeout": 3600},
    "a time of no unit within": {"default_args": {"retry_delay": 15}},
    "retries below zero": {"retries": -1},
    "retries that are a truth": {"retries": True},
    "one tag for many": {"tags": "night"},
}
"""Arguments of ``to_dag``, by what they are about."""


def arguments() -> dict[str, Any]:
    """What becomes of the arguments: a task's and the DAG's own, or the error."""
    from rejoin import Topology, snapshot
    from rejoin.airflow import to_dag
    from rejoin.errors import RejoinError

    shop = Topology("shop")
    left = shop.table("orders", key="id", schema="id BIGINT, who BIGINT", source=snapshot("landing/orders"))
    right = shop.table("people", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/people"))
    left.left_join(right, foreign_key="who", select=["left.id", "right.name"], name="enriched")

    def outcome(given: dict[str, Any]) -> Any:
        try:
            dag: Any = to_dag(shop, **given)
        except RejoinError as error:
            return str(error)
        one, asked = dag.task_dict["resolve.enriched"], dag.task_dict["approve"]
        names = ("owner", "pool", "queue", "retries", "execution_timeout", "priority_weight", "_num_executors")
        made = {name: getattr(one, name) for name in names} | {"tries": one.retry_policy.tries, "approve": asked.execution_timeout}
        return made | {"tags": sorted(dag.tags), "dagrun_timeout": dag.dagrun_timeout, "cut": dag.task_dict["cut"].retries}

    return {case: outcome(given) for case, given in CASES.items()}


def asked(dag: Any) -> dict[str, Any]:
    """What is asked of a run by the form as it opens, emptied, and filled in."""
    from rejoin.airflow.tasks.trigger_form import options

    filled = {"refresh": "full", "fuse": "apply", "only": ["orders_enriched"], "replay": ["orders"], "note": "why"}
    cases = {"as it opens": {}, "emptied": dict.fromkeys(dag.params), "filled in": filled}
    return {case: asdict(options({name: param.value for name, param in dag.params.items()} | given)) for case, given in cases.items()}


def shape(dag: Any) -> dict[str, Any]:
    """What a change of which should be seen in a review."""
    return {
        "schedule": str(dag.schedule),
        "max_active_runs": dag.max_active_runs,
        "catchup": dag.catchup,
        "params": {name: param.schema | {"default": param.value} for name, param in dag.params.items()},
        "tasks": {t.task_id: task(t) for t in sorted(dag.tasks, key=lambda t: str(t.task_id))},
    }


def task(t: Any) -> dict[str, Any]:
    """One task."""
    made = {"group": t.task_group.group_id if t.task_group else None, "after": sorted(t.upstream_task_ids), "retries": t.retries}
    assets = {side: [str(a.uri) for a in getattr(t, side)] for side in ("inlets", "outlets") if getattr(t, side)}
    return made | assets


if __name__ == "__main__":
    main()
