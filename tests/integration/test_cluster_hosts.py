"""A Spark cluster whose master, workers and driver are hosts of a network, each with one address; tables and source files are in an object store, a host too.

Workers see no file of the driver: neither the catalog nor the ledger, nor the lake's file, nor what it sends them by itself (its jars, their Python).
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.hosts import Host, hosts
from integration.on_cluster import LAKE, Driver, Place, by_step
from integration.servers import SparkCluster, spark_cluster
from integration.stored import Stored
from integration.test_cluster import STEPS, change, in_parallel, kill
from object_store import BUCKET, KEY, SECRET, ObjectStore, object_store

from rejoin.lake.spark.setup_check import fetch_jars

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

WORKERS = ("worker1", "worker2")
STATED = """
"spark.driver.host" = "{address}"
"spark.executorEnv.AWS_ENDPOINT_URL" = "${{AWS_ENDPOINT_URL}}"
"spark.executorEnv.AWS_ACCESS_KEY_ID" = "${{AWS_ACCESS_KEY_ID}}"
"spark.executorEnv.AWS_SECRET_ACCESS_KEY" = "${{AWS_SECRET_ACCESS_KEY}}"
"spark.executorEnv.AWS_DEFAULT_REGION" = "us-east-1"
"""
"""What executors have to be told: where the driver is, whose name they do not know, and how source files are reached."""
SEND = "import sys; from pyarrow.fs import copy_files; copy_files(*sys.argv[1:])"


@dataclass
class Network:
    """The hosts, the store and the cluster; ``directory`` is the driver's own."""

    hosts: dict[str, Host]
    store: ObjectStore
    cluster: SparkCluster
    directory: Path

    def on_driver(self, *words: object) -> str:
        """What a command on the driver's host writes to its output."""
        done = subprocess.run(
            self.hosts["driver"].command(sys.executable, *words),
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": "tests:include"},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    fetch_jars(s3=True)
    root = tmp_path_factory.mktemp("network")
    own = {name: root / name for name in ("driver", "cluster", "store")}
    for directory in own.values():
        directory.mkdir()
    hidden = {name: [own["driver"]] for name in ("master", *WORKERS)}
    with (
        hosts(("driver", "master", *WORKERS, "store"), root, knowing={}, hidden=hidden) as made,
        object_store(own["store"], made["store"]) as store,
        spark_cluster(own["cluster"], made["master"], [made[name] for name in WORKERS]) as cluster,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in {
            "ENDPOINT_URL": store.endpoint,
            "ACCESS_KEY_ID": KEY,
            "SECRET_ACCESS_KEY": SECRET,
            "DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(f"AWS_{name}", value)
        yield Network(made, store, cluster, own["driver"])


class FarPlace(Place):
    """A place whose tables and source files are in the store: those of the cluster, and those that the driver's process makes of the same files alone."""

    def __init__(self, network: Network, root: Path) -> None:
        super().__init__(root)
        self._network, self._far = network, f"s3://{BUCKET}/{root.name}"
        topology = (root / "t.py").read_text()
        (root / "t.py").write_text(topology.replace('debezium("landing/', f'debezium("{self._far}/landing/'))
        text = network.store.lake(root).read_text()
        lakes = {name: text.replace("my warehouse", name).replace("catalog.db", f"{name}.db") for name in ("alone", "cluster")}
        (root / "alone.toml").write_text(lakes["alone"] + "[spark]\n")
        self.lake = lakes["cluster"].replace("{", "{{").replace("}", "}}") + "[spark]" + LAKE.partition("[spark]")[2]
        self.send()

    def send(self) -> None:
        """Source files are there once they are in the store."""
        self._network.on_driver("-c", SEND, self.root / "landing", f"{self._far}/landing")

    def alone(self) -> Stored:
        """All rows after a run by the driver's process alone."""
        lake = self.root / "alone.toml"
        self._network.on_driver("-m", "rejoin.cli", *self.words[:2], "--lake", lake, "--engine", "local", "--fuse", "apply")
        return self.stored(lake)

    def changed(self) -> "FarPlace":
        """This place with the bulk change waiting, which the process alone has taken already."""
        change(self)
        self.send()
        self.alone()
        return self

    def stored(self, lake: Path) -> Stored:
        found = json.loads(self._network.on_driver("-m", "integration.stored", self.root / "t.py", lake))
        return {table: [tuple(row) for row in rows] for table, rows in found.items()}


@pytest.fixture
def place(network: Network) -> FarPlace:
    return FarPlace(network, network.directory / "place")


@pytest.fixture
def driver(network: Network, place: FarPlace) -> Iterator[Driver]:
    """It has the variables that the lake's file names."""
    made = Driver(network.cluster, network.directory, network.hosts["driver"])
    yield made
    made.stop()


@pytest.mark.invariant("I1", "I2")
def test_hosts_that_know_no_name_of_the_driver_and_no_catalog_do_ranges_and_one_that_dies_costs_a_retry(
    network: Network, place: FarPlace, driver: Driver, pytestconfig: pytest.Config
) -> None:
    seed = int(pytestconfig.option.hypothesis_seed)
    chance = random.Random(seed)
    step, worker = chance.choice(STEPS), chance.randrange(len(WORKERS))
    print(f"seed {seed}: {WORKERS[worker]} loses its executor in {step}")
    driver.do("limits", "wide ranges")
    driver.adopt(place, STATED.format(address=network.hosts["driver"].address), place.lake)
    loaded = driver.run(place)
    assert place.stored(place.root / "lake.toml") == place.alone()
    executors = network.cluster.workers[worker]
    driver.run_and_lose(place.changed, step, lambda: kill(network.cluster.executors(executors)))
    assert place.stored(place.root / "lake.toml") == place.stored(place.root / "alone.toml")
    for name in ("ingest.orders", "resolve.enriched"):
        assert in_parallel(by_step(loaded)[name]), f"{name} ran on one host"
    for said in (
        driver.events(),
        driver.said.read_text(),
        network.cluster.log.read_text(),
        *(log.read_text() for log in network.cluster.logs()),
    ):
        assert SECRET not in said
