"""Runs over files as tools write them: Kafka Connect's directories with keys of their own, packed documents, Hive's partitions, by both engines."""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard
from integration.forked import Forked

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium, records, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT", source=debezium("topics/shop.orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
clicks = t.stream("clicks", id="id", event_time="at", schema="id BIGINT, customer BIGINT, at TIMESTAMP", source=records("lake/*/clicks/**"))
orders.join(customers, foreign_key="customer", select=["left.id", "right.name"], name="enriched")
clicks.join(customers, foreign_key="customer", as_of="run", select=["left.id", "left.customer"], name="seen")
"""


def put(root: Path, name: str, content: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def envelope(op: str, after: Any, lsn: int) -> str:
    return json.dumps({"op": op, "before": None, "after": after, "source": {"connector": "postgresql", "lsn": lsn}})


def connect(root: Path, partition: int, offset: int, events: list[tuple[int, str]]) -> None:
    """A file of values and one of their keys, as the sink writes them."""
    name = f"topics/shop.orders/partition={partition}/shop.orders+{partition}+{offset:010}"
    put(root, f"{name}.json.gz", gzip.compress("\n".join(value for _, value in events).encode()))
    put(root, f"{name}.keys.json.gz", gzip.compress("\n".join(json.dumps({"id": key}) for key, _ in events).encode()))


def rejoin(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = Forked("rejoin.cli", [*words, "--lake", str(root / "lake.d")], {**os.environ}).wait(300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def rows(root: Path, query: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rejoin(root, "sql", query, "--json").stdout.splitlines()]


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
def test_files_of_tools_become_joined_rows_and_the_next_run_takes_the_new_ones(tmp_path: Path, engine: str) -> None:
    (tmp_path / "t.py").write_text(FILE)
    run = ("run", str(tmp_path / "t.py"), "--root", str(tmp_path), "--engine", engine)
    people = [{"id": i, "name": f"n{i}"} for i in range(3)]
    put(tmp_path, "customers/1.json", zstandard.compress(json.dumps(people, indent=1).encode()))
    for region in ("eu", "us"):
        clicks = "".join(json.dumps({"id": i, "customer": i, "at": "2026-11-26T10:00:00Z"}) for i in (1, 2) if (i == 1) == (region == "eu"))
        put(tmp_path, f"lake/v1/clicks/region={region}/batch-7/part-0.json", clicks.encode())
    connect(tmp_path, 0, 0, [(i, envelope("c", {"id": i, "customer": i % 3}, 100 + i)) for i in range(6)])
    connect(tmp_path, 10, 0, [(7, envelope("c", {"id": 7, "customer": 1}, 200))])
    rejoin(tmp_path, *run)
    assert rows(tmp_path, "SELECT id, name FROM enriched ORDER BY id") == [{"id": i, "name": f"n{i % 3}"} for i in (*range(6), 7)]
    assert rows(tmp_path, "SELECT id, customer FROM seen ORDER BY id") == [{"id": i, "customer": i} for i in (1, 2)]

    connect(tmp_path, 0, 6, [(2, envelope("d", None, 300)), (2, "null"), (3, envelope("u", {"id": 3, "customer": 2}, 301))])
    rejoin(tmp_path, *run)
    expected = [{"id": i, "name": f"n{2 if i == 3 else i % 3}"} for i in (0, 1, 3, 4, 5, 7)]
    assert rows(tmp_path, "SELECT id, name FROM enriched ORDER BY id") == expected
    assert "nothing new" in rejoin(tmp_path, *run).stdout
