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
        return f"/rejoin/dag/{quote(ti_key.dag_id, safe='')}/run/{quote(ti_key.run_id, safe='')}#{quote(ti_key.task_id)}"
