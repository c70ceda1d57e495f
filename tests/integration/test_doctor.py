"""``rejoin doctor`` with real sources: what is wrong with them is found before a run stops, or loses something."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.captured_shop import CapturedShop
from integration.sent import Topic, of_lines
from integration.servers import KafkaServer
from integration.texts import put
from pyiceberg.catalog.sql import SqlCatalog

from rejoin.capture.condition import Condition, SlotCondition
from rejoin.cli import main
from rejoin.doctor import databases
from rejoin.doctor.findings import State

Found = dict[tuple[str, str], tuple[str, str]]


def doctor(root: Path, *options: str, code: int = 0) -> Found:
    """What is looked at -> how it is, and what was found."""
    words = ["doctor", str(root / "shop.py"), "--root", str(root), "--lake", str(root / "lake"), *options]
    done = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.stdout + done.stderr
    shown = CliRunner().invoke(main, words, catch_exceptions=False)
    found = json.loads(done.stdout)["findings"]
    assert all(one["do"] or one["state"] == "ok" for one in found) and shown.exit_code == code
    assert shown.stdout.splitlines()[-1].startswith(f"{sum(one['state'] == 'problem' for one in found)} problems, ")
    return {(one["of"], one["what"]): (one["state"], one["found"]) for one in found}


def bad(found: Found) -> dict[tuple[str, str], str]:
    return {what: said for what, (state, said) in found.items() if state == "problem"}


def declared(root: Path, **sources: str) -> None:
    """A topology of one table a source."""
    tables = "".join(
        f't.table("{name}", key="id", schema="id BIGINT, v STRING", source={source}).named("{name}_kept")\n'
        for name, source in sources.items()
    )
    head = "from rejoin import Topology, changes, debezium, feed, iceberg, kafka, snapshot\n"
    (root / "shop.py").write_text(f'{head}t = Topology("t")\n{tables}')


@pytest.mark.postgres
@pytest.mark.slow
def test_a_captured_database(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = CapturedShop(logging_server, "doctored", tmp_path, monkeypatch)
    with shop.db:
        found = doctor(tmp_path)
        states = {what: state for (of, what), (state, _) in found.items() if of == "doctored"}
        assert states == {
            **dict.fromkeys(("connection", "wal_level", "rights"), "ok"),
            **dict.fromkeys(("slot", "max_slot_wal_keep_size", "publication", "last capture"), "warning"),
        }
        shop.capture()
        found = doctor(tmp_path)
        assert {state for (_, what), (state, _) in found.items() if what != "max_slot_wal_keep_size"} == {"ok"}
        assert doctor(tmp_path, "--every", "0.0000001")["doctored", "last capture"][0] == "warning"
        shop.db.execute("CREATE ROLE guest LOGIN; ALTER TABLE orders REPLICA IDENTITY NOTHING; DROP PUBLICATION rejoin_doctored")
        monkeypatch.setenv("REJOIN_SOURCE_DOCTORED", shop.url.replace("rejoin@", "guest@"))
        found = bad(doctor(tmp_path, code=1))
        assert found.keys() == {
            ("doctored", "rights"),
            ("doctored", "publication"),
            ("public.orders", "table"),
            ("public.customers", "table"),
        }
        assert "replica identity has no columns" in found["public.orders", "table"] and "SELECT" in found["public.customers", "table"]
        shop.db.execute("SELECT pg_drop_replication_slot('rejoin_doctored')")
        assert "it is gone" in bad(doctor(tmp_path, code=1))["doctored", "slot"]


@pytest.mark.postgres
@pytest.mark.slow
def test_a_database_that_does_not_log_enough_or_is_not_there(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(
        'from rejoin import Topology, captured, debezium\nt = Topology("t")\n'
        't.table("o", key="id", schema="id INT", source=debezium(captured("public.nothing", at="plain"))).named("k")\n'
    )
    monkeypatch.setenv("REJOIN_SOURCE_PLAIN", database)
    assert bad(doctor(tmp_path, code=1)).keys() == {("plain", "wal_level"), ("public.nothing", "table")}
    monkeypatch.setenv("REJOIN_SOURCE_PLAIN", "postgresql://me:verysecret@127.0.0.1:1/x")
    found = bad(doctor(tmp_path, code=1))
    assert found.keys() == {("plain", "database")} and "verysecret" not in str(found)


SLOT = SlotCondition("reserved", 1 << 20, 5 << 20)


@pytest.mark.parametrize(
    ("slot", "captured", "state"),
    [
        (None, False, State.WARNING),
        (None, True, State.PROBLEM),
        (SLOT, True, State.OK),
        (SlotCondition("extended", 1 << 30, None), True, State.OK),
        (SlotCondition("extended", 5 << 20, 1 << 20), True, State.WARNING),
        (SlotCondition("unreserved", 5 << 20, -1), True, State.PROBLEM),
        (SlotCondition("lost", 0, None), True, State.PROBLEM),
    ],
)
def test_the_states_of_a_slot(slot: SlotCondition | None, captured: bool, state: State) -> None:
    now = Condition("logical", True, True, 9, slot, frozenset(), "1GB")
    assert next(databases.slot("x", now, captured=captured)).state is state


def order(lsn: int) -> str:
    return put(lsn, lsn, v="x")


@pytest.mark.kafka
@pytest.mark.slow
def test_topics(broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", broker.address)
    hour = {"cleanup.policy": "compact,delete", "retention.ms": "3600000", "delete.retention.ms": "60000"}
    fine, short, avro, mixed = (Topic(broker.address, **config) for config in ({"retention.ms": "-1"}, hour, {}, {}))
    for topic in (fine, short):
        topic.send(list(of_lines([order(i) for i in range(1, 9)])))
    avro.send([(0, b"\0\0\0\0\1k", b"\0\0\0\0\1v", {})])
    mixed.send(
        [(0, b"1", b'{"op":"c","after":{"id":1,"v":"x"},"source":{"connector":"postgresql","lsn":1}}', {"__debezium.oldkey": b"{id=1}"})]
    )
    mixed.send([(1, b"1", b'{"database":"s","table":"o","type":"insert","ts":1,"data":{"id":1}}', {})] * 3)
    producer = fine.transaction()
    producer.produce(fine.name, b"{}", partition=0)
    producer.flush(10)
    declared(
        tmp_path,
        **{
            name: f'debezium(kafka("{topic.name}"))' for name, topic in {"fine": fine, "short": short, "avro": avro, "mixed": mixed}.items()
        },
        none='debezium(kafka("nobody.has.made.it"))',
        canal=f'feed(kafka("{fine.name}"), "canal", only="s.o")',
    )
    found = doctor(tmp_path, "--every", "1", code=1)
    producer.abort_transaction(10)
    assert bad(found).keys() >= {
        ("none", "topic"),
        ("short", "retention.ms"),
        ("short", "delete.retention.ms"),
        ("avro", "messages"),
        ("mixed", "headers"),
    }
    assert "changes of Maxwell" in found["mixed", "messages"][1] and "registry" not in str(bad(found)[("avro", "messages")])
    assert found["fine", "messages"] == ("ok", "the newest 8 look as declared") and found["fine", "retention.ms"] == ("ok", "without limit")
    assert found["fine", "transactions"][0] == "warning" and found["canal", "partitions"][0] == "warning"
    assert not {what for of, what in bad(found) if of == "fine"}
    monkeypatch.delenv("REJOIN_SOURCE_KAFKA")
    assert "SETUP" in bad(doctor(tmp_path, code=1))["kafka", "cluster"]


def test_files_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    bronze = SqlCatalog("bronze", **{k: v for k, v in settings.items() if k != "type"})
    bronze.create_namespace("s")
    rows = pa.table({"id": [1], "v": ["x"]})
    bronze.create_table("s.short", rows.schema, properties={"history.expire.max-snapshot-age-ms": "60000"}).append(rows)
    bronze.create_table("s.empty", rows.schema)
    monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps(settings))
    monkeypatch.setenv("REJOIN_SOURCE_DOWN", json.dumps({"type": "rest", "uri": "http://127.0.0.1:1", "token": "verysecret"}))
    landed: dict[str, Any] = {
        "good/1.jsonl": order(1),
        "maxwell/1.json": '{"database":"s","table":"o","type":"insert","ts":1,"data":{"id":1}}',
    }
    for name, text in {**landed, "good/deep/1.jsonl": order(2), "rows/1.csv": "id,v\n1,x\n", "rows/notes.txt": "?"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "hollow").mkdir()
    declared(
        tmp_path,
        good='debezium("good")',
        maxwell='debezium("maxwell")',
        rows='snapshot("rows")',
        hollow='debezium("hollow")',
        away='debezium("away")',
        short='snapshot(iceberg("s.short", at="bronze"))',
        empty='snapshot(iceberg("s.empty", at="bronze"))',
        gone='snapshot(iceberg("s.gone", at="bronze"))',
        elsewhere='snapshot(iceberg("s.x", at="nowhere"))',
        locked='snapshot(iceberg("s.x", at="down"))',
    )
    found = doctor(tmp_path, code=1)
    assert bad(found).keys() == {
        ("maxwell", "records"),
        ("away", "path"),
        ("empty", "files"),
        ("gone", "table"),
        ("elsewhere", "source"),
        ("locked", "source"),
    }
    assert "verysecret" not in str(found)
    assert found["good", "files"] == ("ok", "1, the last of them 1.jsonl") and found["good", "ignored"] == ("warning", "good/deep")
    assert found["hollow", "files"][0] == "warning" and found["rows", "ignored"] == ("warning", "rows/notes.txt")
    assert found["short", "snapshots"][0] == "warning" and "changes of Maxwell" in found["maxwell", "records"][1]
