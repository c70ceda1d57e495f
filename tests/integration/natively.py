"""Services of docker-compose.yaml as plain processes of this machine: the same commands, settings and health checks, other addresses and paths.

What an image brings is replaced: PostgreSQL by Debian's (set up as its image does it), the object store by moto's server, which checks no keys.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from composed import ROOT, mounts, services
from integration.servers import wait_for_port

from rejoin.airflow.local.server import free_port

PORTS = {"metadata": 5432, "object-store": 8333, "api-server": 8080, "spark-connect": 15002, "source": 5432}
"""The services that listen, and where inside their containers."""

QUICK_START = ("SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR")
"""Variables of ``quick_java``."""
_ENV = re.compile(r"(\w+)=(\S+)")


class Natively:
    """Started services under ``directory``, each with a log of its name."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._running, self._started = directory, list[subprocess.Popen[bytes]](), set[str]()
        self.services, self.ports = services(), {name: free_port() for name in PORTS}
        self.root = directory / "rejoin"
        for name in ("dags", "landing", "plugins"):
            (self.root / name).mkdir(parents=True)
        for name in ("docker", "include", "jobs"):
            (self.root / name).symlink_to(ROOT / name)

    def environment(self, name: str) -> dict[str, str]:
        """What a service sees: the variables of its image and of the file, and nothing else of this process but where programs are."""
        image = (ROOT / "docker" / "Dockerfile").read_text().split("AS airflow")[0]
        given = dict(pair for line in re.findall(r"(?ms)^ENV (.*?[^\\])$", image) for pair in _ENV.findall(line))
        given.pop("REJOIN_UID")
        given |= self.services[name].get("environment", {})
        # Only the image of Spark Connect has Java: whoever else started it would fail.
        java = os.environ.get("JAVA_HOME") if name == "spark-connect" else "/nowhere"
        outside = {"LANG": "C.UTF-8"} | ({"JAVA_HOME": java} if java else {})
        if name == "spark-connect":
            outside |= {name: os.environ[name] for name in QUICK_START if name in os.environ}
        path = f"{Path(sys.executable).parent}:{_postgresql()}:{os.environ['PATH']}"
        return {**outside, "PATH": path, "HOME": str(self._directory), **{k: self._here(name, v) for k, v in given.items()}}

    def start(self, *names: str) -> None:
        """Starts services one after the other, each when what it depends on is healthy or done."""
        for name in names:
            assert self.services[name].get("depends_on", {}).keys() <= self._started, f"{name} before what it depends on"
            if self.services[name]["image"].startswith("postgres:"):
                self._postgresql(name)
            elif name == "object-store":
                self._run(name, [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.ports[name])])
                wait_for_port(self.ports[name], self._running[-1], self._log(name))
            elif "healthcheck" in self.services[name]:
                self._run(name, self._command(name))
                self.wait_until_healthy(name)
            else:
                self._run(name, self._command(name))
                assert self._running.pop().wait(120) == 0, self._log(name).read_text()[-3000:]
            self._started.add(name)

    def wait_until_healthy(self, name: str, seconds: float = 120) -> None:
        """Runs the service's own health check until it says yes."""
        check = [self._here(name, part) for part in self.services[name]["healthcheck"]["test"][1:]]
        environment, deadline = self.environment(name) | {"PGPORT": str(self.ports.get(name))}, time.monotonic() + seconds
        while subprocess.run(check, env=environment, capture_output=True, check=False).returncode:
            assert self._running[-1].poll() is None and time.monotonic() < deadline, f"{name}:\n{self._log(name).read_text()[-3000:]}"
            time.sleep(0.5)

    def stop(self) -> None:
        """Stops everything, the newest first, with the processes that it started."""
        for process in reversed(self._running):
            process.send_signal(signal.SIGINT if process.args[0].endswith("postgres") else signal.SIGTERM)  # type: ignore[index,union-attr]
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _kill_group(process.pid)
                process.wait(10)

    def _command(self, name: str) -> list[str]:
        return [self._here(name, part) for part in self.services[name].get("command", [])]

    def _here(self, name: str, text: str) -> str:
        """A text of a service with the addresses and paths of this machine."""
        if text == "0.0.0.0":
            return "127.0.0.1"
        if text == str(PORTS.get(name)):
            return str(self.ports[name])
        for other, port in PORTS.items():
            text = text.replace(f"{other}:{port}", f"127.0.0.1:{self.ports[other]}")
        if name in PORTS:
            text = text.replace(f"127.0.0.1:{PORTS[name]}", f"127.0.0.1:{self.ports[name]}")
        return text.replace("/opt/rejoin", str(self.root)).replace("/opt/airflow", str(self._directory / "airflow"))

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _run(self, name: str, command: list[str], **more: Any) -> None:
        with self._log(name).open("ab") as out:
            made = subprocess.Popen(
                command, stdout=out, stderr=out, env=self.environment(name), cwd=self._directory, start_new_session=True, **more
            )
        self._running.append(made)

    def _postgresql(self, name: str) -> None:
        """What the image's entry point does: a new data directory, its user with password, its database, then the script of docker/."""
        given, port = self.services[name]["environment"], str(self.ports[name])
        user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        folder = self._directory / f"{name}-files"
        folder.mkdir()
        (folder / "password").write_text(given["POSTGRES_PASSWORD"])
        if user:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        data = str(folder / "data")
        initdb = ["initdb", "-D", data, "--auth=scram-sha-256", f"--username={given['POSTGRES_USER']}", f"--pwfile={folder / 'password'}"]
        environment = self.environment(name) | {"PGHOST": "127.0.0.1", "PGPORT": port, "PGPASSWORD": given["POSTGRES_PASSWORD"]}
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, user=user, env=environment)
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "fsync": "off"}
        command = [str(_postgresql() / "postgres"), *self._command(name)[1:], "-D", data, *(f"--{k}={v}" for k, v in settings.items())]
        self._run(name, command, user=user)
        wait_for_port(int(port), self._running[-1], self._log(name))
        create = ["createdb", f"--username={given['POSTGRES_USER']}", given["POSTGRES_DB"]]
        script = next(
            outside for inside, outside in mounts(self.services[name]).items() if inside.startswith("/docker-entrypoint-initdb.d/")
        )
        for setup in (create, ["sh", str(ROOT / script)]):
            subprocess.run(setup, check=True, capture_output=True, env=environment)
        self.wait_until_healthy(name)


@contextmanager
def natively(directory: Path, *names: str) -> Iterator[Natively]:
    """The named services, started in this order and stopped at the end."""
    directory.chmod(0o711)  # PostgreSQL's user passes through
    made = Natively(directory)
    try:
        made.start(*names)
        yield made
    finally:
        made.stop()


def _postgresql() -> Path:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert binaries, "PostgreSQL is not installed: apt-get install postgresql (as .ci/run does)"
    return binaries[-1]


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
