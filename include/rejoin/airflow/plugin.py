"""The page of rejoin in Airflow's UI: in the menu, and as a tab of every DAG, DAG run and task. The pages are in ``rejoin.page``.

Airflow finds it by the entry point of the installed package; where rejoin is not installed, by ``plugins/rejoin_plugin.py``.
"""

from typing import Any, ClassVar
from urllib.parse import urlparse

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from rejoin.airflow.tasks.links import RunLink

PREFIX = "/rejoin"
ROOT = urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/") + PREFIX


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The pages, loaded with the first request: every process of Airflow loads plugins, and only the API server shows pages."""
    from rejoin.page.routes import app as pages

    await pages(scope, receive, send)


class RejoinPlugin(AirflowPlugin):
    """What Airflow mounts, and where it puts links."""

    name = "rejoin"
    operator_extra_links: ClassVar = [RunLink()]  # type: ignore[misc]  # Airflow declares these three without ClassVar
    fastapi_apps: ClassVar = [{"app": app, "url_prefix": PREFIX, "name": "rejoin"}]  # type: ignore[misc]
    external_views: ClassVar = [  # type: ignore[misc]
        {"name": "rejoin", "href": f"{ROOT}/", "url_route": "rejoin", "destination": "nav", "nav_top_level": True},
        {"name": "rejoin", "href": f"{ROOT}/dag/{{DAG_ID}}", "url_route": "rejoin-topology", "destination": "dag"},
        {"name": "rejoin", "href": f"{ROOT}/dag/{{DAG_ID}}/run/{{RUN_ID}}", "url_route": "rejoin-run", "destination": "dag_run"},
        {"name": "rejoin", "href": f"{ROOT}/dag/{{DAG_ID}}", "url_route": "rejoin-task", "destination": "task"},
        {
            "name": "rejoin",
            "href": f"{ROOT}/dag/{{DAG_ID}}/run/{{RUN_ID}}?task={{TASK_ID}}",
            "url_route": "rejoin-step",
            "destination": "task_instance",
        },
    ]
