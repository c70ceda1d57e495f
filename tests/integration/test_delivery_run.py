"""Whole runs with sinks: what happens to the lake, to other sinks and to changes not yet delivered (P2), and the tables read by other engines."""

import json
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from integration.conftest import Go, Sessions
from integration.servers import KafkaServer
from integration.shop import SOURCE, Shop, check, output
from limited import limited
from pyiceberg.catalog.sql import SqlCatalog

from rejoin.airflow.local.server import free_port
from rejoin.cli import main
from rejoin.errors import SinksBehind
from rejoin.lake import table_names
from rejoin.operate.compact import compact
from rejoin.steps.deliver.step import oldest_needed

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.postgres]


def table(database: str) -> dict[object, dict[str, object]]:
    with psycopg.connect(database) as db, db.cursor() as cursor:
        cursor.execute("SELECT * FROM shop.enriched")
        assert cursor.description is not None
        names_ = [c.name for c in cursor.description]
        return {row[0]: dict(zip(names_, row, strict=True)) for row in cursor}


def topic(address: str) -> dict[object, object]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "t", "enable.partition.eof": True, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("enriched", 0, OFFSET_BEGINNING)])
    state: dict[object, object] = {}
    while (message := consumer.poll(20)) is not None and message.error() is None:
        key, value = json.loads(message.key() or b"")["id"], message.value()
        state[key] = None if value is None else json.loads(value)["after"]
    consumer.close()
    return {k: v for k, v in state.items() if v is not None}


def test_undelivered_changes_outlive_a_compaction_and_a_new_definition_and_the_tables_are_read_by_others(
    tmp_path: Path, go: Go, sessions: Sessions, broker: KafkaServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path)
    sinks = '.to(kafka("enriched", partitions=1), postgres("shop.enriched"))\n'
    source = SOURCE.replace("debezium, snapshot", "debezium, kafka, postgres, snapshot").rstrip() + sinks
    shop.file.write_text(source)
    monkeypatch.setenv("REJOIN_SINK_KAFKA", broker.address)
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    shop.next_batch(12)
    go(shop.topology())
    assert topic(broker.address) == table(database) == output(shop.topology())

    monkeypatch.setenv("REJOIN_SINK_KAFKA", f"127.0.0.1:{free_port()}")
    slow = source.replace("partitions=1", 'partitions=1, producer={"max.block.ms": 1000}')
    shop.file.write_text(slow)
    shop.next_batch(12)
    with pytest.raises(SinksBehind, match=r"people\.kafka|enriched\.kafka: SINK_DOWN"):
        go(shop.topology())
    assert shop.topology().ledger.head() == 2 and table(database) == shop.expected()
    shop.file.write_text(slow.replace("left.note", "upper(left.note) AS note"))
    shop.next_batch(12)
    arguments = ["run", str(shop.file), "--lake", str(shop.lake), "--root", str(shop.root)]
    unasked = CliRunner().invoke(main, arguments)
    assert unasked.exit_code == 2 and "PLAN_NOT_APPROVED" in unasked.output and len(shop.topology().ledger.runs()) == 2
    said = CliRunner().invoke(main, [*arguments, "--yes"])
    assert said.exit_code == 7 and "enriched.kafka" in said.output, said.output
    assert shop.topology().ledger.run(3).rebuild == ("enriched",)
    assert oldest_needed(shop.topology()) == 2

    limited(monkeypatch, merged_files=2)
    topology = shop.topology()
    folded = compact(topology, lambda: sessions(topology), "test")
    assert folded is not None and f"compact.{table_names.changes('enriched')}" in topology.ledger.steps(folded.number)
    monkeypatch.setenv("REJOIN_SINK_KAFKA", broker.address)
    assert CliRunner().invoke(main, ["publish", str(shop.file), "--lake", str(shop.lake)]).exit_code == 0
    assert topic(broker.address) == table(database) == output(shop.topology())
    assert {r["note"] for r in output(shop.topology()).values()} == {str(r["note"]).upper() for r in shop.expected().values()}
    assert oldest_needed(shop.topology()) is None
    shown = json.loads(CliRunner().invoke(main, ["sinks", "--lake", str(shop.lake), "--json"]).stdout)["sinks"]
    assert [(s["sink"], s["at_run"], s["runs_behind"]) for s in shown] == [("enriched.kafka", 3, 0), ("enriched.postgres", 3, 0)]
    readers_agree(shop, sessions)


def readers_agree(shop: Shop, sessions: Sessions) -> None:
    """The examples of docs/sinks.md: PyIceberg, DuckDB through Arrow, Spark; now, as of a run, and the changes."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{shop.lake}/catalog.db", warehouse=(shop.lake / "warehouse").as_uri())
    output_, log = catalog.load_table("shop.enriched"), catalog.load_table("shop.enriched__changes")
    then = output_.scan(snapshot_id=output_.refs()["run_1"].snapshot_id).to_arrow()
    changes = log.scan(row_filter="_run == 2").to_arrow()
    with duckdb.connect() as database:
        database.register("now", output_.scan().to_arrow())
        database.register("changes", changes)
        found = database.sql("SELECT id, note, customer FROM now ORDER BY id").fetchall()
        deleted = database.sql("SELECT count(*) FROM changes WHERE _op = 'D' AND _before.note IS NOT NULL AND _after IS NULL").fetchall()
    spark = sessions(shop.topology())
    assert [tuple(r) for r in spark.table("lake.shop.enriched").select("id", "note", "customer").orderBy("id").collect()] == found
    assert spark.sql("SELECT * FROM lake.shop.enriched VERSION AS OF 'run_1'").count() == then.num_rows
    assert spark.sql("SELECT * FROM lake.shop.enriched__changes WHERE _run = 2").count() == changes.num_rows > 0
    assert deleted[0][0] == sum(op == "D" for op in changes["_op"].to_pylist())


def test_without_sinks_nothing_is_different(tmp_path: Path, go: Go) -> None:
    shop = Shop(tmp_path)
    shop.next_batch()
    go(shop.topology())
    check(shop)
    assert oldest_needed(shop.topology()) is None
