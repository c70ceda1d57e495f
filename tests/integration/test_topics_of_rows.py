"""Topics whose messages are rows, with a real broker: ``changes(kafka(...))`` in whole runs, against what SQL makes of the messages in their order."""

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.conftest import Sessions
from integration.sent import Sent, Topic
from integration.servers import KafkaServer
from integration.sinks.schema_registry import registry
from integration.texts import Lake
from limited import limited

from rejoin.cli import main
from rejoin.errors import PartitionsAdded, SchemaDrift, SchemaRefused

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

TOPOLOGY = """
orders = t.table("orders", key="id", schema="id BIGINT, customer INT, note STRING", source=changes({orders}))
customers = t.table("customers", key="id", schema="id INT, name STRING", source=changes(kafka({customers!r}), order_by="version", deleted="gone = 'true'"))
orders.left_join(customers, "customer", ["left.*", "right.name"]).named("enriched")
"""
JOIN = """
WITH o AS (SELECT id, arg_max_null(customer, n) AS customer, arg_max_null(note, n) AS note FROM orders GROUP BY id HAVING arg_max(note IS NOT NULL, n)),
     c AS (SELECT id, arg_max_null(name, (version, n)) AS name FROM customers GROUP BY id HAVING NOT arg_max(gone, (version, n)))
SELECT o.id, o.customer, o.note, c.name FROM o LEFT JOIN c ON o.customer = c.id ORDER BY o.id
"""


@pytest.fixture
def topics(broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> tuple[Topic, Topic]:
    """Of orders and of customers, on the broker that sources are read from."""
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", broker.address)
    return Topic(broker.address, 2), Topic(broker.address, 2)


def shop(root: Path, sessions: Sessions, topics: tuple[Topic, Topic]) -> Lake:
    return Lake(root, sessions, TOPOLOGY.format(orders=f"kafka({topics[0].name!r})", customers=topics[1].name))


def message(key: Any, value: Any, partition: int | None = None, **headers: bytes) -> Sent:
    texts = [None if said is None else said if isinstance(said, bytes) else json.dumps(said).encode() for said in (key, value)]
    return len(texts[0] or b"") % 2 if partition is None else partition, texts[0], texts[1], headers


@pytest.mark.parametrize("engine", ["here", pytest.param("Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 8))])
def test_random_rows_and_messages_without_value_are_the_join_that_sql_makes_of_them(
    tmp_path: Path, sessions: Sessions, topics: tuple[Topic, Topic], monkeypatch: pytest.MonkeyPatch, engine: str, number: int
) -> None:
    seed = int(os.environ.get("REJOIN_SEED") or 20_261_127) + number
    print(f"REJOIN_SEED={seed - number}")
    random_ = random.Random(seed)
    if engine == "Spark":
        limited(monkeypatch, small_rows=0, fetched_bytes=0, sparse=0)
    lake, orders, customers = shop(tmp_path, sessions, topics), list[dict[str, Any]](), list[dict[str, Any]]()
    for _ in range(3):
        sent = list[Sent]()
        for _ in range(60):
            row = {"id": random_.randrange(25), "customer": random_.choice([None, 1, 2, 3]), "note": f"n{len(orders)}", "n": len(orders)}
            gone = random_.random() < 0.3
            value = None if gone else {k: row[k] for k in ("customer", "note")} | ({"id": row["id"]} if random_.random() < 0.5 else {})
            sent.append(message(row["id"] if random_.random() < 0.5 else {"id": row["id"]}, value, row["id"] % 2))
            orders.append(row | ({"note": None} if gone else {}))
        topics[0].send(sent)
        topics[0].taken_back([message(1, {"note": "never happened"})])  # behind: until its mark is written, nothing after it is read
        for _ in range(8):
            version, n = random_.randrange(10**6), len(customers)
            customers.append({"id": random_.randrange(1, 4), "name": f"c{n}", "version": version, "gone": random_.random() < 0.3, "n": n})
        topics[1].send([message(c["id"], c, c["id"] % 2) for c in customers[-8:]])
        counts = lake.run()
        assert (counts["ingest.orders"]["read"], counts["ingest.orders"]["quarantined"]) == (60, 0)
        with duckdb.connect() as db:
            db.register("orders", pa.Table.from_pylist(orders))
            db.register("customers", pa.Table.from_pylist(customers))
            wanted = db.sql(JOIN).fetchall()
        assert sorted(tuple(r.values()) for r in lake.rows("enriched").values()) == wanted != []


def test_messages_are_found_refused_and_told_by_their_offsets(tmp_path: Path, sessions: Sessions, topics: tuple[Topic, Topic]) -> None:
    lake, good = shop(tmp_path, sessions, topics), [message(i, {"customer": 1, "note": "x"}, 0) for i in range(40)]
    topics[1].send([message(1, {"id": 1, "name": "Ann", "version": 1, "gone": False})])
    *_, other, cut = topics[0].send([*good, message(7, {"id": 8, "note": "y"}, 0), (0, b"9", b'{"note', {})])
    assert lake.run()["ingest.orders"]["quarantined"] == 2
    part = f"kafka://kafka/{topics[0].name}/0"
    kept = lake.kept_aside("orders")
    assert {at: code for at, (code, _) in kept.items()} == {(part, other): "MISSING_KEY", (part, cut): "BAD_JSON"}
    assert json.loads(kept[part, other][1])["value"] == {"id": 8, "note": "y"}
    where = ["--lake", str(tmp_path / "lake"), "--root", str(tmp_path)]
    why = CliRunner().invoke(main, ["why", "enriched", "12", *where], catch_exceptions=False).output
    assert f"{part} offset 12  <- made it" in why
    topics[0].send([message(3, {"customer": 1, "remark": "renamed"}, 0)])
    with pytest.raises(SchemaDrift, match="lacks: note"):
        lake.run()


def test_fault_what_would_break_the_order_of_messages_stops_the_run(
    tmp_path: Path, sessions: Sessions, topics: tuple[Topic, Topic]
) -> None:
    lake = shop(tmp_path, sessions, topics)
    for topic in topics:
        topic.send([message(1, {"customer": 1, "note": "x", "name": "Ann", "version": 1, "gone": False})])
    lake.run()
    topics[1].grow(3)
    lake.run()  # there the version says it
    topics[0].grow(3)
    with pytest.raises(PartitionsAdded, match="has 3 partitions and had 2"):
        lake.run()
    lake.declare(TOPOLOGY.format(orders='"files", order_by=arrival()', customers=topics[1].name))
    with pytest.raises(SchemaRefused, match=r"was arrival\(\) on a topic and is now arrival\(\) in files"):
        lake.run()


def test_rows_in_avro_are_read_by_the_schemas_of_a_registry(
    tmp_path: Path, sessions: Sessions, topics: tuple[Topic, Topic], broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    fields = [
        ("total", decimal),
        ("day", {"type": "int", "logicalType": "date"}),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ]
    row = {"type": "record", "name": "Row", "fields": [{"name": name, "type": ["null", type_]} for name, type_ in fields]}

    def wire(id_: int, schema: object, value: object) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
        return b"\0" + id_.to_bytes(4, "big") + out.getvalue()

    topic = f"kafka({topics[0].name!r})"
    text = f"""
t.table("orders", key="id", schema="id BIGINT, total DECIMAL(10,2), day DATE, at TIMESTAMP", source=changes({topic}, order_by="at")).filter("id > 0").named("out")
"""
    lake = Lake(tmp_path, sessions, text)
    values = [{"total": b"\x04\xd2", "day": 20_000, "at": 1_700_000_000_000 + i} for i in range(3)]
    sent: list[Sent] = [(0, wire(1, "long", 5), wire(2, row, value), {}) for value in values]
    with registry() as (url, schemas):
        schemas += [json.dumps("long"), json.dumps(row)]
        monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({"address": broker.address, "schema.registry.url": url}))
        topics[0].send([*sent, (0, wire(1, "long", 6), wire(2, row, values[0]), {}), (0, wire(1, "long", 6), None, {})])
        assert lake.run()["ingest.orders"]["quarantined"] == 0
    [(key, found)] = lake.rows("out").items()
    assert (key, str(found["total"]), str(found["day"]), found["at"].microsecond) == (5, "12.34", "2024-10-04", 2_000)
