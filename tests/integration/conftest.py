"""One JVM, one broker, one database and one search server for all tests of this folder. Each lake gets a session of its own; a test that stops a server starts it again."""

from collections.abc import Callable, Iterator

import pytest
from integration.opensearch import OpenSearchServer, opensearch
from integration.sent import Topic
from integration.servers import KafkaServer, kafka, postgres, spark_connect
from pyspark.sql import SparkSession

from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run
from rejoin.lake.spark.session import session
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

Go = Callable[..., Run]
Sessions = Callable[[Topology], SparkSession]
New = Callable[..., Topic]


@pytest.fixture
def sessions() -> Sessions:
    """The session of a topology's lake."""
    made: dict[str, SparkSession] = {}

    def get(topology: Topology) -> SparkSession:
        location = topology.config.location
        if location not in made:
            made[location] = session(topology.config)
        return made[location]

    return get


@pytest.fixture
def go(sessions: Sessions) -> Go:
    """Runs a topology once."""

    def run(topology: Topology, owner: str = "test") -> Run:
        return run_topology(topology, lambda: sessions(topology), f"{owner} {len(topology.ledger.runs())}")

    return run


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def search_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchServer]:
    with opensearch(tmp_path_factory.mktemp("opensearch")) as server:
        yield server


@pytest.fixture
def new(broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> New:
    """Makes a topic on the broker that sources are read from."""
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", broker.address)
    return lambda *a, **k: Topic(broker.address, *a, **k)


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, for processes of any lake: a JVM for each of them would be most of their time."""
    directory = tmp_path_factory.mktemp("connect")
    with spark_connect(lake_config(str(directory / "lake")), directory) as address:
        yield address


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """A libpq URL."""
    with postgres() as url:
        yield url.replace("+psycopg", "")


@pytest.fixture(scope="session")
def logging_server() -> Iterator[str]:
    """A libpq URL of a server whose log can be captured."""
    with postgres(wal_level="logical", max_wal_senders="20", max_replication_slots="100") as url:
        yield url.replace("+psycopg", "")
