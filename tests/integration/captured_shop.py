"""A shop in PostgreSQL whose tables are captured: its topology, the processes that capture it, its writers, and what PostgreSQL says the join is."""

import os
import random
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from integration.forked import Forked
from integration.shop import rows
from psycopg import errors
from sparkless import no_spark

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

FILE = """
from rejoin import Topology, captured, debezium

shop = Topology("shop")
orders = shop.table(
    "orders", key="id", schema="id INT, customer INT, total DECIMAL(12,2), note STRING", source=debezium(captured("public.orders", at="{at}"))
)
customers = shop.table("customers", key="id", schema="id INT, name STRING", source=debezium(captured("public.customers", at="{at}")))
orders.left_join(
    customers, foreign_key="customer", select=["left.*", "right.name AS name"]
).named("enriched", max_change_share=1.0)
"""
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric(12, 2), note text);
CREATE TABLE customers (id int PRIMARY KEY, name text);
ALTER TABLE orders ALTER note SET STORAGE EXTERNAL
"""
JOIN = "SELECT o.id, o.customer, o.total, o.note, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id ORDER BY o.id"
ENTRY = str(Path(__file__).parents[2] / "include" / "rejoin" / "cli" / "__main__.py")


class CapturedShop:
    """Two empty tables in a database of their own, and a directory to capture into.

    Args:
        server: the URL of a server that logs what a capture needs.
        name: of the database and of the connection.
        root: the directory.
    """

    def __init__(self, server: str, name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.at = root, name
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        self.url = server.rsplit("/", 1)[0] + f"/{name}"
        self.db = psycopg.connect(self.url, autocommit=True)
        self.db.execute(TABLES)
        monkeypatch.setenv(f"REJOIN_SOURCE_{name.upper()}", self.url)
        (root / "shop.py").write_text(FILE.format(at=name))

    def started(self, *options: str, **environment: str) -> Forked:
        """A process that captures."""
        words = ["capture", str(self.root / "shop.py"), "--root", str(self.root), "--lake", str(self.root / "lake"), *options]
        return Forked(ENTRY, words, {**os.environ, **environment})

    def capture(self, *options: str, code: int = 0, **environment: str) -> str:
        """Captures once; what that prints."""
        done = self.started("--once", *options, **environment).wait(120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "shop.py")), lake_config(str(self.root / "lake")), str(self.root))

    def run(self) -> dict[str, Any]:
        """A run; what each source's records became."""
        topology = self.topology
        run = run_topology(topology, no_spark, f"test {len(topology.ledger.runs())}")
        return {name: step.counts for name, step in topology.ledger.steps(run.number).items()}

    def joined(self) -> list[tuple[Any, ...]]:
        """The output."""
        return self.stored("enriched", "id", "customer", "total", "note", "name")

    def stored(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a published table, by the first column."""
        return sorted((tuple(row[c] for c in columns) for row in rows(self.topology, name)), key=lambda row: row[0])

    def expected(self) -> list[tuple[Any, ...]]:
        """What PostgreSQL says that it is."""
        return self.db.execute(JOIN).fetchall()

    @property
    def files(self) -> list[Path]:
        """What has landed."""
        return sorted(file for end in ("jsonl", "parquet") for file in (self.root / "landing").rglob(f"*.{end}"))

    def fill(self, orders: int) -> None:
        """Rows to begin with."""
        self.db.execute("INSERT INTO customers SELECT i, 'name ' || i FROM generate_series(1, 200) i")
        self.db.execute("INSERT INTO orders SELECT i, i %% 250, i * 1.25, repeat('x', i %% 100) FROM generate_series(1, %s) i", (orders,))


class Writer(threading.Thread):
    """Random transactions over both tables, until it is stopped: inserts, updates, deletes, new keys, large values, some rolled back, some long."""

    def __init__(self, url: str, seed: int, keys: int) -> None:
        super().__init__()
        self._url, self._random, self._keys, self._stop_now = url, random.Random(seed), keys, threading.Event()
        self.transactions = 0

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as db:
            while not self._stop_now.is_set():
                try:
                    with db.transaction():
                        for _ in range(self._random.randrange(1, 6)):
                            self._change(db)
                        if self._random.random() < 0.05:
                            raise psycopg.Rollback
                        if self._random.random() < 0.02:
                            self._stop_now.wait(self._random.random() / 2)
                    self.transactions += 1
                except (errors.UniqueViolation, errors.DeadlockDetected):
                    pass

    def stop(self) -> None:
        """Ends it."""
        self._stop_now.set()
        self.join()

    def _change(self, db: psycopg.Connection[Any]) -> None:
        key, kind = self._random.randrange(1, self._keys * 4 // 3), self._random.random()
        if kind < 0.1:
            db.execute("DELETE FROM orders WHERE id = %s", (key,))
        elif kind < 0.15:
            db.execute("UPDATE orders SET id = id + %s WHERE id = %s", (self._keys * 10, key))
        elif kind < 0.2:
            db.execute("UPDATE orders SET note = %s WHERE id = %s", (self._random.randbytes(2000).hex(), key))
        elif kind < 0.25:
            db.execute("INSERT INTO customers VALUES (%s, 'x') ON CONFLICT (id) DO UPDATE SET name = customers.name || 'x'", (key % 250,))
        elif kind < 0.27:
            db.execute("DELETE FROM customers WHERE id = %s", (key % 250,))
        else:
            total = Decimal(self._random.randrange(10**6)) / 100
            upsert = "INSERT INTO orders VALUES (%s, %s, %s, 'y') ON CONFLICT (id) DO UPDATE SET total = EXCLUDED.total"
            db.execute(upsert, (key, key % 250, total))
