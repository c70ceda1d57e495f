"""Airflow's API server with this project's plugin, on SQLite, loopback and a free port; no scheduler, so no task ever runs."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

from servers import wait_for_port

from rejoin.airflow.local.server import free_port

ROOT = Path(__file__).parents[2]
PASSWORDS = {"admin": "open sesame", "viewer": "only looking", "stranger": "passing by"}


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    text: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Airflow:
    """A running server."""

    url: str
    log: Path

    def token(self, user: str) -> str:
        """A bearer token, for the password that everybody knows here."""
        body = {"username": user, "password": PASSWORDS[user]}
        return str(json.loads(self.ask("/auth/token", body=body).text)["access_token"])

    def ask(self, path: str, token: str | None = None, body: dict[str, object] | None = None, method: str | None = None) -> Answer:
        """One request; redirects are answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=60) as answer:
                return Answer(answer.status, answer.read().decode(), dict(answer.headers))
        except HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(), dict(error.headers))


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@contextmanager
def airflow(directory: Path, lake: str, dags: Path) -> Iterator[Airflow]:
    """Starts the server and stops it again."""
    home, port = directory / "airflow", free_port()
    home.mkdir()
    passwords, log = home / "passwords.json", home / "api.log"
    passwords.write_text(json.dumps(PASSWORDS))
    settings = {
        "API__BASE_URL": f"http://127.0.0.1:{port}",
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": "x" * 64,
        "CORE__AUTH_MANAGER": "picky_auth.PickyAuthManager",
        "CORE__DAGS_FOLDER": str(dags),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer,stranger:viewer",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
    environment |= {f"AIRFLOW__{k}": v for k, v in settings.items()}
    environment |= {
        "AIRFLOW_HOME": str(home),
        "REJOIN_LAKE": lake,
        "REJOIN_ROOT": str(directory),
        "REJOIN_FRESH_WITHIN": "2",
        "PYTHONPATH": f"{ROOT / 'include'}:{Path(__file__).parent}",
    }
    command = [sys.executable, "-m", "airflow"]
    with log.open("wb") as out:
        for arguments in (["db", "migrate"], ["dags", "reserialize"]):
            subprocess.run([*command, *arguments], check=True, stdout=out, stderr=out, env=environment, cwd=home)
        # A session of its own: the server starts workers, which have to end with it.
        server = subprocess.Popen([*command, "api-server"], stdout=out, stderr=out, env=environment, cwd=home, start_new_session=True)
        try:
            wait_for_port(port, server, log)
            yield Airflow(f"http://127.0.0.1:{port}", log)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait(10)
