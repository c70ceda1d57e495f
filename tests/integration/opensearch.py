"""A real OpenSearch server for tests, of one node: its modules are laid out as in its own archive, of which only the one for HTTP is needed."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration import server_jars
from integration.servers import wait_for_port

from rejoin.airflow.local.server import free_port

VERSION = server_jars.OPENSEARCH[0].rpartition(":")[2]
HTTP = ("netty-", "transport-netty4-client-")
"""What the jars of the module for HTTP begin with; the rest is the server's own class path."""
MODULE = f"""
name=transport-netty4
description=HTTP
version={VERSION}
opensearch.version={VERSION}
java.version=11
classname=org.opensearch.transport.Netty4Plugin
"""
SETTINGS = {
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "bootstrap.system_call_filter": "false",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "action.destructive_requires_name": "false",
}
LOGGING = """
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d][%p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class OpenSearchServer:
    """A running server: its URL, and what it answers."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def __call__(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer to a request; an error too is an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                found = error.read()
        made: dict[str, Any] = json.loads(found or b"{}")
        return made

    def documents(self, index: str) -> dict[str, dict[str, Any]]:
        """All documents of an index by their ids."""
        self("POST", f"{index}/_refresh")
        found = self("POST", f"{index}/_search", {"size": 10_000, "version": True})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


@contextmanager
def opensearch(directory: Path) -> Iterator[OpenSearchServer]:
    """A server without any index, stopped at the end."""
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root, too
    # In memory where there is such a folder: a server writes its state to the disk for every index that it makes.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        home, port, log = Path(name), free_port(), directory / "opensearch.log"
        class_path = _laid_out(home, port)
        if user:
            for path in (home, *home.rglob("*")):
                shutil.chown(path, user)
        java = [
            "java",
            "-Xms256m",
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xlog:disable",
            "-Djava.security.manager=allow",
        ]
        told = [f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={home / 'config'}", "-Dopensearch.distribution.type=tar"]
        with log.open("wb") as out:
            command = [*java, *told, "-cp", class_path, "org.opensearch.bootstrap.OpenSearch"]
            process = subprocess.Popen(command, stdout=out, stderr=out, cwd="/", user=user)
            try:
                wait_for_port(port, process, log)
                yield OpenSearchServer(port)
            finally:
                process.kill()  # nothing of it is needed again
                process.wait(60)


def _laid_out(home: Path, port: int) -> str:
    """Makes the server's folders; gives its class path."""
    config, own, module = home / "config", home / "lib", home / "modules" / "transport-netty4"
    for folder in (config, own, module, home / "plugins"):
        folder.mkdir(parents=True)
    for jar in server_jars.fetch(server_jars.OPENSEARCH).glob("*.jar"):
        name = jar.name.partition("_")[2]  # Ivy writes the group before it, and the server gives rights by the name
        shutil.copy(jar, (module if name.startswith(HTTP) else own) / name)
    (module / "plugin-descriptor.properties").write_text(MODULE)
    (module / "plugin-security.policy").write_text("grant { permission java.security.AllPermission; };\n")
    (config / "log4j2.properties").write_text(LOGGING)
    stated = {**SETTINGS, "http.port": port, "transport.port": free_port(), "path.data": home / "data", "path.logs": home / "logs"}
    (config / "opensearch.yml").write_text("".join(f"{name}: {value}\n" for name, value in stated.items()))
    return f"{own}/*"
