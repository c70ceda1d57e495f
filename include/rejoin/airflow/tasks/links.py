"""Links from a task to rejoin's page in the same UI. The plugin registers them."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class RunLink(BaseOperatorLink):
    """The task's step in its rejoin run: counts, cost, decisions."""

    name = "rejoin run"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:  # noqa: ARG002
        """A path of the plugin's pages."""
        return f"{run_page(ti_key.dag_id, ti_key.run_id)}?task={quote(ti_key.task_id, safe='')}"


def run_page(dag_id: str, run_id: str) -> str:
    """The path of the page of a DAG run's rejoin run."""
    return f"/rejoin/dag/{quote(dag_id, safe='')}/run/{quote(run_id, safe='')}"
