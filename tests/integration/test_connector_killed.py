"""The real Debezium, killed at random in its initial snapshot, which begins again: the output is the join that the database executes, 0 lost and 0 phantom (S4)."""

import random
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from integration.mariadb import MariaDb, Worker, connect, mariadb
from integration.servers import KafkaServer
from integration.shop import rows
from sparkless import no_spark

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.kafka, pytest.mark.debezium, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1200)]
KILLS, ORDERS, CUSTOMERS = 5, 6_000, 500
TABLES = f"""
CREATE TABLE customers (id int PRIMARY KEY, name varchar(50));
CREATE TABLE orders (id int PRIMARY KEY, customer int, note varchar(20));
INSERT INTO customers SELECT seq, concat('c', seq) FROM seq_1_to_{CUSTOMERS};
INSERT INTO orders SELECT seq, seq % {CUSTOMERS + 50}, 'first' FROM seq_1_to_{ORDERS};
"""
JOIN = "SELECT json_array(o.id, o.customer, o.note, c.name) FROM orders o LEFT JOIN customers c ON o.customer = c.id ORDER BY o.id"
FILE = """
from rejoin import Topology, debezium, kafka

t = Topology("t")
orders = t.table("orders", key="id", schema="id INT, customer INT, note STRING", source=debezium(kafka("shop.shop.orders"), max_delete_share=1))
customers = t.table("customers", key="id", schema="id INT, name STRING", source=debezium(kafka("shop.shop.customers"), max_delete_share=1))
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name"]).named("enriched")
"""
SLOW = {"max.batch.size": "50", "max.queue.size": "100", "poll.interval.ms": "100", "snapshot.fetch.size": "50"}
"""2,000 rows a second at most, so that a kill hits the snapshot."""


def changed(chance: random.Random) -> str:
    """Rows go, get other keys, other values, and come, while nobody looks."""

    def some(of: int, share: float) -> str:
        return ", ".join(map(str, chance.sample(range(1, of + 1), int(of * share))))

    new = chance.randrange(10_000, 10_000_000)
    return f"""
    DELETE FROM orders WHERE id IN ({some(ORDERS, 0.02)}); DELETE FROM customers WHERE id IN ({some(CUSTOMERS, 0.02)});
    UPDATE orders SET id = id + 10000000 WHERE id IN ({some(ORDERS, 0.01)}); UPDATE orders SET note = '{new}' WHERE id IN ({some(ORDERS, 0.02)});
    INSERT IGNORE INTO orders VALUES ({new}, 7, 'new');
    """


def written(broker: KafkaServer, topic: str) -> int:
    """How many records a topic has."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "looks"})
    try:
        if topic not in consumer.list_topics(timeout=10).topics:
            return 0
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        consumer.close()


class Lake:
    """What rejoin makes of the topics."""

    def __init__(self, root: Path) -> None:
        self._root, self.reconciled, self.stale = root, 0, 0
        (root / "t.py").write_text(FILE)

    def run(self) -> Topology:
        topology = Topology(load(str(self._root / "t.py")), lake_config(str(self._root / "lake")), str(self._root))
        run = run_topology(topology, no_spark, f"test {len(topology.ledger.runs())}", options=RunOptions(fuse=Fuse.APPLY))
        for name, step in topology.ledger.steps(run.number).items():
            if name.startswith("ingest."):
                self.reconciled += step.counts["reconciled"]
                self.stale += step.counts["stale"]
        return topology

    def joined(self) -> list[list[Any]]:
        return sorted([r["id"], r["customer"], r["note"], r["name"]] for r in rows(self.run(), "enriched"))


def kill_in_its_snapshot(chance: random.Random, broker: KafkaServer, worker: Worker) -> None:
    """After some more orders, and before all of them."""
    began, deadline = written(broker, "shop.shop.orders"), time.monotonic() + 180
    upto = began + chance.randrange(1, ORDERS // 3)
    while written(broker, "shop.shop.orders") < upto:
        assert time.monotonic() < deadline and worker.process.poll() is None, worker.log.read_text()[-3000:]
        time.sleep(0.05)
    worker.process.kill()
    worker.process.wait()
    assert written(broker, "shop.shop.orders") < began + ORDERS * 0.8, "the snapshot was not over"


def test_a_connector_that_is_killed_in_its_snapshot_again_and_again_leaves_no_phantom(
    broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", broker.address)
    chance = random.Random(int(pytestconfig.option.hypothesis_seed))
    print(f"seed {pytestconfig.option.hypothesis_seed}")
    lake = Lake(tmp_path)
    with mariadb(tmp_path) as database:
        database.sql(TABLES)
        for number in range(KILLS):
            with connect(tmp_path, broker.address, database, **SLOW) as worker:
                kill_in_its_snapshot(chance, broker, worker)
            if number and chance.random() < 0.6:
                lake.run()
            database.sql(changed(chance))
        with connect(tmp_path, broker.address, database) as worker:
            until_equal(lake, database, worker)
            database.sql(changed(chance))
            until_equal(lake, database, worker)
    assert lake.stale + lake.reconciled > KILLS, "earlier tries had rows that the last one did not bring, or brought again"
    print(f"{lake.reconciled} rows reconciled, {lake.stale} stale")


def until_equal(lake: Lake, database: MariaDb, worker: Worker) -> None:
    expected, deadline = database.documents(JOIN), time.monotonic() + 240
    while (found := lake.joined()) != expected:
        lost, more = ([row for row in a if row not in b][:5] for a, b in ((expected, found), (found, expected)))
        assert time.monotonic() < deadline, f"lost {lost}, more {more}\n{worker.log.read_text()[-2000:]}"
        time.sleep(1)
