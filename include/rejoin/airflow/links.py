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
        dag, run, task = (quote(text, safe="") for text in (ti_key.dag_id, ti_key.run_id, ti_key.task_id))
        return f"/rejoin/dag/{dag}/run/{run}?task={task}"
