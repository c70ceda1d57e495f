"""A Spark Connect server that dies, hangs, comes back or wants a token, as its clients and whoever looks after it see it. One server for all of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from integration.forked import Forked
from integration.servers import wait_for_text
from integration.shop import Shop

from rejoin.airflow.local.server import free_port
from rejoin.connect.server import greets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOKEN = "only for this test"
ASLEEP = "SELECT java_method('java.lang.Thread', 'sleep', 600000L)"
CLIENT = """
import sys, time
from rejoin.errors import RejoinError
from rejoin.lake.spark import remote_session as remote
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session

remote.ANSWER, remote.EVERY = float(sys.argv[3]), 1.0
try:
    spark = session(lake_config(sys.argv[1]))
    print("session", flush=True)
    print(spark.sql(sys.argv[2]).collect(), flush=True)
except RejoinError as error:
    print(error, error.exit_code, flush=True)
"""
KEEPER = """
from rejoin.connect import server as connect

connect.EVERY, connect.SILENT = 0.5, 12.0  # the tests wait for them
connect.main()
"""


class Kept:
    """A server that is looked after, by its port."""

    def __init__(self, directory: Path) -> None:
        self.lake, self.port, self.log = str(directory / "lake"), free_port(), directory / "connect.log"
        self.address = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-c", KEEPER, "--lake", self.lake, "--port", str(self.port), "--restart"]
        environment = {**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}
        with self.log.open("wb") as out:
            self.keeper = subprocess.Popen(command, stdout=out, stderr=out, env=environment)

    @property
    def server(self) -> psutil.Process:
        """The JVM."""
        return psutil.Process(self.keeper.pid).children()[0]

    def is_up(self) -> None:
        """Waits until it answers."""
        deadline = time.monotonic() + 120
        while not greets(self.address):
            assert time.monotonic() < deadline, self.log.read_text()
            assert self.keeper.poll() is None, self.log.read_text()
            time.sleep(0.5)

    def client(self, sql: str, token: str | None = TOKEN, answer: float = 15.0) -> "subprocess.Popen[str]":
        """A process that runs one query, and gives the server ``answer`` seconds for what costs it nothing."""
        environment = {**os.environ, "SPARK_REMOTE": f"sc://{self.address}"}
        environment |= {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token} if token else {}
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, self.lake, sql, str(answer)], stdout=subprocess.PIPE, text=True, env=environment
        )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    made = Kept(tmp_path_factory.mktemp("kept"))
    try:
        made.is_up()
        yield made
    finally:
        below = psutil.Process(made.keeper.pid).children()
        made.keeper.terminate()
        assert made.keeper.wait(60) == 0
    assert not any(p.is_running() for p in below), "whoever looks after a server takes it along"


def said(client: "subprocess.Popen[str]") -> str:
    """What a client said until its end. Left to itself pyspark tries for ten minutes, or for ever."""
    try:
        return client.communicate(timeout=180)[0]
    finally:
        client.kill()


def test_a_token_is_asked_for_and_never_shown(kept: Kept) -> None:
    assert "count" in said(kept.client("SELECT 1 AS count"))
    for wrong in (None, "a guess"):
        told = said(kept.client("SELECT 1", token=wrong))
        assert told.startswith("SETUP ") and kept.address in told and "refuses our token" in told
    for process in (psutil.Process(kept.keeper.pid), kept.server):
        assert TOKEN not in " ".join(process.cmdline())
    assert TOKEN not in kept.log.read_text()


def test_a_server_that_is_killed_in_a_step_ends_the_step_in_seconds_and_is_started_again_on_its_port(kept: Kept) -> None:
    client = kept.client(ASLEEP)
    assert client.stdout is not None and client.stdout.readline() == "session\n"
    time.sleep(1)  # the query is sent
    kept.server.kill()
    told = said(client)
    assert told.startswith("SPARK_DOWN ") and f"at {kept.address}" in told and told.endswith(" 75\n")
    kept.is_up()
    assert "started again" in kept.log.read_text()


def test_a_server_that_hangs_ends_steps_in_seconds_and_is_replaced(kept: Kept) -> None:
    client, server = kept.client(ASLEEP, answer=4), kept.server
    assert client.stdout is not None and client.stdout.readline() == "session\n"
    time.sleep(1)
    server.send_signal(signal.SIGSTOP)
    late = kept.client("SELECT 1", answer=4)  # comes when it hangs already
    for told in (said(client), said(late)):
        assert told.startswith("SPARK_DOWN ") and f"{kept.address}" in told and told.endswith(" 75\n")
    wait_for_text("hangs", 1, kept.log, 60)
    server.wait(30)
    kept.is_up()


def test_a_run_that_finds_nobody_at_the_address_ends_with_75_and_names_it(tmp_path: Path) -> None:
    shop, port = Shop(tmp_path), free_port()
    environment = {**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{port}"}
    shop.next_batch()
    words = ["run", str(shop.file), "--lake", str(shop.lake), "--root", str(shop.root)]
    done = Forked("rejoin.cli", words, environment).wait(180)
    assert done.returncode == 75, done.stderr
    assert "SPARK_DOWN" in done.stderr and f"127.0.0.1:{port}" in done.stderr


def test_a_port_that_is_taken_and_a_server_that_never_comes_up_are_told_at_once(kept: Kept) -> None:
    def started(*options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "rejoin.connect", "--lake", kept.lake, "--restart", *options]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})

    taken = started("--port", str(kept.port))
    assert taken.returncode == 5 and f"port {kept.port} of 127.0.0.1 is taken" in taken.stderr
    assert started("--port", str(free_port()), "--memory", "no size at all").returncode == 1
