"""Random histories: edits of an output between runs, with sinks that are killed and catch up in between (C2).

After the last delivery a topic, folded as its readers do, and a table in PostgreSQL are the output. Repeated by the seed in the header.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from integration.conftest import Go, Sessions
from integration.servers import KafkaServer
from integration.shop import SOURCE, Row, Shop, folded, output
from limited import limited

from rejoin.operate.compact import compact

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(600)]

STEPS = 7
Value = Callable[[Row, str | None], object]
NOTES: dict[str, Value] = {
    "left.note": lambda order, _: order["note"],
    "upper(left.note) AS note": lambda order, _: str(order["note"]).upper(),
    "CASE WHEN left.id % 2 = 0 THEN left.note END AS note": lambda order, _: order["note"] if int(str(order["id"])) % 2 == 0 else None,
}
OTHERS: dict[str, dict[str, Value]] = {
    "note": NOTES,
    "ref": {"left.customer_id AS ref": lambda order, _: order["customer_id"]},
    "customer": {"right.name AS customer": lambda _, name: name},
}
"""Column -> the ways to make it, each with what Python says it is."""
POINTS = {
    "kafka": [f"{n}:{where}" for n in (1, 2) for where in ("begun", "first", "produced", "marked", "flushed", "committed")],
    "postgres": [f"1:{where}" for where in ("locked", "copying", "staged", "rows_locked", "deleted", "merged", "moved", "committed")],
}


@dataclass
class History:
    """A shop whose output is edited, and what was done to it."""

    shop: Shop
    name: str
    random: random.Random
    done: list[str] = field(default_factory=list)
    kills: int = 0

    def __post_init__(self) -> None:
        self.chosen = {column: next(iter(ways)) for column, ways in OTHERS.items()}
        pick = self.random.choice
        how = f'partitions=2, batch={pick([1, 2, 4])}, catch_up="{pick(["net", "every"])}", guarantee="{pick(["exactly_once", "at_least_once"])}"'
        start = pick(["changes", "snapshot"])
        target = f'"{self.name}.enriched", catch_up="{pick(["net", "every"])}", start="{start}"'
        self.sinks = f'.to(kafka("{self.name}", {how}, start="{start}"), postgres({target}))\n'
        self.done.append(self.sinks)
        self.declare()

    def declare(self, *, sinks: bool = True) -> None:
        select = ", ".join(f'"{text}"' for text in ("left.id", *self.chosen.values()))
        source = SOURCE.replace('"left.id", "left.note", "right.name AS customer"', select)
        source = source.replace("debezium, snapshot", "debezium, kafka, postgres, snapshot").replace('"shop")', f'"{self.name}")', 1)
        self.shop.file.write_text(source.rstrip() + (self.sinks if sinks else "\n"))

    def edit(self) -> None:
        """Takes a column away, brings one back, or makes one in another way."""
        column = self.random.choice(list(OTHERS))
        ways = [None, *OTHERS[column]] if len(self.chosen) > 1 else list(OTHERS[column])
        self.chosen.pop(column, None)
        if (way := self.random.choice(ways)) is not None:
            self.chosen[column] = way
        self.done.append(f"columns {list(self.chosen.values())}")

    def expected(self) -> dict[object, Row]:
        made: dict[object, Row] = {}
        for key, order in self.shop.orders.items():
            name = self.shop.customers.get(order["customer_id"]) if order["customer_id"] else None  # type: ignore[call-overload]
            made[key] = {"id": key, **{c: OTHERS[c][way](order, name) for c, way in self.chosen.items()}}
        return made

    def publish(self, *arguments: str, at: str | None = None) -> None:
        """``rejoin publish`` in a process of its own; ``at``: where it is killed, if it comes there."""
        self.declare()
        command = [sys.executable, "-m", "rejoin.cli", "publish", str(self.shop.file), "--lake", str(self.shop.lake), *arguments]
        environment = {**os.environ, "PYTHONPATH": "include", **({"REJOIN_CRASH": at} if at else {})}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        self.done.append(f"publish {' '.join(arguments)} {at or ''} -> {done.returncode}")
        assert done.returncode == 0 or (at and done.returncode == -signal.SIGKILL), f"{self.done}\n{done.stderr}"
        self.kills += done.returncode != 0

    def killed(self) -> None:
        kind = self.random.choice(list(POINTS))
        again = self.random.choice([(), (), (), ("--snapshot",), ("--from-run", "1")])
        arguments = ("--sink", f"enriched.{kind}", *again) if again else ()
        self.publish(*arguments, at=f"deliver.enriched.{kind}:{self.random.choice(POINTS[kind])}")


def topic(address: str, name: str) -> dict[object, dict[str, Any]]:
    """What a reader of committed records ends with."""
    settings = {"bootstrap.servers": address, "group.id": "t", "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer, state = Consumer(settings), dict[object, dict[str, Any]]()
    for partition in range(2):
        consumer.assign([TopicPartition(name, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(20)) is not None and message.error() is None:
            key, value = json.loads(message.key() or b"")["id"], message.value()
            state[key] = {} if value is None else json.loads(value)["after"]
    consumer.close()
    return {key: row for key, row in state.items() if row}


def table(database: str, name: str, columns: list[str]) -> dict[object, Row]:
    with psycopg.connect(database) as db:
        found = db.execute(f"SELECT {', '.join(columns)} FROM {name}.enriched").fetchall()  # type: ignore[call-overload]
    return {row[0]: dict(zip(columns, row, strict=True)) for row in found}


@pytest.mark.parametrize("number", [1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 9))])
def test_after_edits_kills_and_catch_ups_a_topic_and_a_table_are_the_output(
    tmp_path: Path, go: Go, sessions: Sessions, broker: KafkaServer, database: str, number: int, request: pytest.FixtureRequest
) -> None:
    seed = f"{request.config.getoption('hypothesis_seed')} {number}"
    patch = request.getfixturevalue("monkeypatch")
    patch.setenv("REJOIN_SINK_KAFKA", broker.address)
    patch.setenv("REJOIN_SINK_POSTGRES", database)
    limited(patch, merged_files=3)
    history = History(Shop(tmp_path, seed=number), f"edited{number}", random.Random(seed))
    shop = history.shop
    for step in range(STEPS):
        if step:
            history.edit()
        shop.next_batch()
        history.declare(sinks=False)
        go(shop.topology())
        history.done.append("run")
        if not step:
            history.publish()  # with all columns there are: whoever adds one to a table of PostgreSQL has to alter it
        elif step % 2:
            history.killed()
        elif history.random.random() < 0.5:
            compact(shop.topology(), lambda: sessions(shop.topology()), "test")
            history.done.append("compact")
    history.publish()
    print(f"\nseed {seed}: {history.kills} kills", *history.done, sep="\n  ")
    expected = history.expected()
    assert output(shop.topology()) == expected, seed
    kept = {key: {c: row.get(c) for c in ("id", *history.chosen)} for key, row in folded(shop.topology()).items()}
    assert kept == expected, seed
    found = topic(broker.address, history.name)
    assert {key: {c: row.get(c) for c in ("id", *history.chosen)} for key, row in found.items()} == expected, seed
    left = {key: {c: v for c, v in row.items() if c not in ("id", *history.chosen) and v is not None} for key, row in found.items()}
    assert not any(left.values()), f"{seed}: old values stay in a topic: {left}"
    assert table(database, history.name, ["id", *history.chosen]) == expected, seed
