"""Runs a DAG once by Airflow's own ``dag.test``, without a scheduler: run in a process of its own. Prints seconds a task as JSON."""

import json
import sys

DAG, RUNS = sys.argv[1], int(sys.argv[2])


def main() -> None:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.settings import DAGS_FOLDER
    from airflow.utils.db import initdb

    initdb()
    sys.path.insert(0, str(DAGS_FOLDER))  # as Airflow's own processes have it
    seconds = {}
    for _ in range(RUNS):
        done = DagBag(str(DAGS_FOLDER)).dags[DAG].test()
        assert str(done.state) == "success", {t.task_id: str(t.state) for t in done.get_task_instances()}
        seconds = {t.task_id: (t.end_date - t.start_date).total_seconds() for t in done.get_task_instances() if t.end_date and t.start_date}
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
