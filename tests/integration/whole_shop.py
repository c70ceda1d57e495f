"""A shop of five tables in PostgreSQL: random transactions over it, what PostgreSQL says its joins are, and lakes that make them of its changes."""

import random
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

import psycopg
from integration.captured_shop import Writer
from integration.shop import Row, folded, rows
from pyspark.sql import SparkSession

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.sources import read_along, waiting
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, name text, since date, unread int);
CREATE TABLE addresses (id int PRIMARY KEY, city text, note text);
CREATE TABLE products (sku text PRIMARY KEY, name text, picture bytea);
CREATE TABLE orders (id bigint PRIMARY KEY, customer int, address int, placed timestamptz, note text);
CREATE TABLE items (order_id bigint, line int, sku text, quantity int, price numeric(12, 2), PRIMARY KEY (order_id, line));
CREATE TABLE rest (id serial PRIMARY KEY);
ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
ALTER TABLE addresses ALTER note SET STORAGE EXTERNAL
"""
FILL = """
INSERT INTO customers SELECT i, 'name ' || i, date '2000-01-01' + i FROM generate_series(1, {n} / 4) i;
INSERT INTO addresses SELECT i, 'city ' || i % 20, repeat('walk ', i % 7 * 100) FROM generate_series(1, {n} / 2) i;
INSERT INTO products SELECT 'sku ' || i, 'product ' || i, int4send(i) FROM generate_series(1, {n} / 5) i;
INSERT INTO orders SELECT i, i % ({n} / 3), i % {n}, timestamptz '2026-01-01' + i * interval '1.000001 s', repeat('x', i % 5 * 700)
    FROM generate_series(1, {n}) i;
INSERT INTO items SELECT i / 3, i % 3, 'sku ' || i % ({n} / 4), i % 9, i * 1.25 FROM generate_series(1, 3 * {n}) i
"""
DDL = "ALTER TABLE orders ADD COLUMN channel text; ALTER TABLE customers DROP COLUMN unread, ADD COLUMN unread_too int DEFAULT 7"
FILE = """
from rejoin import Topology, captured, debezium, kafka

shop = Topology("shop")
customers = shop.table("customers", key="id", schema="id INT, name STRING, since DATE", source={customers})
addresses = shop.table("addresses", key="id", schema="id INT, city STRING{note}", source={addresses})
products = shop.table("products", key="sku", schema="sku STRING, name STRING, picture BINARY", source={products})
orders = shop.table(
    "orders",
    key="id",
    schema="id BIGINT, customer INT, address INT, placed TIMESTAMP, note STRING, channel STRING",
    optional=["channel"],
    source={orders},
)
items = shop.table(
    "items",
    key=["order_id", "line"],
    schema="order_id BIGINT, line INT, sku STRING, quantity INT, price DECIMAL(12,2)",
    source={items},
)
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS customer_name", "right.since"]).left_join(
    addresses, foreign_key="address", select=["left.*", "right.city", {directions}]
).named("orders_full")
items.left_join(products, foreign_key="sku", select=["left.*", "right.name AS product", "right.picture"]).join(
    orders, foreign_key="order_id", select=["left.*", "right.customer", "right.note AS order_note", "right.channel"]
).left_join(customers, foreign_key="customer", select=["left.*", "right.name AS customer_name"]).named("lines")
"""
JOINS = {
    "orders_full": """
SELECT o.id, o.customer, o.address, o.placed, o.note, to_jsonb(o) ->> 'channel' AS channel, c.name AS customer_name, c.since, a.city, a.note AS directions
FROM orders o LEFT JOIN customers c ON o.customer = c.id LEFT JOIN addresses a ON o.address = a.id""",
    "lines": """
SELECT i.*, p.name AS product, p.picture, o.customer, o.note AS order_note, to_jsonb(o) ->> 'channel' AS channel, c.name AS customer_name
FROM items i LEFT JOIN products p ON i.sku = p.sku JOIN orders o ON i.order_id = o.id LEFT JOIN customers c ON o.customer = c.id""",
}
KEYS: dict[str, Callable[[Row], object]] = {"orders_full": itemgetter("id"), "lines": itemgetter("order_id", "line")}
STATEMENTS = (
    (20, "INSERT INTO orders VALUES ({order}, {customer}, {address}, now(), 'n{n}') ON CONFLICT (id) DO UPDATE SET customer = {customer}"),
    (10, "UPDATE orders SET address = CASE WHEN {n} % 5 > 0 THEN {address} END WHERE id = {order}"),
    (5, "UPDATE orders SET note = repeat(md5('{n}'), 80) WHERE id = {order}"),
    (6, "DELETE FROM orders WHERE id = {order}"),
    (4, "UPDATE orders SET id = id + 1000000, note = note || '.' WHERE id = {order} AND id < 1000000"),
    (
        20,
        "INSERT INTO items VALUES ({order}, {n} % 4, 'sku {product}', {n}, {n} / 7.0) ON CONFLICT (order_id, line) DO UPDATE SET price = {n} / 8.0",
    ),
    (8, "DELETE FROM items WHERE order_id = {order} AND line = {n} % 4"),
    (5, "UPDATE items SET line = line + 10, quantity = NULL WHERE order_id = {order} AND line < 10"),
    (8, "INSERT INTO customers VALUES ({customer}, 'é\" {n}') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, since = NULL"),
    (3, "DELETE FROM customers WHERE id = {customer}"),
    (3, "UPDATE customers SET id = {customer} + 1000000 WHERE id = {customer} AND id < 1000000"),
    (8, "INSERT INTO addresses VALUES ({address}, 'new', repeat('{n}', 900)) ON CONFLICT (id) DO UPDATE SET city = 'city {n}'"),
    (3, "DELETE FROM addresses WHERE id = {address}"),
    (3, "UPDATE addresses SET id = id + 1000000 WHERE id = {address} AND id < 1000000"),
    (4, "UPDATE products SET name = name || '!', picture = int4send({n}) WHERE sku = 'sku {product}'"),
    (2, "DELETE FROM products WHERE sku = 'sku {product}'"),
    (0.2, "TRUNCATE items; INSERT INTO items SELECT i, 1, 'sku ' || i, 1, i FROM generate_series(1, 30) i"),
    (0.2, "TRUNCATE addresses; INSERT INTO addresses SELECT i, 'after', NULL FROM generate_series(1, 30) i"),
)
EVOLVED = (10, "UPDATE orders SET channel = 'c{n}' WHERE id = {order}")


class ShopWriter(Writer):
    """Random transactions over all five tables. ``evolved``: whether the table of orders has its new column."""

    def __init__(self, url: str, seed: int, keys: int, evolved: bool) -> None:
        super().__init__(url, seed, keys)
        self._kinds = (*STATEMENTS, EVOLVED) if evolved else STATEMENTS

    def _change(self, db: psycopg.Connection[Any]) -> None:
        number, known = self._random.randrange(1, 10**6), self._random.random() < 0.05
        [(_, sql)] = self._random.choices(self._kinds, [weight for weight, _ in self._kinds])
        of = {
            name: self._random.randrange(1, max(2, self._keys // share))
            for name, share in (("order", 1), ("customer", 3), ("address", 1), ("product", 4))
        }
        of["order"] += 1_000_000 * known
        db.execute(sql.format(n=number, **of))  # type: ignore[call-overload]


@dataclass
class WholeShop:
    """The database; ``url`` is that of one of its own on a server whose log can be captured."""

    url: str
    db: psycopg.Connection[Any]
    keys: int
    evolved: bool = False

    @classmethod
    def made(cls, server: str, name: str, keys: int) -> "WholeShop":
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        url = server.rsplit("/", 1)[0] + f"/{name}"
        made = cls(url, psycopg.connect(url, autocommit=True), keys)
        made.db.execute(TABLES)
        made.db.execute(FILL.format(n=keys))  # type: ignore[arg-type]
        return made

    def expected(self, output: str) -> dict[object, Row]:
        """What PostgreSQL says that a join is."""
        found = self.db.execute(JOINS[output])  # type: ignore[call-overload]
        names = [column.name for column in found.description]
        return {KEYS[output](row): row for row in (dict(zip(names, values, strict=True)) for values in found)}

    @contextmanager
    def work(self, drawn: random.Random) -> Iterator[Callable[[int], None]]:
        """Two writers at once; yields what waits until they have done so many more transactions."""
        writers = [ShopWriter(self.url, drawn.randrange(10**6), self.keys, self.evolved) for _ in range(2)]

        def more(transactions: int) -> None:
            until = sum(w.transactions for w in writers) + transactions
            while sum(w.transactions for w in writers) < until:
                assert all(w.is_alive() for w in writers)
                time.sleep(0.02)

        for writer in writers:
            writer.start()
        try:
            yield more
        finally:
            for writer in writers:
                writer.stop()

    def evolve(self) -> None:
        """Columns come and go."""
        self.db.execute(DDL)
        self.evolved = True


@dataclass
class ShopLake:
    """A topology over one kind of sources, and its lake.

    Attributes:
        root: a directory of its own.
        source: table -> its source, as a topology file says it.
        directions: whether the large text of addresses is read, which an address keeps when its key changes.
    """

    root: Path
    source: Callable[[str], str]
    directions: bool = True

    def __post_init__(self) -> None:
        self.root.mkdir()
        sources = {name: self.source(name) for name in ("customers", "addresses", "products", "orders", "items")}
        note, directions = (", note STRING", '"right.note AS directions"') if self.directions else ("", "")
        (self.root / "shop.py").write_text(FILE.format(note=note, directions=directions, **sources))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "shop.py")), lake_config(str(self.root / "lake")), str(self.root))

    def words(self, command: str) -> list[str]:
        """Of the command line."""
        options = ["--fuse", "apply"] if command == "run" else []
        return [command, *options, str(self.root / "shop.py"), "--lake", str(self.root / "lake"), "--root", str(self.root)]

    def run(self, session: Callable[[Topology], SparkSession]) -> dict[str, dict[str, int]]:
        """A run; what became of the records of each source."""
        topology = self.topology
        options = RunOptions(fuse=Fuse.APPLY)  # all rows may be others, and new ones come
        run = run_topology(topology, lambda: session(topology), f"test {len(topology.ledger.runs())}", options=options)
        return {name: step.counts for name, step in topology.ledger.steps(run.number).items() if name.startswith("ingest.")}

    def told(self, name: str, known: Container[str] = ()) -> tuple[set[str], list[tuple[object, Row]]]:
        """What files say of a table, by rejoin's decoder.

        Args:
            name: of the table.
            known: files that are left out.

        Returns:
            the files, and in the order of keys, and of positions for each key: the number of truncates before it and the key; what becomes of the row.
        """
        topology = self.topology
        table = topology.plan.table(name)
        pin = waiting(table, topology.access, None, dict).pin
        assert pin is not None
        events = [row for batch in read_along(table, pin, topology.access) for row in batch.to_pylist() if row["_kind"] != "skipped"]
        new = sorted((row for row in events if row["_file"] not in known), key=itemgetter("_position"))
        truncates = accumulate(row["_kind"] == "truncate" for row in new)
        said = [c.name for c in table.columns] + ["_kind", "_missing", "_code"]
        found = [((at, *(row[c] for c in table.key)), {c: row[c] for c in said}) for at, row in zip(truncates, new, strict=True)]
        return {row["_file"] for row in events}, sorted(found, key=lambda told: repr(told[0]))

    def is_right(self, shop: WholeShop) -> None:
        """The outputs, and their changes applied in order from the first one on, are what PostgreSQL says of the joins."""
        topology = self.topology
        for output, key in KEYS.items():
            expected = shop.expected(output)
            if not self.directions:
                expected = {k: {c: v for c, v in row.items() if c != "directions"} for k, row in expected.items()}
            stored = [{c: v for c, v in row.items() if not c.startswith("_")} for row in rows(topology, output)]
            assert len({key(row) for row in stored}) == len(stored) and expected != {}
            assert different({key(row): row for row in stored}, expected) == []
            assert different(folded(topology, output, key=key), expected) == []


def different(found: dict[object, Row], expected: dict[object, Row]) -> list[tuple[object, Row | None, Row | None]]:
    """The rows of which one lacks or says otherwise: key, found, expected."""
    keys = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))  # type: ignore[type-var]
    return [(k, found.get(k), expected.get(k)) for k in keys]
