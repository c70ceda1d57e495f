"""A real Airflow: PostgreSQL metadata, LocalExecutor, every component a process of its own on loopback; driven as a user does, by REST."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from integration.servers import postgres, wait_for_port

from rejoin.airflow.local.client import DONE, Client
from rejoin.airflow.local.server import free_port

PROJECT = Path(__file__).parents[2]
USER, PASSWORD = "admin", "for this test only"


class Airflow(Client):
    """Processes of one Airflow, and its API.

    Args:
        home: AIRFLOW_HOME; DAG files are in ``home/dags``.
        port: of the api-server.
        environment: of every process.
        metadata: the database of Airflow, as a libpq URL.
        sink: where the sink ``postgres`` is.
    """

    def __init__(self, home: Path, port: int, environment: Mapping[str, str], metadata: str, sink: str) -> None:
        super().__init__(f"http://127.0.0.1:{port}", USER, PASSWORD)
        self.home, self.environment, self.metadata, self.sink = home, environment, metadata, sink
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: list[int] = []  # of the killed ones too: what they started lives on

    def start(self, component: str, name: str = "") -> None:
        """Starts a component (again) in a process group of its own, under another ``name`` if it is a second one."""
        with (self.home / f"{name or component}.log").open("ab") as log:
            self.processes[name or component] = subprocess.Popen(
                [sys.executable, "-m", "airflow", component],
                env=dict(self.environment),
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
            )
        self._groups.append(self.processes[name or component].pid)

    def kill(self, component: str) -> None:
        """kill -9 of the component's process alone, in the middle of a transaction: what it has started lives on, and keeps its connection open."""
        process = self.processes[component]
        with psycopg.connect(self.metadata, autocommit=True) as server:
            self.until(lambda: _frozen_in_a_transaction(process, server), f"transaction of the {component}")
        process.kill()
        process.wait(30)

    def terminate(self, component: str) -> None:
        """The friendly end of a component."""
        self.processes[component].terminate()
        self.processes[component].wait(60)

    def stop(self) -> None:
        """Ends everything, what was left alone included."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def end_runs(self) -> None:
        """Fails whatever a test has left running or waiting, so that it does not stand in the way of the next test."""
        for state in ("queued", "running"):
            for run in self.call("GET", "/api/v2/dags/~/dagRuns", state=state, limit=100)["dag_runs"]:
                self.request("PATCH", f"/api/v2/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}", {"state": "failed"})

    def wait(self, dag: str, run_id: str, seconds: float = 600) -> str:
        """The state in which a run ends."""
        self.until(lambda: self.run(dag, run_id)["state"] in DONE, f"end of {dag} {run_id}", seconds, lambda: self.states(dag, run_id))
        return str(self.run(dag, run_id)["state"])

    def until(self, done: Callable[[], bool], what: str, seconds: float = 120, state: Callable[[], object] = lambda: "") -> None:
        """Waits until something is so."""
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, f"no {what} after {seconds:.0f} s: {state()}\n{self._logs()}"
            time.sleep(0.5)

    def ready(self, dag: str) -> None:
        """Waits until all components are healthy and a DAG is there; unpauses it."""
        self.until(self.healthy, "health", 180)
        self.until(lambda: self.request("GET", f"/api/v2/dags/{dag}").is_success, f"DAG {dag}", 120)
        self.pause(dag, paused=False)

    def _logs(self) -> str:
        return "\n".join(f"--- {name}\n{(self.home / f'{name}.log').read_text(errors='replace')[-1500:]}" for name in self.processes)


def _frozen_in_a_transaction(process: subprocess.Popen[bytes], server: psycopg.Connection[Any]) -> bool:
    """Stops the process where it has an open transaction; False if that has not come about within a second."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        if server.execute("SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction'").fetchone():
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.5)  # long enough to tell the frozen process from one that is only between two statements
            longer = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND state_change < now() - interval '0.4 s'"
            if server.execute(longer).fetchone():
                return True
            process.send_signal(signal.SIGCONT)
    return False


COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")


def settings(home: Path, port: int, metadata: str) -> dict[str, str]:
    """The environment of every component."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "dags").mkdir(exist_ok=True)
    (home / "passwords.json").write_text(json.dumps({USER: PASSWORD}))
    section = {
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__PLUGINS_FOLDER": PROJECT / "plugins",
        "CORE__LOAD_EXAMPLES": False,
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": 3,
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": home / "passwords.json",
        "DATABASE__SQL_ALCHEMY_CONN": metadata,
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": metadata,
        "API__HOST": "127.0.0.1",
        "API__PORT": port,
        "API__WORKERS": 1,
        "API_AUTH__JWT_SECRET": "only for tests " * 5,
        "API__SECRET_KEY": "only for tests",
        # What a killed task or scheduler costs is waiting: these make the waits of a test short.
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": 3,
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 20,
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": 3,
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": 10,
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": 15,
        "SCHEDULER__JOB_HEARTBEAT_SEC": 3,
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 120,  # reading DAG files again and again takes a core
        "USAGE_DATA_COLLECTION__ENABLED": False,
        "TRIGGERER__LOGGING_LEVEL": "WARNING",
    }
    made = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
    made.pop("SPARK_REMOTE", None)
    return (
        made | {f"AIRFLOW__{k}": str(v) for k, v in section.items()} | {"AIRFLOW_HOME": str(home), "PYTHONPATH": str(PROJECT / "include")}
    )


@contextmanager
def airflow(home: Path, **environment: str) -> Iterator[Airflow]:
    """A whole Airflow, started and stopped; DAG files may be put into ``home/dags`` before and after."""
    with postgres() as metadata:
        port = free_port()
        plain = metadata.replace("+psycopg", "")
        with psycopg.connect(plain, autocommit=True) as server:  # a killed scheduler's workers hold its locks (docs/airflow.md)
            server.execute("ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '20s'")
        sink = plain.rpartition("/")[0] + "/sink"  # a database that a test may make
        made = Airflow(home, port, settings(home, port, metadata) | {"REJOIN_SINK_POSTGRES": sink} | environment, plain, sink)
        migrated = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env=dict(made.environment),
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
        )
        assert migrated.returncode == 0, migrated.stderr[-3000:]
        try:
            for component in COMPONENTS:
                made.start(component)
            wait_for_port(port, made.processes["api-server"], home / "api-server.log", 120)
            yield made
        finally:
            made.stop()
