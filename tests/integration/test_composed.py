"""The processes of docker-compose.yaml, with its settings, on this machine: Airflow runs a topology on Spark Connect, on tables in an object store.

No container engine is needed or used, so this says nothing of images, networks and volumes (docs/compose.md).
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
from composed import secrets
from integration.natively import Natively, natively
from integration.shop import Shop, folded, output

from rejoin.conduct import Topology
from rejoin.lake.config import lake_config
from rejoin.load import load
from rejoin.setup_check import fetch_jars

# Nine processes; on a busy machine of two cores a test took five minutes.
pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.airflow, pytest.mark.timeout(1500)]

DAG = """
import os

from airflow.sdk import Connection, dag, task


@dag(schedule=None, is_paused_upon_creation=False)
def shop():
    @task
    def run() -> str:
        from rejoin.conduct import Topology, run_topology
        from rejoin.lake.config import lake_config
        from rejoin.lake.session import session
        from rejoin.load import load

        spark = Connection.get("rejoin_spark")
        root = os.environ["REJOIN_ROOT"]
        topology = Topology(load(f"{root}/shop.py"), lake_config(os.environ["REJOIN_LAKE"]), root)
        run_topology(topology, lambda: session(topology.config), "airflow")
        return f"{spark.conn_type} sc://{spark.host}:{spark.port}"

    run()


shop()
"""


class Api:
    """Airflow's REST API, as its only user."""

    def __init__(self, url: str, password: str) -> None:
        self.url, self._token = url, ""
        self._token = self.call("/auth/token", {"username": "admin", "password": password})["access_token"]

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        request = Request(self.url + path, json.dumps(body).encode() if body is not None else None, headers)
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def when(self, path: str, ready: Callable[[Any], bool], seconds: float) -> Any:
        """The answer as soon as it is ready; 404 means not yet."""
        deadline, answer = time.monotonic() + seconds, None
        while time.monotonic() < deadline:
            try:
                answer = self.call(path)
                if ready(answer):
                    return answer
            except HTTPError as error:
                if error.code != 404:
                    raise
            time.sleep(1)
        raise AssertionError(f"{path} after {seconds} s: {answer}")


@pytest.fixture(scope="module")
def running() -> Iterator[Natively]:
    fetch_jars(s3=True)
    # Not pytest's own directory, which PostgreSQL's user may not enter.
    with (
        TemporaryDirectory(prefix="rejoin-compose-") as name,
        natively(Path(name), "metadata", "object-store", "airflow-init", "spark-connect") as made,
    ):
        yield made


@pytest.fixture(scope="module")
def shop(running: Natively) -> Shop:
    return Shop(running.root)


def tables(running: Natively, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Topology:
    """The topology with the lake as the containers see it, for reading in this process."""
    for name, value in running.environment("scheduler").items():
        if name.startswith(("AWS_", "LAKE_")):
            monkeypatch.setenv(name, value)
    topology = Topology(load(str(shop.file)), lake_config(str(running.root / "docker" / "lake.toml")), str(shop.root))
    assert topology.config.warehouse.startswith("s3://")
    return topology


def test_the_command_line_in_the_schedulers_container_runs_compacts_and_verifies(
    running: Natively, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejoin(*arguments: str) -> str:
        program = Path(sys.executable).with_name("rejoin")
        done = subprocess.run([program, *arguments], env=running.environment("scheduler"), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for _ in range(2):
        shop.next_batch()
        rejoin("run", str(shop.file))
        topology = tables(running, shop, monkeypatch)
        assert output(topology) == shop.expected() == folded(topology)
    rejoin("compact")
    assert output(tables(running, shop, monkeypatch)) == shop.expected()
    assert "0 differences" in rejoin("verify")


def test_the_source_database_lets_debeziums_user_follow_the_shops_tables(running: Natively) -> None:
    running.start("source")
    address = f"postgresql://debezium:{secrets()['DEBEZIUM_PASSWORD']}@127.0.0.1:{running.ports['source']}/source"
    with psycopg.connect(address, autocommit=True) as connection:
        published = connection.execute("SELECT tablename FROM pg_publication_tables WHERE pubname = 'rejoin' ORDER BY 1").fetchall()
        assert published == [("customers",), ("items",), ("orders",)]
        connection.execute("SELECT pg_create_logical_replication_slot('rejoin', 'pgoutput')")
        assert connection.execute("SELECT count(*) FROM shop.orders").fetchone() == (2,)
        connection.execute("SELECT pg_drop_replication_slot('rejoin')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM shop.orders")


def test_a_dag_runs_a_topology_through_spark_connect_on_the_object_store(
    running: Natively, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.next_batch()
    (running.root / "dags" / "shop_dag.py").write_text(DAG)
    running.start("api-server", "scheduler", "dag-processor", "triggerer")
    api = Api(f"http://127.0.0.1:{running.ports['api-server']}", secrets()["AIRFLOW_ADMIN_PASSWORD"])
    with pytest.raises(HTTPError, match="401"):
        Api(api.url, "admin")
    api.when("/api/v2/dags/shop", lambda dag: not dag["is_paused"], 90)
    made = api.call("/api/v2/dags/shop/dagRuns", {"logical_date": None})
    run = f"/api/v2/dags/shop/dagRuns/{made['dag_run_id']}"
    done = api.when(run, lambda found: found["state"] in {"success", "failed"}, 240)
    assert done["state"] == "success", api.call(f"{run}/taskInstances/run/logs/1?full_content=true")
    remote = running.environment("scheduler")["SPARK_REMOTE"]
    assert api.call(f"{run}/taskInstances/run/xcomEntries/return_value")["value"] == f"spark_connect {remote}"
    topology = tables(running, shop, monkeypatch)
    assert output(topology) == shop.expected() == folded(topology)
