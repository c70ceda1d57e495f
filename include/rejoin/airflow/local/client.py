"""Airflow's REST API as a user has it: log in, trigger, look."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from rejoin.errors import SetupError

DONE = ("success", "failed")
PARTS = {"metadatabase": "database", "scheduler": "scheduler", "dag_processor": "dag-processor", "triggerer": "triggerer"}
"""Name in Airflow's answer -> name for people."""
Json = dict[str, Any]


class Client:
    """A logged-in user.

    Args:
        url: of the api-server, without a slash at the end.
        user: the login.
        password: its password.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url, self._user, self._password = url, user, password
        self._token = ""

    def unhealthy(self) -> dict[str, str]:
        """The parts of Airflow that are not healthy, by their commands' names, and what is known of each. Needs no login."""
        try:
            found = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
            return {part: _why(name, found[name]) for name, part in PARTS.items() if found[name]["status"] != "healthy"}
        except (httpx.HTTPError, ValueError, KeyError, TypeError):  # nobody, or something else than Airflow
            return {"api-server": f"no answer at {self.url}"}

    def healthy(self) -> bool:
        """Whether the api-server answers and says that every part of Airflow is healthy. Needs no login."""
        return not self.unhealthy()

    def request(self, method: str, path: str, body: Json | None = None, **query: Any) -> httpx.Response:
        """One request; the first one logs in."""
        if not self._token:
            login = {"username": self._user, "password": self._password}
            self._token = httpx.post(f"{self.url}/auth/token", json=login, timeout=30).raise_for_status().json()["access_token"]
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx.request(method, f"{self.url}{path}", json=body, params=query, headers=headers, timeout=60)

    def call(self, method: str, path: str, body: Json | None = None, **query: Any) -> Json:
        """One request that must succeed.

        Raises:
            SetupError: Airflow refused it.
        """
        answer = self.request(method, path, body, **query)
        if not answer.is_success:
            raise SetupError(f"Airflow refused {method} {path}: {answer.status_code} {answer.text[:500]}")
        return dict(answer.json()) if answer.content else {}

    def pause(self, dag: str, *, paused: bool) -> None:
        """Pauses or unpauses a DAG."""
        self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": paused})

    def trigger(self, dag: str, run_id: str, **params: Any) -> str:
        """Starts a run from the form; returns its id."""
        self.call("POST", f"/api/v2/dags/{dag}/dagRuns", {"dag_run_id": run_id, "logical_date": None, "conf": params})
        return run_id

    def run(self, dag: str, run_id: str) -> Json:
        """A DAG run."""
        return self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}")

    def tasks(self, dag: str, run_id: str) -> dict[str, Json]:
        """The task instances of a DAG run, by task id."""
        found = self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances")
        return {t["task_id"]: t for t in found["task_instances"]}

    def states(self, dag: str, run_id: str) -> dict[str, str]:
        """Task id -> state."""
        return {t: i["state"] for t, i in self.tasks(dag, run_id).items()}

    def log(self, dag: str, run_id: str, task: str, attempt: int) -> str:
        """What a try of a task has logged."""
        return str(self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/logs/{attempt}", full_content=True))

    def follow(self, dag: str, run_id: str, look: Callable[[dict[str, str]], None]) -> str:
        """Calls ``look`` with the tasks' states until the run ends; returns how."""
        while True:
            look(self.states(dag, run_id))
            state = str(self.run(dag, run_id)["state"])
            if state in DONE:
                return state
            time.sleep(0.5)


def _why(name: str, said: Json) -> str:
    beat = said.get(f"latest_{name}_heartbeat")
    if name == "metadatabase":
        return "it does not answer"
    return f"last heartbeat {beat}" if beat else "no heartbeat yet"
