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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pyspark
from integration import server_jars
from integration.hosts import HERE, Host

from rejoin.airflow.local.server import free_port
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


class SparkCluster:
    """A standalone Spark cluster of the installed pyspark: a master, and workers of one core each.

    Args:
        directory: for logs and what executors write; ``log`` is that of master and workers.
        master: where the master is.
        workers: where the workers are.
    """

    def __init__(self, directory: Path, master: Host = HERE, workers: Sequence[Host] = (HERE, HERE)) -> None:
        self._directory, self._home, self.log = directory, Path(pyspark.__file__).parent, directory / "cluster.log"
        self._port, self._hosts = free_port(), workers
        self.url = f"spark://{master.address}:{self._port}"
        self._running: list[subprocess.Popen[bytes]] = []
        self.log.touch()
        try:
            self._start(master, "master.Master", "--port", str(self._port), "--webui-port", "0")
            wait_for_text("New state: ALIVE", 1, self.log)
            self.workers = [self.worker(host) for host in workers]
            wait_for_text("Successfully registered with master", len(workers), self.log)
        except BaseException:
            self.stop()
            raise

    def worker(self, host: Host) -> subprocess.Popen[bytes]:
        """Starts one more worker."""
        folder = str(self._directory / f"worker{len(self._running)}")
        return self._start(host, "worker.Worker", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", folder, self.url)

    def lose(self, number: int) -> None:
        """Kills a worker with its executors, and starts another one in its place, which the master takes up when it is ready."""
        worker = self.workers[number]
        executors = self.executors(worker)
        worker.kill()
        for process in executors:
            process.kill()
        worker.wait(30)
        self.workers[number] = self.worker(self._hosts[number])

    @staticmethod
    def executors(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """The JVMs of a worker's executors."""
        found = []
        for process in psutil.Process(worker.pid).children():
            with suppress(psutil.Error):  # one that has just ended
                if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def logs(self) -> list[Path]:
        """What executors wrote to their output."""
        return [*self._directory.glob("worker*/app-*/*/std*")]

    def stop(self) -> None:
        """Stops everything that is still there."""
        for process in reversed(self._running):
            process.terminate()
            process.wait(30)

    def _start(self, host: Host, what: str, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": host.address, "SPARK_DAEMON_MEMORY": "256m"}
        # A session of this process, or the tests' Java, has set it: its logging is too quiet to be waited for. And executors find rejoin where it
        # is installed.
        for name in ("SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYTHONPATH"):
            environment.pop(name, None)
        with self.log.open("ab") as out:
            # Each command becomes the next one (exec), so the pid is the JVM's.
            where = ("--host", host.address)
            command = host.command(self._home / "bin" / "spark-class", f"org.apache.spark.deploy.{what}", *where, *words)
            self._running.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment))
        return self._running[-1]


@contextmanager
def spark_cluster(directory: Path, master: Host = HERE, workers: Sequence[Host] = (HERE, HERE)) -> Iterator[SparkCluster]:
    """A cluster, stopped at the end."""
    cluster = SparkCluster(directory, master, workers)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def postgres(**settings: str) -> Iterator[str]:
    """A PostgreSQL server with an empty database and these settings; yields its SQLAlchemy URL."""
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
        stated = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": directory, "fsync": "off", **settings}
        command = [str(binaries[-1] / "postgres"), "-D", str(data), *(f"--{k}={v}" for k, v in stated.items())]
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
    # After a kill the controller takes the broker back only when its session is over; until then nothing that it answers is to be relied on.
    "broker.session.timeout.ms": 1500,
    "broker.heartbeat.interval.ms": 300,
}


class KafkaServer:
    """One broker (KRaft) that can be stopped and started again with what it has stored."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._class_path = directory, server_jars.class_path()
        self.port, controller = free_port(), free_port()
        self._properties, self._log = directory / "server.properties", directory / "kafka.log"
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}"
        own = {"listeners": listeners, "controller.quorum.voters": f"1@127.0.0.1:{controller}", "log.dirs": directory / "data"}
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in {**KAFKA_SETTINGS, **own}.items()))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_ = ["java", "-cp", self._class_path, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c"]
        subprocess.run([*format_, str(self._properties)], check=True, capture_output=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def class_path(self) -> str:
        return self._class_path

    def start(self) -> None:
        """Starts the broker and waits until it answers, as a member of its cluster."""
        command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self._class_path]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(self._properties)], stdout=out, stderr=out)
        wait_for_port(self.port, self._process, self._log)
        self._starts += 1
        wait_for_text("Transition from STARTING to STARTED", self._starts, self._log)

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
