"""docker-compose.yaml in real containers: podman and podman-compose, with settings, storage and a network namespace that end with the test.

Everything that podman makes is below one directory, and its bridges, addresses and rules are in the namespace, so the machine's network stays as it is.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from composed import ROOT
from integration.stand_ins import STAND_INS, bases, settings_of_pip, stand_in

TOOLS = ("podman", "runc", "buildah", "iptables", "nftables", "debootstrap", "netavark", "aardvark-dns", "catatonit", "iproute2")
"""Packages of Debian."""
COMPOSE = "podman-compose==1.6.0"
"""Debian 12's knows neither profiles nor conditions."""
FILES = ("dags", "docker", "include", "jobs", "plugins", ".dockerignore", "LICENSE", "README.md", "docker-compose.yaml", "pyproject.toml")
CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
init_path = "/usr/bin/catatonit"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
static_dir = "{0}/libpod"
tmp_dir = "{0}/tmp"
volume_path = "{0}/volumes"
[network]
network_backend = "netavark"
network_config_dir = "{0}/networks"
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{0}/storage"
runroot = "{0}/run"
"""
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def what_is_missing() -> str:
    """Why containers cannot run here; "" if they can, once ``install`` has been called."""
    if os.geteuid() != 0:
        return "containers are made by root here"
    if not (shutil.which("apt-get") and Path("/etc/debian_version").exists()):
        return "the base images are made from Debian's packages, on a Debian"
    if not (shutil.which("go") and shutil.which("mvn")):
        return "SeaweedFS is built with go (1.25 or newer), Debezium Server is fetched with mvn"
    return ""


def install(directory: Path) -> None:
    """Installs what is missing of the tools, and podman-compose below the directory."""
    known = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *TOOLS], capture_output=True, text=True, check=False)
    missing = [name for name in TOOLS if f"{name} installed" not in known.stdout.splitlines()]
    if missing:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
        subprocess.run(["apt-get", "install", "-qq", "--no-install-recommends", *missing], check=True, capture_output=True, env=environment)
    subprocess.run([sys.executable, "-m", "venv", directory / "compose"], check=True)
    subprocess.run([directory / "compose" / "bin" / "pip", "install", "--quiet", COMPOSE], check=True)


class Containers:
    """The services of a copy of this checkout, under ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.root, self.namespace = directory, directory / "rejoin", f"rejoin-{os.getpid()}"
        for name, text in (("containers.conf", CONTAINERS), ("storage.conf", STORAGE)):
            (directory / name).write_text(text.format(directory))
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
            "PYTHONPATH": str(ROOT / "tests"),
            "PATH": f"{directory}:{os.environ['PATH']}",
        }
        self._script("podman-within", f'exec {sys.executable} -m integration.podman_within {self.namespace} "$@"')
        # What docker/land.sh calls.
        self._script("docker", f'shift; exec {self._compose()[0]} --podman-path {directory}/podman-within "$@"')

    def check_out(self) -> None:
        """Copies what the images and the services read, and makes the secrets as a user does."""
        self.root.mkdir()
        for name in (*FILES, "requirements.txt"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(ROOT / name, self.root)
        self.root.chmod(0o755)
        (self.root / "landing").mkdir()
        subprocess.run([sys.executable, "docker/make_env.py", ".env"], cwd=self.root, check=True, capture_output=True)

    def build(self) -> None:
        """Makes the stand-ins, then both images by docker/Dockerfile as it stands."""
        bases(self.directory, self.podman)
        for name in STAND_INS:
            stand_in(name, self.directory, self.podman)
        mounted = " ".join(f"--volume {path}:{inside}:ro" for path, inside in settings_of_pip(self.directory).items())
        self.compose("build", before=[f"--podman-build-args=--network host {mounted}"], seconds=2400)

    def podman(self, *arguments: str, seconds: float = 600, **more: Any) -> str:
        """What podman says; it must succeed."""
        return self._run([str(self.directory / "podman-within"), *arguments], seconds, **more)

    def compose(self, *arguments: str, before: list[str] | None = None, seconds: float = 600) -> str:
        """What podman-compose says; it must succeed."""
        return self._run([*self._compose(), *(before or []), *arguments], seconds)

    def inside(self, name: str, *command: str, seconds: float = 600) -> str:
        """What a command in a service's container says; it must succeed."""
        return self.podman("exec", self.container(name), *command, seconds=seconds)

    def container(self, name: str) -> str:
        return f"rejoin_{name}_1"

    def up(self, *names: str, profile: str = "") -> None:
        """``docker compose up --detach --wait``, for all services, or only these."""
        before = [f"--profile={profile}"] if profile else []
        self.compose("up", "--detach", *names, before=before)
        self.podman("wait", "--condition=healthy", *map(self.container, names or self.running()))

    def running(self) -> list[str]:
        """The services whose containers run."""
        return self.podman("ps", "--format", '{{index .Labels "com.docker.compose.service"}}').split()

    def address(self, name: str) -> str:
        """Of a service, within the namespace."""
        [inspected] = json.loads(self.podman("inspect", self.container(name)))
        [network] = inspected["NetworkSettings"]["Networks"].values()
        return str(network["IPAddress"])

    def memory(self) -> dict[str, str]:
        """What each running container holds, as ``podman stats`` says it."""
        said = self.podman("stats", "--no-stream", "--no-reset", "--format", "{{.Name}}\t{{.MemUsage}}")
        return dict(line.split("\t") for line in said.splitlines())

    def logs(self) -> str:
        """The end of every container's log."""
        names = self.podman("ps", "--all", "--format", "{{.Names}}").split()
        return "\n".join(f"== {name}\n{self.podman('logs', '--tail', '25', name, stderr=subprocess.STDOUT)}" for name in names)

    def start_network(self) -> None:
        subprocess.run(["ip", "netns", "add", self.namespace], check=True)
        subprocess.run(["ip", "-n", self.namespace, "link", "set", "lo", "up"], check=True)

    def remove(self) -> None:
        """Stops and removes all containers, images, networks and volumes, and the namespace."""
        for command in (["pod", "rm", "--all", "--force", "--time=5"], ["rm", "--all", "--force", "--time=5", "--volumes"]):
            with suppress(AssertionError):
                self.podman(*command)
        # The name server of the containers' network ends with the last of them, unless it was killed.
        for process in subprocess.run(["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(process), 15)
        subprocess.run(["ip", "netns", "delete", self.namespace], check=False)
        for storage in (self.directory / "storage" / "overlay", self.directory / "storage"):
            subprocess.run(["umount", "--quiet", storage], check=False)

    @contextmanager
    def network(self) -> Iterator[None]:
        """Within, this thread and what it starts are in the containers' network, where a published port is one of 127.0.0.1."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as before, Path("/run/netns", self.namespace).open() as within:
            assert libc.setns(within.fileno(), NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(before.fileno(), NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())

    def _compose(self) -> list[str]:
        return [str(self.directory / "compose" / "bin" / "podman-compose"), "--podman-path", str(self.directory / "podman-within")]

    def _script(self, name: str, line: str) -> None:
        script = self.directory / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)

    def _run(self, command: list[str], seconds: float, **more: Any) -> str:
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as errors:
            done = subprocess.run(
                command,
                cwd=self.root if self.root.exists() else self.directory,
                env=self.environment,
                timeout=seconds,
                check=False,
                text=True,
                **{"stdout": subprocess.PIPE, "stderr": errors, **more},
            )
            errors.seek(0)
            said = errors.read()
        print(f"{time.monotonic() - began:6.1f} s  {' '.join(command[1:])[:150]}")
        assert done.returncode == 0, f"{' '.join(command)}\n{(done.stdout or '')[-3000:]}\n{said[-6000:]}"
        return str(done.stdout)


@contextmanager
def containers() -> Iterator[Containers]:
    """The two images, built, and a network for their containers; everything is removed at the end, whatever happened."""
    names = Path("/run/containers/networks/aardvark-dns/aardvark.pid")
    assert not (names.exists() and Path("/proc", names.read_text().strip()).exists()), (
        "other containers of podman run: it has one name server"
    )
    with tempfile.TemporaryDirectory(prefix="rejoin-containers-", ignore_cleanup_errors=True) as name:
        install(Path(name))
        made = Containers(Path(name))
        made.start_network()
        try:
            made.check_out()
            made.build()
            yield made
        finally:
            made.remove()
