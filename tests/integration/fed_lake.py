"""A lake whose orders come from a topic, and the changes that are sent to it."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from integration.conftest import Sessions
from integration.sent import Topic, of_lines
from integration.texts import UNCHANGED, Lake, line, put

JOINED = """
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING", source={orders})
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
orders.join(customers, foreign_key="customer").named("enriched")
"""


def lake(root: Path, sessions: Sessions, orders: str) -> Lake:
    root.mkdir(exist_ok=True)
    made = Lake(root, sessions, JOINED.format(orders=orders))
    made.land("customers/1.csv", "id,name\n" + "".join(f"{i},n{i}\n" for i in range(10)))
    return made


def of_topic(topic: Topic) -> str:
    return f"debezium(kafka({topic.name!r}))"


def fed(root: Path, sessions: Sessions, topic: Topic) -> Lake:
    return lake(root, sessions, of_topic(topic))


def held_open(topic: Topic, shop: Lake) -> Producer:
    """One change is read; then an open transaction, whose producer is given, has one in the only partition, and holds back another that is written behind it."""
    topic.send([*of_lines([order(1, 1)], 1)])
    shop.run()
    producer = topic.transaction()
    [(_, key, value, _)] = of_lines([order(2, 2)], 1)
    producer.produce(topic.name, key=key, value=value, partition=0)
    producer.flush(20)
    topic.send([*of_lines([order(3, 3)], 1)])
    return producer


def order(lsn: int, key: int, note: str = "", **more: Any) -> str:
    return put(lsn, key, customer=lsn % 10, note=note or f"note {lsn}", **more)


def gone(lsn: int, key: int) -> list[str]:
    return [line("d", lsn, {"id": key}), json.dumps({"key": {"id": key}, "value": None, "headers": {}})]


def batches() -> list[list[str]]:
    first = [order(i, i % 300) for i in range(1, 1_000)] + gone(1_001, 7) + gone(1_002, 8)
    moved = [line("d", 2_000, {"id": 12}), put(2_000, 900, 12, customer=3, note=UNCHANGED)]
    unkeyed = line("u", 2_010, None, {"id": 13, "customer": 4, "note": "without key"})
    return [first, [*moved, unkeyed, *gone(2_020, 14), order(2_021, 14), order(50, 15, "late"), line("m", 2_030, None, None)]]
