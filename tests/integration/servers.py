"""Real servers for tests: started on loopback and free ports, stopped by pid."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from rejoin.lake.config import LakeConfig
from rejoin.lake.session import static_settings


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


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


@contextmanager
def spark_connect(config: LakeConfig, directory: Path) -> Iterator[str]:
    """A Spark Connect server with this project's settings; yields its address."""
    port, log = free_port(), directory / "connect.log"
    settings = {k: v for k, v in static_settings(config).items() if k != "spark.app.name"}
    settings["spark.connect.grpc.binding.port"] = str(port)
    settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": "include"}
    environment.pop("SPARK_REMOTE", None)
    with log.open("wb") as out:
        # spark-submit becomes the JVM (exec), so the pid is the server's.
        process = subprocess.Popen([*command, "local"], stdout=out, stderr=out, env=environment)
        try:
            wait_for_port(port, process, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
