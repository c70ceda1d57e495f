"""What Airflow says of its health, as people are told it. The answers are Airflow's own, from a server that has nothing else to say."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from rejoin.airflow.local.client import Client
from rejoin.airflow.local.server import free_port

WELL: dict[str, dict[str, Any]] = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-11-23T14:30:44Z"},
    "triggerer": {"status": "healthy", "latest_triggerer_heartbeat": "2026-11-23T14:30:45Z"},
    "dag_processor": {"status": "healthy", "latest_dag_processor_heartbeat": "2026-11-23T14:30:46Z"},
}


@contextmanager
def saying(answer: str) -> Iterator[Client]:
    """A client of a server that gives this answer."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield Client(f"http://127.0.0.1:{server.server_port}", "nobody", "")
        server.shutdown()
        thread.join()


SAID = {
    "all is well": ({}, {}),
    "a dead scheduler": ({"scheduler": {"status": "unhealthy"}}, {"scheduler": "last heartbeat 2026-11-23T14:30:44Z"}),
    "a DAG processor that never came": (
        {"dag_processor": {"status": None, "latest_dag_processor_heartbeat": None}},
        {"dag-processor": "no heartbeat yet"},
    ),
    "a database that is gone": ({"metadatabase": {"status": "unhealthy"}}, {"database": "it does not answer"}),
    "two of them": (
        {"scheduler": {"status": "unhealthy"}, "triggerer": {"status": "unhealthy"}},
        {"scheduler": "last heartbeat 2026-11-23T14:30:44Z", "triggerer": "last heartbeat 2026-11-23T14:30:45Z"},
    ),
}


@pytest.mark.parametrize(("changed", "told"), SAID.values(), ids=SAID.keys())
def test_the_parts_that_are_not_healthy_are_named(changed: dict[str, dict[str, Any]], told: dict[str, str]) -> None:
    with saying(json.dumps({part: said | changed.get(part, {}) for part, said in WELL.items()})) as client:
        assert client.unhealthy() == told
        assert client.healthy() == (not told)


def test_an_api_server_that_does_not_answer_or_is_something_else_is_named_by_its_address() -> None:
    gone = Client(f"http://127.0.0.1:{free_port()}", "nobody", "")
    assert gone.unhealthy() == {"api-server": f"no answer at {gone.url}"}
    for other in ("<html>", "{}", "[]"):
        with saying(other) as client:
            assert client.unhealthy() == {"api-server": f"no answer at {client.url}"}
