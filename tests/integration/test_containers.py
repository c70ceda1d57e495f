"""docker-compose.yaml as it stands, in real containers, of images that docker/Dockerfile built: what it runs, what is killed, what is there after a stop.

Base images, and the images of others, are stand-ins under the same names (``stand_ins.py`` says of what). Everything is removed at the end.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from composed import ROOT
from integration.containers import Containers, containers, what_is_missing
from integration.shop import SOURCE, Row, Shop

from rejoin.airflow.local.client import Client

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.airflow,
    pytest.mark.postgres,
    pytest.mark.kafka,
    pytest.mark.debezium,
    pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing()),
    pytest.mark.timeout(5400),  # most of it builds images
]

NAME = "composed"  # the example in dags/ is called shop
DAG = """
from rejoin.airflow import to_dag

dag = to_dag(shop)
"""


class Composed:
    """The running services, a shop that is landed for them, and Airflow's API as a user on this machine has it."""

    def __init__(self, made: Containers) -> None:
        self.made = made
        self.secrets = dict(line.split("=", 1) for line in (made.root / ".env").read_text().splitlines())
        text = SOURCE.replace('Topology("shop")', f'Topology("{NAME}")')
        self.shop = Shop(made.root)
        self.shop.file.write_text(text)
        (made.root / "dags" / f"{NAME}.py").write_text(text + DAG)
        self.api = Client("http://127.0.0.1:8080", "admin", self.secrets["AIRFLOW_ADMIN_PASSWORD"])

    def run(self, name: str, look: Callable[[dict[str, str]], None] = lambda _: None) -> str:
        """Lands a batch, starts a DAG run over the API and returns how it ended; ``look`` sees the tasks on the way."""
        self.shop.next_batch()
        with self.made.network():
            deadline = time.monotonic() + 180
            while not self.api.request("GET", f"/api/v2/dags/{NAME}").is_success:
                assert time.monotonic() < deadline, "the DAG is not there"
                time.sleep(1)
            self.api.pause(NAME, paused=False)
            return self.api.follow(NAME, self.api.trigger(NAME, name), look)

    def rows(self) -> tuple[dict[object, Row], dict[object, Row]]:
        """The output, and its changes folded, from the object store."""
        known = {
            "LAKE_DATABASE": f"postgresql+psycopg://lake:{self.secrets['LAKE_PASSWORD']}@{self.made.address('metadata')}:5432/lake",
            "LAKE_S3_ENDPOINT": "http://127.0.0.1:8333",
            "AWS_ACCESS_KEY_ID": self.secrets["S3_ACCESS_KEY"],
            "AWS_SECRET_ACCESS_KEY": self.secrets["S3_SECRET_KEY"],
            "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'include'}",
        }
        script = [sys.executable, "-m", "integration.stored_rows", self.shop.file, self.made.root / "docker" / "lake.toml", self.made.root]
        with self.made.network():
            done = subprocess.run(script, env={**os.environ, **known}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        stored, folded = ({row["id"]: row for row in rows} for rows in json.loads(done.stdout.splitlines()[-1]))
        return stored, folded

    def is_right(self) -> None:
        stored, folded = self.rows()
        assert stored == self.shop.expected() == folded


@pytest.fixture(scope="module")
def composed() -> Iterator[Composed]:
    with containers() as made:
        here = Composed(made)
        try:
            made.up()
            yield here
            print(json.dumps(made.memory(), indent=1))
        except BaseException:
            print(made.logs())
            raise


def killing(composed: Composed, service: str) -> Callable[[dict[str, str]], None]:
    """Kills a service's container once, as soon as a task of the run is being worked on, and starts it again as a user does."""
    killed = False

    def look(states: dict[str, str]) -> None:
        nonlocal killed
        if not killed and "running" in states.values():
            killed = True
            composed.made.podman("kill", composed.made.container(service))
            assert service not in composed.made.running()
            composed.made.up(service)

    return look


def test_a_dag_runs_and_nobody_comes_in_without_a_key(composed: Composed) -> None:
    assert composed.made.podman("inspect", "--format={{.State.ExitCode}}", composed.made.container("airflow-init")).strip() == "0"
    assert composed.run("first") == "success", composed.made.logs()
    composed.is_right()
    with composed.made.network():
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            Client("http://127.0.0.1:8080", "admin", "admin").call("GET", "/api/v2/dags")
        # The store knows keys: neither nobody nor somebody with wrong ones reads the lake.
        assert httpx.get("http://127.0.0.1:8333/lake?list-type=2").status_code == 403
    right = composed.secrets["S3_SECRET_KEY"]
    composed.secrets["S3_SECRET_KEY"] = "somebody else's"
    with pytest.raises(AssertionError, match="ACCESS_DENIED"):
        composed.rows()
    composed.secrets["S3_SECRET_KEY"] = right


def test_containers_have_no_more_rights_than_they_need(composed: Composed) -> None:
    for service in ("scheduler", "spark-connect"):
        said = composed.made.inside(service, "cat", "/proc/self/status")
        assert "CapEff:\t0000000000000000" in said and "NoNewPrivs:\t1" in said
        assert composed.made.inside(service, "id", "-u").strip() == composed.secrets["REJOIN_UID"] != "0"
        with pytest.raises(AssertionError, match="Read-only"):
            composed.made.inside(service, "touch", "/opt/rejoin/dags/new.py")
    published = composed.made.podman("ps", "--format", "{{.Ports}}").split()
    assert published and all("127.0.0.1:" in one for one in published if "->" in one)


@pytest.mark.parametrize("service", ["spark-connect", "scheduler"])
def test_a_run_whose_container_is_killed_ends_right_when_it_is_started_again(composed: Composed, service: str) -> None:
    how = composed.run(f"without-{service}", killing(composed, service))
    assert how == "success", composed.made.logs()
    composed.is_right()


def test_what_was_stopped_goes_on_where_it_was(composed: Composed) -> None:
    composed.made.compose("stop")
    assert composed.made.running() == []
    assert "(137)" not in composed.made.podman("ps", "--all", "--format={{.Names}} {{.Status}}"), "killed: it had too little time to end"
    composed.made.up()
    composed.is_right()
    assert composed.run("after-a-stop") == "success", composed.made.logs()
    composed.is_right()
    composed.made.compose("down")
    composed.made.up()
    composed.is_right()
    assert "0 differences" in composed.made.inside("scheduler", "rejoin", "verify")


def test_a_change_in_the_source_database_reaches_the_output(composed: Composed) -> None:
    made = composed.made
    made.up(profile="source")

    def sql(statement: str) -> None:
        made.inside("source", "psql", "-U", "source", "-c", statement)

    def land() -> Path:
        subprocess.run(["docker/land.sh"], cwd=made.root, env=made.environment, check=True, capture_output=True, timeout=600)
        return max((made.root / "landing" / "shop").iterdir())

    deadline = time.monotonic() + 120
    while '"op":"r"' not in land().read_text():  # Debezium has read the tables
        assert time.monotonic() < deadline, made.logs()
    sql("UPDATE shop.customers SET name = 'Anne' WHERE id = 'c1'")
    sql("DELETE FROM shop.items WHERE line = 2")
    while '"op":"d"' not in land().read_text():
        assert time.monotonic() < deadline, made.logs()
    made.inside("scheduler", "rejoin", "run", "/opt/rejoin/dags/shop.py")
    assert "Anne" in made.inside("scheduler", "rejoin", "get", "items_enriched", "1", "1", "--topology", "shop")
