"""The processes of docker-compose.yaml, with its settings, on this machine: Airflow runs a topology on Spark Connect, on tables in an object store.

No container engine is needed or used, so this says nothing of images, networks and volumes (docs/compose.md).
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest
from composed import secrets
from integration.natively import Natively, natively
from integration.shop import SOURCE, Shop, folded, output

from rejoin.airflow.local.client import Client
from rejoin.lake.config import lake_config
from rejoin.lake.spark.setup_check import fetch_jars
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

# Nine processes; on a busy machine of two cores a test took five minutes.
pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.airflow, pytest.mark.timeout(1500)]

DAG = """
from rejoin.airflow import to_dag

dag = to_dag(shop)
"""


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


def test_spark_refuses_whoever_does_not_have_the_token(running: Natively) -> None:
    program = Path(sys.executable).with_name("rejoin")
    environment = running.environment("scheduler") | {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "somebody else's"}
    done = subprocess.run([program, "verify"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 5 and "SETUP" in done.stderr and "token" in done.stderr, done.stdout + done.stderr


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


@pytest.mark.nightly
def test_a_dag_runs_a_topology_through_spark_connect_on_the_object_store(
    running: Natively, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.next_batch()
    (running.root / "dags" / "shop.py").write_text(SOURCE + DAG)
    running.start("api-server", "scheduler", "dag-processor", "triggerer")
    url = f"http://127.0.0.1:{running.ports['api-server']}"
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        Client(url, "admin", "admin").call("GET", "/api/v2/dags")
    api = Client(url, "admin", secrets()["AIRFLOW_ADMIN_PASSWORD"])
    deadline = time.monotonic() + 120
    while not api.request("GET", "/api/v2/dags/shop").is_success:
        assert time.monotonic() < deadline, "the DAG is not there"
        time.sleep(1)
    api.pause("shop", paused=False)
    run = api.trigger("shop", "composed")
    assert api.follow("shop", run, lambda _: None) == "success", api.states("shop", run)
    done = api.call("GET", f"/api/v2/dags/shop/dagRuns/{run}/taskInstances/resolve.enriched/xcomEntries/return_value", deserialize=True)
    assert done["value"]["engine"] == "spark connect"
    topology = tables(running, shop, monkeypatch)
    assert output(topology) == shop.expected() == folded(topology)
