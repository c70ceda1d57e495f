"""``rejoin up`` and ``rejoin down``: Airflow and a warm Spark Connect server on this machine, everything in one folder.

For development: one user, SQLite as Airflow's database (no backfills: SQLite cannot take them), loopback only.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rejoin import deployed
from rejoin.airflow.local import processes
from rejoin.airflow.local.client import Client
from rejoin.airflow.tasks.deployment import python_path
from rejoin.connect.server import TOKEN, greets, listens
from rejoin.errors import SetupError

USER = "admin"
SPARK = "spark-connect"
# Airflow would serve logs to other machines, on all addresses; the UI reads them as files.
AIRFLOW = {"scheduler": ["--skip-serve-logs"], "dag-processor": [], "api-server": [], "triggerer": ["--skip-serve-logs"]}
PARTS = (SPARK, *AIRFLOW)
WAIT = 180.0
"""Seconds until everything must be healthy; a machine that is busy needs a minute."""
AGAIN = 60.0
"""The same where it was healthy before."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class RunningAirflow:
    """What runs in a folder: ``port`` of the UI, ``remote``: the Spark Connect server, and the process of each part."""

    folder: str
    port: int
    remote: str
    password: str
    processes: dict[str, processes.Known]

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> Client:
        """Its one user."""
        return Client(self.url, USER, self.password)

    @property
    def connect(self) -> int:
        """The port of the Spark Connect server."""
        return int(self.remote.rpartition(":")[2])

    @property
    def gone(self) -> list[str]:
        """The parts whose process has ended."""
        return [part for part, known in self.processes.items() if processes.running(known) is None]


def up(folder: Path, port: int, say: Say, *, schedules: bool = True) -> RunningAirflow:
    """Starts what does not run yet, and waits until it is healthy. Without ``schedules`` a DAG runs only when somebody triggers it.

    Raises:
        SetupError: the port is taken, or some part did not become healthy. What ran before goes on.
    """
    folder = folder.resolve()
    found = state(folder)
    if found is None or set(found.processes) != set(PARTS) or len(found.gone) == len(PARTS):
        return _fresh(folder, port, say, schedules=schedules)
    if gone := found.gone:
        say(f"not running any more: {', '.join(gone)}; started again (logs: {folder}/logs)")
        processes.end([found.processes[part] for part in gone])
        commands = _commands(folder, found.port, found.connect, schedules=schedules)
        found = replace(found, processes=found.processes | _started(folder, {part: commands[part] for part in gone}))
        _write(found)
    _wait(found, AGAIN, "`rejoin down`, then `rejoin up`")
    return found


def _fresh(folder: Path, port: int, say: Say, *, schedules: bool) -> RunningAirflow:
    down(folder, say)
    if listens("127.0.0.1", port):
        raise SetupError(f"port {port} is taken", next_step="pass another one: rejoin up --port 8090")
    (folder / "landing").mkdir(parents=True, exist_ok=True)
    for name in ("airflow", "logs"):  # keys and passwords are in Airflow's files
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o700)
    connect = free_port()
    password = _password(folder / "airflow" / "passwords.json")
    say("starting a Spark Connect server and Airflow (about half a minute)")
    commands = _commands(folder, port, connect, schedules=schedules)
    _migrate(folder, commands["scheduler"][1])
    made = RunningAirflow(str(folder), port, f"sc://127.0.0.1:{connect}", password, _started(folder, commands))
    _write(made)
    try:
        _wait(made, WAIT, f"it is stopped again; look at {folder}/logs")
    except SetupError:
        down(folder, say)
        raise
    return made


def down(folder: Path, say: Say) -> None:
    """Stops all that ``up`` has started in a folder. Its data stays."""
    found = state(folder)
    if found is None:
        return
    processes.end(found.processes.values())
    _state_file(folder).unlink(missing_ok=True)
    say("stopped")


def state(folder: Path) -> RunningAirflow | None:
    """What ``up`` has written down, whether it still runs or not."""
    file = _state_file(folder.resolve())
    if not file.is_file():
        return None
    data = json.loads(file.read_text())
    return RunningAirflow(**data | {"processes": {n: (int(p), float(b)) for n, (p, b) in data["processes"].items()}})


def settings(folder: Path, port: int, connect: int, *, schedules: bool) -> dict[str, str]:
    """Airflow's settings."""
    home = folder / "airflow"
    section = {
        "CORE__DAGS_FOLDER": deployed.DAGS,
        "CORE__PLUGINS_FOLDER": deployed.PLUGINS,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": max(4, os.cpu_count() or 4),
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": home / "passwords.json",
        "API__HOST": "127.0.0.1",
        "API__PORT": port,
        "API__WORKERS": 1,
        "API_AUTH__JWT_SECRET": secret(home / "jwt.secret"),
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 60,
        "SCHEDULER__USE_JOB_SCHEDULE": schedules,
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.25,  # a task follows the one before it at once
        # A task's last word often comes just before its process ends; then nobody looks again for so many seconds, by default 5, while it holds a slot.
        "WORKERS__MIN_HEARTBEAT_INTERVAL": 1,
        "DAG_PROCESSOR__REFRESH_INTERVAL": 10,
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 30,
        "USAGE_DATA_COLLECTION__ENABLED": False,
    }
    token = secret(folder / "spark.token")
    connection = {"conn_type": "spark_connect", "host": "127.0.0.1", "port": connect, "password": token}
    return {f"AIRFLOW__{name}": str(value) for name, value in section.items()} | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_REJOIN_SPARK": json.dumps(connection),
        "REJOIN_LAKE": str(folder / "lake"),
        "REJOIN_ROOT": str(folder),
    }


# --- processes ------------------------------------------------------------------------------------------------------------


def _commands(folder: Path, port: int, connect: int, *, schedules: bool) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Part -> its command and environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW") and k not in ("SPARK_REMOTE", TOKEN)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept |= {"PYTHONPATH": python_path(), "PATH": path}
    server = [sys.executable, "-m", "rejoin.connect", "--lake", str(folder / "lake"), "--port", str(connect), "--restart"]
    airflow = kept | settings(folder, port, connect, schedules=schedules)
    made = {part: ([sys.executable, "-m", "airflow", part, *more], airflow) for part, more in AIRFLOW.items()}
    return {SPARK: (server, kept | {TOKEN: secret(folder / "spark.token")}), **made}


def _migrate(folder: Path, environment: dict[str, str]) -> None:
    """Airflow's database, made or brought up to date."""
    with (folder / "logs" / "database.log").open("ab") as log:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"], env=environment, cwd=folder, stdout=log, stderr=log, check=False
        )
    if done.returncode:
        raise SetupError("Airflow's database cannot be made", next_step=f"look at {folder}/logs/database.log")


def _started(folder: Path, commands: dict[str, tuple[list[str], dict[str, str]]]) -> dict[str, processes.Known]:
    return {part: processes.start(*command, folder, folder / "logs" / f"{part}.log") for part, command in commands.items()}


def trouble(local: RunningAirflow) -> list[str]:
    """The parts that are not healthy, each with what is known of it; empty: all is well."""
    found = [f"{part} (its process has ended)" for part in local.gone]
    if SPARK not in local.gone and not greets(f"127.0.0.1:{local.connect}"):
        found.append(f"{SPARK} (no answer at 127.0.0.1:{local.connect})")
    asked = local.client().unhealthy()
    return found + [f"{part} ({why})" for part, why in asked.items() if part not in local.gone]


def _wait(local: RunningAirflow, seconds: float, next_step: str) -> None:
    deadline = time.monotonic() + seconds
    while found := trouble(local):
        if local.gone or time.monotonic() > deadline:
            raise SetupError(f"not healthy: {', '.join(found)}", next_step=f"{next_step}; logs: {local.folder}/logs")
        time.sleep(0.5)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


# --- files ----------------------------------------------------------------------------------------------------------------


def _state_file(folder: Path) -> Path:
    return folder / "up.json"


def _write(local: RunningAirflow) -> None:
    file = _state_file(Path(local.folder))
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(json.dumps(asdict(local)))


def _password(file: Path) -> str:
    """The password of the one user: made once."""
    return str(json.loads(secret(file, json.dumps({USER: secrets.token_urlsafe(12)})))[USER])


def secret(file: Path, new: str = "") -> str:
    """What a file holds that only its owner can read; made once: ``new``, or something random."""
    if not file.is_file():
        file.touch(mode=0o600)
        file.write_text(new or secrets.token_hex(48))
    file.chmod(0o600)
    return file.read_text()
