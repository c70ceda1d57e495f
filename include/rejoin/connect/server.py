"""A Spark Connect server for one lake, in the place of this process: ``python -m rejoin.connect``; with ``--restart`` below it, looked after.

It has the settings of a session inside a process (``lake/spark/session.py``), so a step gives the same tables either way.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click

from rejoin.errors import RejoinError, SetupError
from rejoin.lake.config import lake_config
from rejoin.lake.spark.setup_check import java_problem

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable that Spark's server and its clients read the token from."""
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SETTINGS = b"\x04"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + SETTINGS + b"\0" * 5
"""How HTTP/2, and with it gRPC, begins: the preface and a frame of settings, which the other side answers with its own (RFC 9113, 3.4).
A client of gRPC would do the same with threads and locks, which a process that ends by a signal does not survive."""
EVERY = 3.0
"""Seconds between two looks at a server that is looked after."""
ANSWER = 5.0
"""Seconds that it may take to greet a new connection."""
SILENT = 20.0
"""Seconds without a greeting after which it hangs."""
STARTING = 180.0
"""The same for a server that has not greeted anybody yet."""
LONGEST = 30.0
"""The longest pause before a server that does not come up is started again."""


@click.command(
    help="Serves Spark Connect for the lake until it is stopped. Clients need the token in SPARK_CONNECT_AUTHENTICATE_TOKEN, if that is set here."
)
@click.option("--lake", "location", envvar="REJOIN_LAKE", default="lake", show_default=True)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. Whoever reaches it runs code, unless there is a token."
)
@click.option("--port", default=15002, show_default=True)
@click.option("--memory", default="4g", show_default=True, help="Heap of the server's JVM.")
@click.option("--restart", is_flag=True, help="Stay, and start the server again on its port when it ends or hangs.")
def main(location: str, host: str, port: int, memory: str, *, restart: bool) -> None:
    reached = "127.0.0.1" if host == "0.0.0.0" else host
    try:
        if listens(reached, port):
            raise SetupError(f"port {port} of {reached} is taken", next_step="pass another one: --port 15003")
        command, environment = server(location, host, port, memory)
    except RejoinError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    if restart:
        sys.exit(look_after(command, environment, f"{reached}:{port}"))
    os.execve(command[0], command, environment)


def server(location: str, host: str, port: int, memory: str) -> tuple[list[str], dict[str, str]]:
    """The command that becomes the server, and its environment.

    Raises:
        SetupError: no Java 17 or 21, a jar is missing, or ``location`` names no lake.
    """
    from rejoin.lake.spark.session import properties, spark_submit, static_settings, worker_python

    if problem := java_problem():
        raise SetupError(problem)
    config = lake_config(location)
    settings = static_settings(config) | {
        "spark.driver.memory": memory,
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
    }
    file = os.memfd_create("settings", flags=0)  # a file of memory, that ends with the server
    os.write(file, properties(settings).encode())
    submit = spark_submit()
    command = [submit, "--properties-file", f"/dev/fd/{file}", "--class", SERVER, "local"]
    environment = {**os.environ, "SPARK_HOME": str(Path(submit).parents[1]), "PYSPARK_PYTHON": worker_python(config)}
    environment.pop("SPARK_REMOTE", None)
    environment.setdefault("SPARK_CONF_DIR", str(Path(__file__).parents[1] / "lake" / "spark" / "spark_conf"))
    return command, environment


def look_after(command: list[str], environment: dict[str, str], address: str) -> int:
    """Runs the server until this process is told to end, and starts it again when it ends or hangs.

    Returns:
        The exit code of a server that ended before it ever answered: starting it again would not help.
    """
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: sys.exit(0))
    answered, pause = False, 1.0
    while True:
        process = subprocess.Popen(command, env=environment, close_fds=False)  # its settings are an open file of ours
        try:
            came_up = _attend(process, address)
        finally:
            _end(process)
        answered, pause = answered or came_up, 1.0 if came_up else min(2 * pause, LONGEST)
        if not answered:
            return process.returncode or 1
        _say(f"the server at {address} ended with {process.returncode}; it is started again in {pause:.0f} s")
        time.sleep(pause)


def _attend(process: "subprocess.Popen[bytes]", address: str) -> bool:
    """Returns when the server has ended, or hangs; whether it has ever answered."""
    came_up, heard = False, time.monotonic()
    while process.poll() is None:
        if greets(address):
            came_up, heard = True, time.monotonic()
        elif time.monotonic() - heard > (SILENT if came_up else STARTING):
            _say(f"the server at {address} hangs: no answer for {time.monotonic() - heard:.0f} s")
            process.kill()
            break
        time.sleep(EVERY)
    return came_up


def listens(host: str, port: int) -> bool:
    """Whether a port is taken."""
    with socket.socket() as s:
        s.settimeout(ANSWER)
        return s.connect_ex((host, port)) == 0


def greets(address: str) -> bool:
    """Whether something at ``host:port`` takes a new connection as gRPC does: the port of a process that hangs still accepts, and stays silent."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER) as s:
            s.sendall(PREFACE)
            return s.recv(4)[3:] == SETTINGS
    except OSError:
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)


def _say(text: str) -> None:
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", err=True)
