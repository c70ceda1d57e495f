"""Avro on a real topic, read by another library: deliveries that are killed and go on, over an edit of the columns."""

import io
import json
import signal
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from integration.made import Lake, Row, deliver, publish
from integration.servers import KafkaServer
from schema_registry import registry
from topics import Read, read

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def schemas(broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The schemas of a registry; the sink's connection names it and the broker."""
    with registry() as (address, known):
        settings = {"bootstrap.servers": broker.address, "schema.registry.url": address}
        monkeypatch.setenv("REJOIN_SINK_KAFKA", json.dumps(settings))
        yield known


def decoded(schemas: list[str], message: bytes) -> Any:
    assert message[0] == 0
    schema = fastavro.parse_schema(json.loads(schemas[int.from_bytes(message[1:5], "big") - 1]))
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), schema, None)


def folded(schemas: list[str], records: list[Read]) -> dict[int, Row]:
    state: dict[int, Row] = {}
    for record in records:
        key = decoded(schemas, record.key)["id"]
        if record.value is None:
            state.pop(key, None)
        else:
            state[key] = decoded(schemas, record.value)["after"]
    return state


def test_fault_look_avro_snapshots_and_repeated_runs_that_were_killed_go_on_and_come_to_the_output(
    lake: Lake, broker: KafkaServer, topic: str, schemas: list[str]
) -> None:
    sink = f'kafka("{topic}", format="avro", partitions=2, batch=4)'

    def killed(at: str, *again: str) -> None:
        crash = {"REJOIN_CRASH": f"deliver.people.kafka:{at}"}
        done = publish(lake, *again, **crash) if again else deliver(lake, "kafka", **crash)
        assert done.returncode == -signal.SIGKILL, f"the fault at {at} did not fire:\n{done.stderr}"

    def check() -> None:
        lake.topology().deliver("people.kafka")
        records = read(broker.address, topic)
        found = {key: {c: row[c] for c in lake.columns} for key, row in folded(schemas, records).items()}
        assert found == lake.rows()

    lake.declare(sink)
    killed("3:flushed")
    lake.run(lake.some(12))
    check()
    records = read(broker.address, topic)
    assert len({r.event for r in records}) == len(records), "a record came twice"
    killed("3:marked", "--snapshot")
    lake.declare(sink, without=("share", "name"))
    lake.run(lake.some(12))
    check()
    killed("4:flushed", "--from-run", "2")
    lake.declare(sink)
    lake.run(lake.some(12))
    check()
    names = [{f["name"] for f in json.loads(s)["fields"]} for s in schemas]
    assert len(schemas) == 3 and names == [{"id"}, *[{"op", "before", "after", "source"}] * 2], "a key, and values of two lists of columns"
