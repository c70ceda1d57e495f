"""Prints what Airflow makes of the files in dags/, as JSON: run by the test in a process of its own, with an AIRFLOW_HOME of its own."""

import json
import os
import sys
import tempfile
import time
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
        shown = {d: shape(dag) for d, dag in sorted(bag.dags.items())}
        print(json.dumps({"errors": bag.import_errors, "seconds": seconds, "heavy": heavy, "dags": shown}))


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
