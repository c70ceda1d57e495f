"""Topics as sources, with a real broker: what is read is what is committed, once, in every format and by both engines (S19, F1)."""

import io
import json
import os
import signal
import time
from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner
from feeds import changes_of
from followed import checkout, follow
from integration.conftest import New, Sessions
from integration.fed_lake import JOINED, batches, fed, gone, held_open, lake, of_topic, order
from integration.forked import Forked
from integration.sent import Sent, of_lines
from integration.servers import KafkaServer
from integration.sinks.schema_registry import registry
from integration.texts import UNCHANGED, Lake, put
from limited import limited

from rejoin import crash
from rejoin.cli import main
from rejoin.errors import (
    SchemaRefused,
    SchemaUnknown,
    SourceDown,
)
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
def test_a_topic_makes_the_rows_and_changes_that_files_of_its_records_make(
    tmp_path: Path, sessions: Sessions, new: New, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    if engine == "spark":
        limited(monkeypatch, fetched_bytes=1, task_bytes=1 << 40)  # tasks of Spark read
    topic = new()
    read, filed = fed(tmp_path / "topic", sessions, topic), lake(tmp_path / "files", sessions, "debezium('orders')")
    for run, lines in enumerate(batches()):
        topic.taken_back(list(of_lines([order(9_000 + run, 1, "never happened")])))
        topic.send(list(of_lines(lines)))
        topic.taken_back(list(of_lines([order(9_500 + run, 2, "never happened")])))
        filed.land(f"orders/{run}.jsonl", "\n".join(lines))
        counts = read.run()["ingest.orders"], filed.run()["ingest.orders"]
        assert counts[0] == counts[1] and counts[0]["read"] == len(lines)
        assert read.rows("enriched") == filed.rows("enriched") != {}
    assert "ingest.orders" in read.run(), "nothing is new"
    ours, theirs = (sorted(map(str, changes_of(of.topology, "enriched"))) for of in (read, filed))
    assert ours == theirs


def again(shop: Lake, sessions: Sessions, who: str) -> dict[str, int]:
    """What was read by a run of this owner: the one that is open, or a new one."""
    topology = shop.topology
    done = run_topology(topology, lambda: sessions(topology), who)
    return topology.ledger.steps(done.number)["ingest.orders"].counts


def test_a_retry_reads_the_same_range_and_the_next_run_goes_on(
    tmp_path: Path, sessions: Sessions, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new()
    shop = fed(tmp_path, sessions, topic)
    topic.send(list(of_lines([order(1, 1), order(2, 22)])))

    def fails(name: str) -> None:
        if name == "ingest.orders:written":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(crash, "point", fails)
        with pytest.raises(KeyboardInterrupt):
            again(shop, sessions, "one")
    topic.send(list(of_lines([order(3, 3)])))
    assert again(shop, sessions, "one")["read"] == 2
    assert again(shop, sessions, "two")["read"] == 1
    assert shop.rows("enriched").keys() == {1, 3, 22}


@pytest.mark.parametrize("point", ["cut:pinned", "ingest.orders:written", "publish:before", "publish:committed"])
def test_a_run_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path: Path, sessions: Sessions, new: New, point: str) -> None:
    topic = new()
    shop = fed(tmp_path, sessions, topic)
    topic.send(list(of_lines([order(1, 1)])))
    shop.run()
    topic.send(list(of_lines([order(i, i) for i in range(2, 30)])))
    words = ["run", str(tmp_path / "t.py"), "--lake", str(tmp_path / "lake"), "--root", str(tmp_path)]
    killed = Forked("rejoin.cli", words, {**os.environ, "REJOIN_CRASH": point}).wait(120)
    assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire: {killed.stderr}"
    topic.send(list(of_lines([*gone(40, 5), order(41, 6, "new")])))
    shop.run()
    rows = shop.rows("enriched")
    assert rows.keys() == set(range(1, 30)) - {5} and rows[6]["note"] == "new"
    made = [c for c in changes_of(shop.topology, "enriched") if c["_op"] == "I"]
    assert len(made) == len({c["id"] for c in made})


def test_partitions_that_are_added_are_read_from_their_beginning(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(1, 1), order(5, 2, "old")], 1)])
    shop.run()
    topic.grow(3)
    [(_, key, value, headers)] = of_lines([order(7, 2, "moved")], 1)
    topic.send([(2, key, value, headers)])
    [late] = of_lines([order(6, 2, "not the newest")], 1)
    topic.send([late])
    assert shop.run()["ingest.orders"]["read"] == 2
    assert shop.rows("enriched")[2]["note"] == "moved", "the position in the log of the database decides"


def test_fault_s19_an_open_transaction_is_waited_for(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    producer = held_open(topic, shop)
    assert shop.run()["ingest.orders"]["read"] == 0
    producer.commit_transaction(20)
    for _ in range(50):  # its mark is written a moment later
        shop.run()
        if shop.rows("enriched").keys() == {1, 2, 3}:
            break
        time.sleep(0.1)
    assert shop.rows("enriched").keys() == {1, 2, 3}


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
def test_refused_messages_are_kept_with_their_text_and_found_by_their_offset(
    tmp_path: Path, sessions: Sessions, new: New, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    if engine == "spark":
        limited(monkeypatch, fetched_bytes=1, task_bytes=1 << 40)
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    good: list[Sent] = [*of_lines([order(i, i) for i in range(1, 40)], 1)]
    [unchanged] = of_lines([put(90, 77, customer=1, note=UNCHANGED)], 1)
    topic.taken_back(good[:5])
    *_, cut, no_text, late = topic.send([*good, (0, b'{"id":50}', b'{"cut', {}), (0, b"\xff", None, {}), unchanged])
    counts = shop.run()["ingest.orders"]
    assert (counts["read"], counts["applied"], counts["quarantined"]) == (42, 39, 3)
    part = f"kafka://kafka/{topic.name}/0"
    kept = shop.kept_aside("orders")
    assert {at: code for at, (code, _) in kept.items()} == {
        (part, cut): "BAD_JSON",
        (part, no_text): "BAD_JSON",
        (part, late): "TOAST_UNRESOLVED",
    }
    assert kept[part, cut][1] == f'{{"key":{{"id":50}},"value":"{{\\"cut","topic":"{topic.name}"}}'
    assert json.loads(kept[part, late][1])["value"]["after"]["id"] == 77, "read again by its offset"


def test_people_are_told_records_and_offsets_and_never_the_address(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(i, i) for i in range(1, 4)], 1)])
    where = ["--lake", str(tmp_path / "lake"), "--root", str(tmp_path)]
    told = CliRunner().invoke(main, ["plan", str(tmp_path / "t.py"), *where], catch_exceptions=False).output
    assert "orders 3 new records of a topic, or fewer" in " ".join(told.split())
    shop.run()
    told += CliRunner().invoke(main, ["plan", str(tmp_path / "t.py"), *where], catch_exceptions=False).output
    assert "orders nothing new" in " ".join(told.split())
    why = CliRunner().invoke(main, ["why", "enriched", "2", "--lake", where[1], "--root", where[3]], catch_exceptions=False).output
    assert f"kafka://kafka/{topic.name}/0 offset 1  <- made it" in why
    told += why + CliRunner().invoke(main, ["explain", str(tmp_path / "t.py")], catch_exceptions=False).output
    assert os.environ["REJOIN_SOURCE_KAFKA"] not in told
    pins = json.dumps(shop.topology.ledger.pins(1))
    assert os.environ["REJOIN_SOURCE_KAFKA"] not in pins and topic.name in pins


def test_a_table_goes_on_from_files_to_a_topic(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = lake(tmp_path, sessions, "debezium('orders')")
    shop.land("orders/1.jsonl", "\n".join([order(1, 1), order(2, 2)]))
    shop.run()
    topic.send([*of_lines([order(1, 1), order(2, 2), order(3, 1, "newer")], 1)])
    shop.declare(JOINED.format(orders=of_topic(topic)))
    counts = shop.run()["ingest.orders"]
    assert (counts["read"], counts["duplicate"], counts["applied"]) == (3, 2, 1)
    shop.declare('t.table("x", key="id", schema="id BIGINT", source=snapshot("customers")).filter("id > 0").named("y")')
    shop.run()
    shop.declare(JOINED.format(orders="debezium('orders')"))
    with pytest.raises(SchemaRefused, match="is now read from debezium 'orders'"):
        shop.run()


def test_twenty_topics_without_news_take_less_than_a_second_of_cpu(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topics = [new(2) for _ in range(20)]
    table = 't.table("{0}", key="id", schema="id BIGINT, note STRING", source=debezium(kafka("{1}"))).filter("id > 0").named("{0}_out")'
    shop = Lake(tmp_path, sessions, "\n".join(table.format(f"t{i}", topic.name) for i, topic in enumerate(topics)))
    for topic in topics:
        topic.send([*of_lines([order(1, 1)])])
    shop.run()
    took = []
    for _ in range(3):
        began = time.process_time()
        topology = shop.topology
        run = topology.open(f"test {began}")
        topology.cut(run)
        took.append(time.process_time() - began)
        topology.ledger.abandon(run.number, "only its cut is measured")
    assert min(took) < 1.0


def test_records_of_a_topic_are_a_stream(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = Lake(
        tmp_path,
        sessions,
        f"""
clicks = t.stream("clicks", id=None, schema="page STRING, at TIMESTAMP", event_time="at", source=records(kafka({topic.name!r})))
clicks.filter("page <> ''").named("pages")
""",
    )
    topic.send([(0, None, json.dumps({"page": page, "at": "2026-01-01T00:00:00Z"}).encode(), {}) for page in "aab"])
    assert shop.run()["ingest.clicks"]["applied"] == 3
    topic.send([(0, None, json.dumps({"page": "c", "at": "2026-01-01T00:00:00Z"}).encode(), {})])
    assert shop.run()["ingest.clicks"]["applied"] == 1


def test_messages_in_avro_are_read_by_the_schemas_of_a_registry(
    tmp_path: Path, sessions: Sessions, new: New, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one row whose octets differ, since they name other schemas (B21)."""
    fields = [{"name": "id", "type": "long"}, {"name": "customer", "type": ["null", "long"]}, {"name": "note", "type": ["null", "string"]}]
    row = {"type": "record", "name": "Row", "fields": fields}
    origin = {"type": "record", "name": "Source", "fields": [{"name": "connector", "type": "string"}, {"name": "lsn", "type": "long"}]}
    parts = [("before", ["null", row]), ("after", ["null", "Row"]), ("op", "string"), ("source", origin)]
    envelope = {"type": "record", "name": "Envelope", "fields": [{"name": name, "type": type_} for name, type_ in parts]}
    key = {"type": "record", "name": "Key", "fields": fields[:1]}

    def wire(id_: int, schema: object, value: object) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
        return b"\0" + id_.to_bytes(4, "big") + out.getvalue()

    def change(lsn: int, id_: int, schema: int = 2, key_schema: int = 1) -> tuple[int, bytes, bytes, dict[str, bytes]]:
        after = {"id": id_, "customer": 3, "note": f"note {lsn}"}
        value = {"before": None, "after": after, "op": "c", "source": {"connector": "postgresql", "lsn": lsn}}
        return 0, wire(key_schema, key, {"id": id_}), wire(schema, envelope, value), {}

    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    with registry() as (url, schemas):
        schemas += [json.dumps(key), json.dumps(envelope), json.dumps(key | {"doc": "later"}), json.dumps(envelope | {"doc": "later"})]
        monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({"address": broker.address, "schema.registry.url": url}))
        _, named, value, _ = change(4, 9)
        *_, cut = topic.send([change(1, 1), change(2, 2), change(3, 1), (0, named, value[:-3], {})])
        assert shop.run()["ingest.orders"]["quarantined"] == 1
        assert {k: (r["note"], r["name"]) for k, r in shop.rows("enriched").items()} == {1: ("note 3", "n3"), 2: ("note 2", "n3")}
        assert list(shop.kept_aside("orders")) == [(f"kafka://kafka/{topic.name}/0", cut)]
        topic.send([change(5, 1, schema=4, key_schema=3)])
        assert shop.run()["ingest.orders"]["applied"] == 1
        assert shop.rows("enriched").keys() == {1, 2} and shop.rows("enriched")[1]["note"] == "note 5"
        topic.send([change(6, 5, schema=7)])
        with pytest.raises(SchemaUnknown, match=r"does not give schema 7 \(HTTP 404\)"):
            shop.run()
    with pytest.raises(SourceDown, match="the schema registry of source 'kafka' gave no answer"):
        shop.run()


def test_the_page_about_a_topic_and_a_joined_table_says_what_happens(tmp_path: Path, broker: KafkaServer) -> None:
    (empty := tmp_path / "empty").mkdir()
    environment = checkout(tmp_path / "bin") | {"REJOIN_SOURCE_KAFKA": broker.address}
    follow((Path(__file__).parents[2] / "docs" / "kafka.md").read_text(), empty, environment)
