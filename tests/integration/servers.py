"""Real servers for tests: started on loopback and free ports, stopped by pid."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pyspark
from integration import kafka_jars

from rejoin.airflow.local import free_port
from rejoin.lake.config import LakeConfig


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"server on port {port} did not come up:\n{log.read_text()[-3000:]}")


def wait_for_text(text: str, times: int, log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while log.read_text().count(text) < times:
        assert time.monotonic() < deadline, f"not {times} times {text!r} in:\n{log.read_text()[-3000:]}"
        time.sleep(0.2)


class ConnectServer:
    """A Spark Connect server with this project's settings, on a port that it keeps when it is started again."""

    def __init__(self, config: LakeConfig, directory: Path) -> None:
        self.port, self._config, self._log = free_port(), config, directory / "connect.log"
        self.address = f"sc://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rejoin.connect", "--lake", self._config.location, "--port", str(self.port)]
        with self._log.open("ab") as out:
            # Each command becomes the next one (exec), so the pid is the server's.
            self._process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": "include"})
        try:
            wait_for_port(self.port, self._process, self._log)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def spark_connect(config: LakeConfig, directory: Path) -> Iterator[str]:
    """A Spark Connect server; yields its address."""
    server = ConnectServer(config, directory)
    try:
        yield server.address
    finally:
        server.stop()


@contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """A standalone Spark cluster of one master and some workers of one core, of the installed pyspark; yields the master's URL."""
    home, port = Path(pyspark.__file__).parent, free_port()
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("SPARK_CONF_DIR", None)  # a session of this process has set it: its logging is too quiet to be waited for
    url, package = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    master = [f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    commands = [master]
    for number in range(workers):
        folder = str(directory / f"worker{number}")
        commands.append([f"{package}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "2g", "-d", folder, url])
    processes: list[subprocess.Popen[bytes]] = []
    log = directory / "cluster.log"
    try:
        with log.open("wb") as out:
            for command in commands:
                made = subprocess.Popen([str(home / "bin" / "spark-class"), *command], stdout=out, stderr=out, env=environment)
                processes.append(made)
                wait_for_port(port, processes[0], log)
            wait_for_text("Successfully registered with master", workers, log)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server with an empty database; yields its SQLAlchemy URL."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert binaries, "PostgreSQL is not installed: apt-get install postgresql (as .ci/run does)"
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with tempfile.TemporaryDirectory() as name:
        directory, port = Path(name), free_port()
        if user:
            shutil.chown(directory, user)
        data, log = directory / "data", directory / "postgres.log"
        initdb = [str(binaries[-1] / "initdb"), "-D", str(data), "-A", "trust", "-U", "rejoin"]
        subprocess.run(initdb, check=True, capture_output=True, cwd="/", user=user)
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": directory, "fsync": "off"}
        command = [str(binaries[-1] / "postgres"), "-D", str(data), *(f"--{k}={v}" for k, v in settings.items())]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, cwd="/", user=user)
            try:
                wait_for_port(port, process, log)
                _wait_until_started(f"postgresql://rejoin@127.0.0.1:{port}/postgres")
                yield f"postgresql+psycopg://rejoin@127.0.0.1:{port}/postgres"
            finally:
                process.send_signal(signal.SIGINT)  # fast stop
                process.wait(30)


def _wait_until_started(url: str) -> None:
    """PostgreSQL listens before it has started up, and refuses whoever comes in between."""
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


KAFKA_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "default.replication.factor": 1,
}


class KafkaServer:
    """One broker (KRaft) that can be stopped and started again with what it has stored."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._class_path = directory, kafka_jars.class_path()
        self.port, controller = free_port(), free_port()
        self._properties, self._log = directory / "server.properties", directory / "kafka.log"
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}"
        own = {"listeners": listeners, "controller.quorum.voters": f"1@127.0.0.1:{controller}", "log.dirs": directory / "data"}
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in {**KAFKA_SETTINGS, **own}.items()))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_ = ["java", "-cp", self._class_path, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c"]
        subprocess.run([*format_, str(self._properties)], check=True, capture_output=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def class_path(self) -> str:
        return self._class_path

    def start(self) -> None:
        """Starts the broker and waits until it answers."""
        command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self._class_path]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(self._properties)], stdout=out, stderr=out)
        wait_for_port(self.port, self._process, self._log)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stops it."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def signal(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)


@contextmanager
def kafka(directory: Path) -> Iterator[KafkaServer]:
    """A running broker."""
    server = KafkaServer(directory)
    try:
        server.start()
        yield server
    finally:
        with suppress(AssertionError):
            server.signal(signal.SIGCONT)
        server.stop()
