"""``rejoin discover kafka://...`` with a real broker: what it prints is a topology file that runs, whatever the shape of the messages."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from integration.servers import KafkaServer
from integration.sinks.schema_registry import registry

from rejoin.cli import main
from rejoin.plan.check.topology_file import load

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
Row = dict[str, Any]
Sent = tuple[object, object]
ORDERS = [{"id": i, "customer": i % 3, "note": f"note {i}"} for i in range(1, 20)]
CUSTOMERS = [{"id": i, "name": f"n{i}"} for i in range(3)]


class Cluster:
    """Topics whose names begin with one word, and what is discovered of them."""

    def __init__(self, address: str, name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self._root = name, root
        self._admin, self._producer = AdminClient({"bootstrap.servers": address}), Producer({"bootstrap.servers": address})
        monkeypatch.setenv("REJOIN_SOURCE_KAFKA", address)
        monkeypatch.chdir(root)

    def topic(self, name: str, messages: list[Sent], partitions: int = 2, **config: str) -> None:
        """Makes a topic and sends it keys and values: octets as they are, None, or what JSON is made of."""
        whole = f"{self.name}.{name}"
        self._admin.create_topics([NewTopic(whole, partitions, 1, config=config)])[whole].result(20)
        for key, value in messages:
            made = [part if isinstance(part, bytes | None) else json.dumps(part).encode() for part in (key, value)]
            self._producer.produce(whole, key=made[0], value=made[1], partition=len(made[0] or b"") % partitions)
        assert self._producer.flush(20) == 0

    def discovered(self) -> Result:
        return CliRunner().invoke(main, ["discover", f"kafka://kafka/{self.name}.*"], catch_exceptions=False)

    def ran(self) -> dict[str, Any]:
        """Runs what is discovered; the keys of its tables."""
        found = self.discovered()
        assert found.exit_code == 0, found.stderr
        (self._root / "t.py").write_text(found.stdout)
        ran = CliRunner().invoke(main, ["run", "t.py", "--engine", "local"], catch_exceptions=False)
        assert ran.exit_code == 0, found.stdout + ran.stderr
        assert "quarantined" not in ran.stdout + ran.stderr
        return {table.name: table.key for table in load("t.py").tables}


def got(table: str, *key: str) -> Row:
    """A row of an output."""
    found = CliRunner().invoke(main, ["get", table, *key], catch_exceptions=False)
    assert found.exit_code == 0, found.stderr
    return dict(json.loads(found.stdout))


@pytest.fixture
def cluster(broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Cluster:
    return Cluster(broker.address, "d" + str(abs(hash(request.node.name)) % 10**8), tmp_path, monkeypatch)


def envelope(table: str, lsn: int, after: Row) -> Row:
    source = {"connector": "postgresql", "name": "s", "schema": "public", "table": table, "lsn": lsn, "snapshot": "false"}
    return {"before": None, "after": after, "op": "c", "source": source}


def debezium(table: str, rows: list[Row]) -> list[Sent]:
    return [({"id": row["id"]}, envelope(table, 100 + n, row)) for n, row in enumerate(rows)]


def cloud_events(table: str, rows: list[Row]) -> list[Sent]:
    about = {"specversion": "1.0", "type": "io.debezium.connector.postgresql.DataChangeEvent", "datacontenttype": "application/json"}
    source = {"iodebeziumconnector": "postgresql", "iodebeziumname": "s", "iodebeziumschema": "public", "iodebeziumtable": table}
    return [
        ({"id": row["id"]}, {**about, "id": str(n), "source": "/debezium/s", "iodebeziumop": "c", **source, "iodebeziumlsn": str(100 + n),
                             "iodebeziumsnapshot": "false", "iodebeziumtsms": "1", "data": {"before": None, "after": row}})
        for n, row in enumerate(rows)
    ]  # fmt: skip


def maxwell(table: str, rows: list[Row]) -> list[Sent]:
    own = {"database": "shop", "table": table, "type": "insert", "ts": 1, "commit": True}
    return [
        ({"database": "shop", "table": table, "pk.id": row["id"]}, {**own, "position": f"b.1:{n}", "data": row})
        for n, row in enumerate(rows, 1)
    ]


def canal(table: str, rows: list[Row]) -> list[Sent]:
    own = {"database": "shop", "table": table, "type": "INSERT", "isDdl": False, "pkNames": ["id"], "old": None, "es": 1, "ts": 1, "id": 1}
    return [(str(row["id"]).encode(), {**own, "data": [{k: str(v) for k, v in row.items()}]}) for row in rows]


def golden_gate(table: str, rows: list[Row]) -> list[Sent]:
    own = {"table": f"SHOP.{table.upper()}", "op_type": "I", "op_ts": "2026-01-01 00:00:00.000000", "primary_keys": ["id"]}
    return [(str(row["id"]).encode(), {**own, "pos": f"{n:020}", "after": row}) for n, row in enumerate(rows)]


def beside(*written: Any) -> Any:
    """The first is enough for most days."""
    return pytest.mark.parametrize("written", [written[0], *(pytest.param(w, marks=pytest.mark.nightly) for w in written[1:])])


@beside(maxwell, debezium, cloud_events, canal, golden_gate)
def test_changes_of_two_tables(cluster: Cluster, written: Any) -> None:
    cluster.topic("orders", written("orders", ORDERS))
    cluster.topic("customer", written("customer", CUSTOMERS))
    assert cluster.ran() == {"orders": ("id",), "customer": ("id",)}
    assert got("orders_with_customer", "4") == {"id": 4, "customer": 1, "note": "note 4", "customer_name": "n1"}


def avro(lines: list[Row], known: list[str]) -> Iterator[Sent]:
    """What a connector with Avro converters writes of events, by ``known``, the schemas of a registry."""
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    row = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": ["null", "long"]}]}
    source = {
        "type": "record",
        "name": "Source",
        "fields": [{"name": n, "type": "string"} for n in ("connector", "name", "schema", "table", "snapshot")],
    }
    source["fields"].append({"name": "lsn", "type": "long"})  # type: ignore[attr-defined]
    fields = [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "Row"]},
        {"name": "op", "type": "string"},
        {"name": "source", "type": source},
    ]
    value = {"type": "record", "name": "Envelope", "fields": fields}
    known += [json.dumps(key), json.dumps(value)]
    for line in lines:
        made = []
        for id_, schema, of in ((1, key, line["key"]), (2, value, line["value"])):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, fastavro.parse_schema(schema), of)
            made.append(b"\0" + id_.to_bytes(4, "big") + out.getvalue())
        yield made[0], made[1]


def test_avro_by_its_registry_and_without(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    events: Any = [{"key": key, "value": value} for key, value in debezium("orders", [{"id": i, "customer": i} for i in range(20)])]
    with registry() as (url, known):
        cluster.topic("orders", list(avro(events, known)))
        found = cluster.discovered()
        assert "Avro in Confluent's wire format: set schema.registry.url in [sources.kafka]" in found.stderr
        monkeypatch.setenv(
            "REJOIN_SOURCE_KAFKA", json.dumps({"bootstrap.servers": os.environ["REJOIN_SOURCE_KAFKA"], "schema.registry.url": url})
        )
        assert cluster.ran() == {"orders": ("id",)}
        assert got("orders_kept", "4") == {"id": 4, "customer": 4}


def upserts(rows: list[Row]) -> list[Sent]:
    return [({"id": row["id"]}, row) for row in rows]


def keyed_by_texts(rows: list[Row]) -> list[Sent]:
    return [(f"{row['id']}".encode(), row) for row in rows]


def bare(rows: list[Row]) -> list[Sent]:
    """The key stands in the message's key only."""
    return [(row["id"], {name: value for name, value in row.items() if name != "id"}) for row in rows]


def with_schema(rows: list[Row]) -> list[Sent]:
    """As the JDBC source of Kafka Connect writes them."""
    fields = [{"field": n, "type": "string" if isinstance(v, str) else "int64", "optional": True} for n, v in rows[0].items()]
    return [(row["id"], {"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": row}) for row in rows]


def flattened(rows: list[Row]) -> list[Sent]:
    return [({"id": row["id"]}, {**row, "__deleted": "false", "__op": "c", "__lsn": 100 + n}) for n, row in enumerate(rows)]


def flattened_without_marks(rows: list[Row]) -> list[Sent]:
    return [({"id": row["id"]}, {**row, "__op": "c"}) for row in rows]


@beside(bare, upserts, keyed_by_texts, with_schema, flattened, flattened_without_marks)
def test_rows_as_they_are_now(cluster: Cluster, written: Any) -> None:
    cluster.topic("orders", written([*ORDERS, {"id": 4, "customer": 2, "note": "later"}]))
    cluster.topic("customer", written(CUSTOMERS))
    assert cluster.ran() == {"orders": ("id",), "customer": ("id",)}
    assert got("orders_with_customer", "4") == {"id": 4, "customer": 2, "note": "later", "customer_name": "n2"}


def test_what_a_real_connector_wrote(cluster: Cluster) -> None:
    lines = [json.loads(line) for line in (CAPTURES / "debezium_capture_schemas.jsonl").read_text().splitlines()]
    sent: dict[str, list[Sent]] = {}
    for line in lines:
        key, value = (None if line[part] is None else line[part].encode() for part in ("key", "value"))
        sent.setdefault(line["topic"], []).append((key, value))
    for topic, messages in sent.items():
        cluster.topic(topic, messages)
    found = cluster.discovered()
    assert "e6.transaction: none of its newest messages is a record that rejoin knows" in found.stderr
    Path("t.py").write_text(found.stdout)
    tables = {table.name: (table.key, {c.name: c.type for c in table.columns}) for table in load("t.py").tables}
    assert tables.keys() == {"customers", "done", "full_ri", "items", "nopk", "orders"} and tables["items"][0] == ("order_id", "line")
    assert tables["customers"][1]["photo"] == "BINARY" and tables["orders"][1]["total"] == "DECIMAL(12,2)"
    assert "# 2 of 2 sampled values are keys of customers" in found.stdout
    ran = CliRunner().invoke(main, ["run", "t.py", "--engine", "local"], catch_exceptions=False)
    assert ran.exit_code == 0, ran.stderr


def test_what_to_look_out_for_is_written_beside_a_topic(cluster: Cluster) -> None:
    cluster.topic("orders", debezium("orders", ORDERS), **{"cleanup.policy": "compact", "delete.retention.ms": "3600000"})
    cluster.topic("customer", debezium("customer", CUSTOMERS), **{"retention.ms": "60000"})
    cluster.topic("both", debezium("a", CUSTOMERS) + debezium("b", CUSTOMERS))
    cluster.topic("empty", [])
    cluster.topic("rows", [(None, row) for row in ORDERS])
    cluster.topic("numbers", [(b"1", 1)])
    cluster.topic("octets", [(b"k", b"\xff\x00")])
    found = cluster.discovered()
    assert "# compacted, and keeps what it says of deleted rows for 1 hour (delete.retention.ms): run more often" in found.stdout
    assert "# keeps records for 1 minute (retention.ms): run more often" in found.stdout
    left_out = {line.partition(": topic ")[2].partition(".")[2].partition(":")[0]: line for line in found.stderr.splitlines()}
    assert left_out.keys() == {"both", "empty", "octets", "numbers"} and "changes of several tables (a, b)" in left_out["both"]
    assert "# the key is a guess: messages have none, so none of them can say that a row is gone" in found.stdout
    none = CliRunner().invoke(main, ["discover", f"kafka://kafka/{cluster.name}.none*"])
    assert none.exit_code == 3 and "there is no topic" in none.stderr
