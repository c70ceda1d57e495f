"""Sinks of an output whose key has null parts: a full join, where moves and deletes make parts of keys null and not null again."""

import io
import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import psycopg
import pytest
from integration.made import deliver
from integration.servers import KafkaServer
from schema_registry import registry
from topics import Read, read

from rejoin.errors import SinkSchemaRefused
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.deliver.catch_up import Restart
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SOURCE = """
from rejoin import Topology, debezium, kafka, postgres

town = Topology("{name}")
persons = town.table("persons", key="id", schema="id BIGINT, house BIGINT, name STRING", source=debezium("persons"))
houses = town.table("houses", key="id", schema="id BIGINT, street STRING", source=debezium("houses"))
persons.full_join(houses, foreign_key="house", select=["left.id AS person", "right.id AS house", "name", "street"]).named("people").to({sinks})
"""
Row = dict[str, Any]
Key = tuple[int | None, int | None]


class Town:
    """Persons and houses, of which nobody need know the other; every run is done in this process."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name, self.file, self.location = root, name, root / "town.py", root / "lake"
        self._random, self._number = random.Random(5), 0
        self.persons: dict[int, Row] = {}
        self.houses: dict[int, Row] = {}

    def declare(self, sinks: str) -> None:
        self.file.write_text(SOURCE.format(name=self.name, sinks=sinks))

    def topology(self) -> Topology:
        return Topology(load(str(self.file)), lake_config(str(self.location)), str(self.root))

    def run(self) -> int:
        """Some persons move, come and go, and some houses."""
        for _ in range(6):
            person, house = self._random.randrange(8), self._random.randrange(6)
            self._put("persons", self.persons, person, {"id": person, "house": self._random.choice([None, 0, 1, 2, 3, 9])})
            self._put("houses", self.houses, house, {"id": house})
        alone = self.topology().plan  # a run would deliver
        nodes = tuple(replace(n, sinks=()) for n in alone.nodes)
        quiet = Topology(replace(alone, nodes=nodes), lake_config(str(self.location)), str(self.root))
        return run_topology(quiet, lambda: pytest.fail("no Spark is needed"), "test").number

    def _put(self, table: str, rows: dict[int, Row], key: int, row: Row) -> None:
        self._number += 1
        text = {"name" if table == "persons" else "street": f"n{self._random.randrange(3)}"}
        after = None if self._random.random() < 0.3 else {**row, **text}
        rows.pop(key, None) if after is None else rows.__setitem__(key, after)
        source = {"connector": "postgresql", "lsn": self._number, "snapshot": "false"}
        value = {"before": None, "after": after, "source": source, "op": "d" if after is None else "u"}
        (self.root / table).mkdir(exist_ok=True)
        event = json.dumps({"key": {"id": key}, "value": value, "headers": {}})
        (self.root / table / f"{self._number:04}.jsonl").write_text(event + "\n")

    def rows(self) -> dict[Key, Row]:
        """The full join, by plain Python."""
        joined = [(p, self.houses.get(p["house"])) for p in self.persons.values()]
        taken = {h["id"] for _, h in joined if h}
        pairs: list[tuple[Row | None, Row | None]] = [*joined, *((None, h) for k, h in self.houses.items() if k not in taken)]
        made = [{"person": p and p["id"], "house": h and h["id"], "name": p and p["name"], "street": h and h["street"]} for p, h in pairs]
        return {(r["person"], r["house"]): r for r in made}


@pytest.fixture
def town(tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch) -> Town:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    return Town(tmp_path, topic)


def killed_and_again(town: Town, sink: str, point: str) -> None:
    """A delivery that a kill interrupts, and the next one."""
    killed = deliver(town, sink, REJOIN_CRASH=point)  # type: ignore[arg-type]
    assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
    again = deliver(town, sink)  # type: ignore[arg-type]
    assert again.returncode == 0, again.stderr


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


def stored(database: str, table: str) -> dict[Key, Row]:
    """A table of PostgreSQL by key; no key twice."""
    with psycopg.connect(database) as db, db.cursor() as cursor:
        found = cursor.execute(f"SELECT person, house, name, street FROM {table}").fetchall()
    made = {(r[0], r[1]): dict(zip(("person", "house", "name", "street"), r, strict=True)) for r in found}
    assert len(made) == len(found), "a key twice"
    return made


@pytest.fixture
def table(town: Town, topic: str, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    town.declare(f'postgres("{topic}.people")')
    return f"{topic}.people"


@pytest.mark.postgres
def test_a_table_follows_a_full_join(town: Town, database: str, table: str) -> None:
    seen: set[tuple[bool, bool]] = set()
    for number in range(8):
        town.run()
        if number == 4:
            town.run()  # two runs become one change a key
            killed_and_again(town, "postgres", "deliver.people.postgres:1:merged")
        elif number == 6:
            town.topology().deliver("people.postgres", Restart(None))
        else:
            town.topology().deliver("people.postgres")
        assert stored(database, table) == town.rows()
        seen |= {(person is None, house is None) for person, house in town.rows()}
    assert seen == {(False, False), (True, False), (False, True)}


@pytest.mark.postgres
@pytest.mark.parametrize("constraint", ["PRIMARY KEY (person, house)", "UNIQUE (person, house)"])
def test_a_table_for_which_nulls_differ_is_refused(town: Town, database: str, table: str, topic: str, constraint: str) -> None:
    town.run()
    with psycopg.connect(database) as db:
        columns = f"person bigint, house bigint, name text, street text, {constraint}"
        db.execute(f"CREATE SCHEMA {topic}; CREATE TABLE {table} ({columns})")  # type: ignore[call-overload]
    with pytest.raises(SinkSchemaRefused, match="NULLS NOT DISTINCT"):
        town.topology().deliver("people.postgres")


@pytest.mark.postgres
def test_a_server_without_such_indexes_is_refused(town: Town, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    town.run()
    monkeypatch.setattr("psycopg.ConnectionInfo.server_version", 140_012)
    with pytest.raises(SinkSchemaRefused, match="PostgreSQL 14 has no unique index"):
        town.topology().deliver("people.postgres")


# --- Kafka -----------------------------------------------------------------------------------------------------------


def check(records: list[Read], rows: dict[Key, Row], key_of: Callable[[bytes], Row], row_of: Callable[[bytes], Row]) -> None:
    """Every change once and in order; a key on one partition; what consumers, and compaction, end with is the output."""
    assert max(Counter(r.event for r in records).values()) == 1
    assert len({(r.key, r.partition) for r in records}) == len({r.key for r in records})
    state: dict[bytes, Row | None] = {}
    for record in records:
        value = None if record.value is None else row_of(record.value)
        if value is not None and record.op != "r":
            assert value["before"] == state.get(record.key)
        state[record.key] = None if value is None else value["after"]
    assert {(k["person"], k["house"]): row for key, row in state.items() if row and (k := key_of(key))} == rows


@pytest.mark.kafka
@pytest.mark.nightly
def test_a_topic_follows_a_full_join(town: Town, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SINK_KAFKA", broker.address)
    town.declare(f'kafka("{topic}", partitions=3, batch=3)')
    for number in range(6):
        town.run()
        if number == 3:
            killed_and_again(town, "kafka", "deliver.people.kafka:1:flushed")
        elif number == 4:
            town.run()  # two runs become one change a key
            town.topology().deliver("people.kafka")
        else:
            town.topology().deliver("people.kafka")
        check(read(broker.address, topic), town.rows(), json.loads, json.loads)
    assert {tuple(v is None for v in json.loads(r.key).values()) for r in read(broker.address, topic)} >= {(True, False), (False, True)}


@pytest.mark.kafka
@pytest.mark.parametrize("again", [Restart(None), Restart(from_run=2)], ids=["a snapshot", "from a run"])
def test_what_is_delivered_again_ends_with_the_output(
    town: Town, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch, again: Restart
) -> None:
    monkeypatch.setenv("REJOIN_SINK_KAFKA", broker.address)
    town.declare(f'kafka("{topic}", start="changes", partitions=2)')
    for _ in range(5):
        town.run()
    town.topology().deliver("people.kafka")
    town.topology().deliver("people.kafka", again)
    state: dict[bytes, Row] = {}
    for record in read(broker.address, topic):
        state.pop(record.key, None) if record.value is None else state.__setitem__(record.key, json.loads(record.value)["after"])
    assert {(k["person"], k["house"]): row for key, row in state.items() if (k := json.loads(key))} == town.rows()


@pytest.fixture
def schemas() -> Iterator[tuple[str, list[str]]]:
    """The address of a registry, and its schemas."""
    with registry() as found:
        yield found


@pytest.mark.kafka
def test_an_avro_topic_follows_a_full_join(
    town: Town, broker: KafkaServer, topic: str, schemas: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, known = schemas
    monkeypatch.setenv("REJOIN_SINK_KAFKA", json.dumps({"bootstrap.servers": broker.address, "schema.registry.url": address}))
    town.declare(f'kafka("{topic}", format="avro", partitions=2)')

    def decoded(message: bytes) -> Row:
        schema = fastavro.parse_schema(json.loads(known[int.from_bytes(message[1:5], "big") - 1]))
        found = fastavro.schemaless_reader(io.BytesIO(message[5:]), schema, None)
        assert isinstance(found, dict)
        return found

    for _ in range(3):
        town.run()
        town.topology().deliver("people.kafka")
        check(read(broker.address, topic), town.rows(), decoded, decoded)
