"""Lakes with sinks, on the broker and the database that all tests share."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.made import Lake
from integration.opensearch import OpenSearchServer
from integration.servers import KafkaServer
from targets import Hook

from rejoin import crash

_NUMBERS = itertools.count(1)


@pytest.fixture
def topic() -> str:
    """A name that no other test uses, for a topic or a schema."""
    return f"t{next(_NUMBERS)}"


@pytest.fixture
def address(broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka sinks go to the broker."""
    monkeypatch.setenv("REJOIN_SINK_KAFKA", broker.address)


@pytest.fixture
def lake(tmp_path: Path, topic: str) -> Lake:
    """A lake whose sinks the test declares; three runs are there."""
    made = Lake(tmp_path, "", name=topic)  # else all would share one cursor
    for _ in range(3):
        made.run(made.some(15))
    return made


@pytest.fixture
def index(lake: Lake, topic: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The index of a sink of the lake."""
    monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", search_server.url)
    lake.declare(f'opensearch("{topic}")')
    yield topic
    search_server("DELETE", f"{topic}*")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Does something when a crash point is reached for the first time."""
    hooks: dict[str, Callable[[], object]] = {}

    def point(name: str) -> None:
        for ending, action in list(hooks.items()):
            if name.endswith(ending):
                del hooks[ending]
                action()

    monkeypatch.setattr(crash, "point", point)
    return hooks.__setitem__
