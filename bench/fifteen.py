"""The work of fanout.py: a shop of five source tables and 15 outputs, with chains, filters and stars."""

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from landing import Landing

TOPOLOGY = """
from rejoin import Topology, debezium

shop = Topology("bench")


def table(name, columns):
    return shop.table(name, key="id", schema="id BIGINT, " + columns, source=debezium("landing/" + name))


stores = table("stores", "city STRING, manager STRING")
customers = table("customers", "store_id BIGINT, name STRING, region STRING")
products = table("products", "store_id BIGINT, title STRING, category STRING")
orders = table("orders", "customer_id BIGINT, product_id BIGINT, store_id BIGINT, status STRING, quantity INT, note STRING")
shipments = table("shipments", "order_id BIGINT, carrier STRING, state STRING")

CUSTOMER = ["left.*", "right.name AS customer", "right.region AS region"]
PRODUCT = ["left.*", "right.title AS product", "right.category AS category"]
STORE = ["left.*", "right.city AS city", "right.manager AS manager"]
STATUS = ["left.*", "right.status AS order_status", "right.quantity AS quantity"]

home = customers.left_join(stores, "store_id", STORE, name="customers_stores")
stocked = products.join(stores, "store_id", STORE, name="products_stores")
sold = orders.left_join(customers, "customer_id", CUSTOMER, name="orders_customers")
items = orders.left_join(products, "product_id", PRODUCT, name="orders_products")
orders.join(stores, "store_id", STORE, name="orders_stores")
both = orders.left_join(customers, "customer_id", CUSTOMER).left_join(products, "product_id", PRODUCT).named("orders_both")
orders.left_join(customers, "customer_id", CUSTOMER).left_join(products, "product_id", PRODUCT).left_join(stores, "store_id", STORE).named(
    "orders_all"
)
orders.filter("status = 'status 1'").join(customers, "customer_id", CUSTOMER, name="orders_open")
orders.left_join(home, "customer_id", ["left.*", "right.name AS customer", "right.city AS home"], name="orders_homes")
orders.left_join(stocked, "product_id", ["left.*", "right.title AS product", "right.city AS stocked"], name="orders_stocks")
shipments.left_join(orders, "order_id", STATUS, name="shipments_orders")
shipments.filter("state = 'state 2'").join(orders, "order_id", STATUS, name="shipments_late")
shipments.left_join(sold, "order_id", ["left.*", "right.customer AS customer"], name="shipments_customers")
shipments.left_join(items, "order_id", ["left.*", "right.product AS product"], name="shipments_products")
shipments.left_join(both, "order_id", ["left.*", "right.customer AS customer", "right.product AS product"], name="shipments_both")
"""

CHANGED = {"orders": 3_000, "shipments": 1_800, "customers": 150, "products": 49, "stores": 1}
"""Changed rows of one change set."""


class Fifteen:
    """Landing files for rejoin, Parquet files for the others.

    Args:
        n: orders.
        root: an empty directory.
    """

    def __init__(self, n: int, root: Path) -> None:
        self.root, self.db = root, duckdb.connect()
        self.sizes = {"stores": n // 1_000, "customers": n // 20, "products": n // 50, "orders": n, "shipments": n // 2}
        self.rows = sum(self.sizes.values())
        self.landing = Landing(root / "landing", tuple(self.sizes), self.db)
        self._random, self._number = np.random.default_rng(n), 0
        (root / "topology.py").write_text(TOPOLOGY)

    def source(self, table: str) -> Path:
        """A source table as Parquet, as it was first."""
        return self.root / f"{table}.parquet"

    def first_rows(self) -> None:
        """Writes all source tables as Parquet, and lands them as snapshot reads."""
        for table, size in self.sizes.items():
            self._parquet(table, f"range({size}) t(id)", self.source(table))
            self.landing.snapshot(table, self.source(table), size)

    def change(self) -> int:
        """Lands the next change set; returns how many source rows change."""
        self._number += 1
        changed = {table: min(count, self.sizes[table] // 10) for table, count in CHANGED.items()}
        for table, count in changed.items():
            ids = self._random.choice(self.sizes[table], count, replace=False, shuffle=False)
            self.db.register("drawn", pa.table({"id": ids}))
            file = self.root / "change.parquet"
            self._parquet(table, "drawn", file)
            self.landing.update(table, file, count)
            self.db.unregister("drawn")
        return sum(changed.values())

    def close(self) -> None:
        """Removes everything."""
        self.db.close()
        shutil.rmtree(self.root)

    def _parquet(self, table: str, ids: str, file: Path) -> None:
        """Rows of the given ids; with another change set come other foreign keys and texts."""
        self.db.execute(f"COPY (SELECT id, {self._columns()[table]} FROM {ids}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")

    def _columns(self) -> dict[str, str]:
        def key(table: str, salt: int) -> str:
            return f"(hash(id * 31 + {self._number * 7 + salt}) % {self.sizes[table]})::BIGINT"

        def text(name: str, kinds: int) -> str:
            return f"'{name} ' || ((id + {self._number}) % {kinds})"

        return {
            "stores": f"'city ' || (id % 99) AS city, 'manager {self._number} ' || id AS manager",
            "customers": f"{key('stores', 1)} AS store_id, 'customer {self._number} ' || id AS name, 'region ' || (id % 9) AS region",
            "products": f"{key('stores', 2)} AS store_id, 'product {self._number} ' || id AS title, {text('category', 12)} AS category",
            "orders": f"{key('customers', 3)} AS customer_id, {key('products', 4)} AS product_id, {key('stores', 5)} AS store_id, "
            f"{text('status', 7)} AS status, (id % 50)::INT AS quantity, 'note {self._number} ' || hash(id) AS note",
            "shipments": f"{key('orders', 6)} AS order_id, {text('carrier', 5)} AS carrier, {text('state', 4)} AS state",
        }
