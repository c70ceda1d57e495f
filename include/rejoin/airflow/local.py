"""``rejoin up`` and ``rejoin down``: Airflow and a warm Spark Connect server on this machine, everything in one folder.

For development: one user, SQLite as Airflow's database (no backfills: SQLite cannot take them), loopback only.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from rejoin import deployed
from rejoin.airflow.client import Client
from rejoin.airflow.place import python_path
from rejoin.errors import SetupError

USER = "admin"
WAIT = 180.0
"""Seconds until everything must be healthy; a machine that is busy needs a minute."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Local:
    """What runs in a folder. ``processes``: name -> (pid, time of its start); each leads a process group."""

    folder: str
    port: int
    remote: str
    password: str
    processes: dict[str, tuple[int, float]]

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> Client:
        """Its one user."""
        return Client(self.url, USER, self.password)

    @property
    def alive(self) -> bool:
        """Whether all of it runs."""
        return all(_process(*p) is not None for p in self.processes.values())


def up(folder: Path, port: int, say: Say, *, schedules: bool = True) -> Local:
    """Starts what does not run yet, and waits until it is healthy. Without ``schedules`` a DAG runs only when somebody triggers it.

    Raises:
        SetupError: the port is taken, or something did not come up.
    """
    folder = folder.resolve()
    found = state(folder)
    if found is not None and found.alive:
        return found
    down(folder, say)
    if _listens(port):
        raise SetupError(f"port {port} is taken", next_step="pass another one: rejoin up --port 8090")
    for name in ("airflow", "landing", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    connect = free_port()
    password = _password(folder / "airflow" / "passwords.json")
    say("starting a Spark Connect server and Airflow (about half a minute)")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW") and k != "SPARK_REMOTE"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # `airflow standalone` starts `airflow`
    environment |= {"PYTHONPATH": python_path(), "PATH": path}
    commands = {
        "spark-connect": ([sys.executable, "-m", "rejoin.connect", "--lake", str(folder / "lake"), "--port", str(connect)], environment),
        "airflow": ([sys.executable, "-m", "airflow", "standalone"], environment | settings(folder, port, connect, schedules=schedules)),
    }
    processes = {name: _start(folder, name, command, env) for name, (command, env) in commands.items()}
    made = Local(str(folder), port, f"sc://127.0.0.1:{connect}", password, processes)
    _state_file(folder).write_text(json.dumps(asdict(made)))
    try:
        _wait(made, lambda: _listens(connect) and made.client().healthy())
    except SetupError:
        down(folder, say)
        raise
    return made


def down(folder: Path, say: Say) -> None:
    """Stops all that ``up`` has started in a folder. Its data stays."""
    found = state(folder)
    if found is None:
        return
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = {name: p for name, (pid, began) in found.processes.items() if (p := _process(pid, began)) is not None}
        groups = _groups([p for p, _ in found.processes.values()])
        if not left and not groups:
            break
        for group in groups | {p.pid for p in left.values()}:
            _signal(group, sign)
        psutil.wait_procs(list(left.values()), timeout=15)
        time.sleep(0.5)
    _state_file(folder).unlink(missing_ok=True)
    say("stopped")


def state(folder: Path) -> Local | None:
    """What ``up`` has written down, whether it still runs or not."""
    file = _state_file(folder.resolve())
    if not file.is_file():
        return None
    data = json.loads(file.read_text())
    return Local(**data | {"processes": {n: (int(p), float(b)) for n, (p, b) in data["processes"].items()}})


def settings(folder: Path, port: int, connect: int, *, schedules: bool) -> dict[str, str]:
    """Airflow's settings."""
    home = folder / "airflow"
    section = {
        "CORE__DAGS_FOLDER": deployed.DAGS,
        "CORE__PLUGINS_FOLDER": deployed.PLUGINS,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": max(2, os.cpu_count() or 2),
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": home / "passwords.json",
        "API__HOST": "127.0.0.1",
        "API__PORT": port,
        "API__WORKERS": 1,
        "API_AUTH__JWT_SECRET": _secret(home / "jwt.secret"),
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 60,
        "SCHEDULER__USE_JOB_SCHEDULE": schedules,
        "DAG_PROCESSOR__REFRESH_INTERVAL": 10,
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 10,
        "USAGE_DATA_COLLECTION__ENABLED": False,
    }
    connection = {"conn_type": "spark_connect", "host": "127.0.0.1", "port": connect}
    return {f"AIRFLOW__{name}": str(value) for name, value in section.items()} | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_REJOIN_SPARK": json.dumps(connection),
        "REJOIN_LAKE": str(folder / "lake"),
        "REJOIN_ROOT": str(folder),
    }


# --- processes ------------------------------------------------------------------------------------------------------------


def _start(folder: Path, name: str, command: list[str], environment: dict[str, str]) -> tuple[int, float]:
    with (folder / "logs" / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    return process.pid, psutil.Process(process.pid).create_time()


def _process(pid: int, began: float) -> psutil.Process | None:
    """The process, if it is still the same one."""
    try:
        process = psutil.Process(pid)
        return process if abs(process.create_time() - began) < 1 and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _groups(leaders: list[int]) -> set[int]:
    """Those of the process groups that still have a member: Airflow's parts outlive a parent that was killed."""
    found = set()
    for process in psutil.process_iter():
        try:
            found.add(os.getpgid(process.pid))
        except ProcessLookupError:
            continue
    return found & set(leaders)


def _signal(group: int, sign: signal.Signals) -> None:
    try:
        os.killpg(group, sign)
    except ProcessLookupError:
        return


def _wait(local: Local, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not ready():
        gone = [name for name, p in local.processes.items() if _process(*p) is None]
        if gone or time.monotonic() > deadline:
            what = f"{', '.join(gone)} ended" if gone else f"not healthy after {WAIT:.0f} s"
            raise SetupError(f"{what}; stopped again", next_step=f"look at {local.folder}/logs")
        time.sleep(0.5)


def _listens(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


# --- files ----------------------------------------------------------------------------------------------------------------


def _state_file(folder: Path) -> Path:
    return folder / "up.json"


def _password(file: Path) -> str:
    """The password of the one user: made once, readable by us only."""
    if not file.is_file():
        file.touch(mode=0o600)
        file.write_text(json.dumps({USER: secrets.token_urlsafe(12)}))
    return str(json.loads(file.read_text())[USER])


def _secret(file: Path) -> str:
    if not file.is_file():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(48))
    return file.read_text()
