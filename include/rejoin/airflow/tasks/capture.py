"""The task that lands changes of databases before a run."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rejoin.airflow.tasks.spark_submit import RejoinOperator
from rejoin.airflow.tasks.stage import topology_of
from rejoin.failures import extras

if TYPE_CHECKING:
    from airflow.sdk import Context


class CaptureOperator(RejoinOperator):
    """Captures what is committed now, in the task's own process, whatever engine the deployment has.

    Args:
        topology_file: ``path:topology name``, as the command line takes it.
        settings: those of any operator.

    Returns (as the task's XCom): what has landed of each database.

    Raises:
        RejoinError: terminal ones fail the task, transient ones are tried again (``rejoin.airflow.tasks.retry``).
    """

    ui_color = "#e3eefc"

    def __init__(self, *, topology_file: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.topology_file = topology_file

    def execute(self, context: "Context") -> list[dict[str, Any]]:  # type: ignore[override]  # its result is worth keeping
        """Captures."""
        extras.require(f"task {self.task_id}", "adbc_driver_manager", "adbc_driver_postgresql", "psycopg2")
        from rejoin.capture.capture import Request, capture
        from rejoin.lake.source_access import source_access

        topology = topology_of(self.topology_file, context)
        connections = source_access(topology.config, topology.root).connections
        return [asdict(done) for done in capture(topology.plan, Request(topology.root, connections, tell=self.log.info))]
