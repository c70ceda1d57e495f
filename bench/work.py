"""The work: orders (N rows) left join customers by a random foreign key, and random changes of both sides.

Side ``left``: k random orders get another customer and another note. Side ``right``: as many customers are renamed as have about k orders.
rejoin gets every change as Debezium JSON lines, the other engines get the same rows as a Parquet file.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from landing import Landing

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]

_TOPOLOGY = """
from rejoin import Topology, debezium

bench = Topology("bench")
orders = bench.table("orders", key="id", schema="{schema}", source=debezium("landing/orders"))
customers = bench.table("customers", key="id", schema="id BIGINT, name STRING, region STRING", source=debezium("landing/customers"))
joined = orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS name", "right.region AS region"])
joined.named("enriched", max_change_share=1.0)
"""

COLUMNS = {
    "orders": ("id", "customer_id", "status", "quantity", "price", "note"),
    "customers": ("id", "name", "region"),
    "enriched": ("id", "customer_id", "status", "quantity", "price", "note", "name", "region"),
}
JOIN = "SELECT {hint}o.*, c.name, c.region FROM {orders} o LEFT JOIN {customers} c ON o.customer_id = c.id"
TABLE_OF = {"left": "orders", "right": "customers"}
_CUSTOMER = "p AS id, '{name} ' || p AS name, 'region ' || (p % 9) AS region"
VALUES = (
    ("status", "STRING", "'status ' || (p % 7)"),
    ("quantity", "INT", "(p % 50)::INT"),
    ("price", "DECIMAL(10,2)", "((p % 100000) + 0.5)::DECIMAL(10,2)"),
)


@dataclass(frozen=True)
class Shape:
    """What an order looks like: SQL over its position ``p``, 0 .. N-1.

    ``values``: (name, Spark type, SQL) of the columns beside the key, the foreign key and the note.
    ``recent``: changes concern mostly the newest hundredth instead of all orders alike.
    """

    key_type: str = "BIGINT"
    key: str = "p"
    values: tuple[tuple[str, str, str], ...] = VALUES
    recent: bool = False

    def topology(self) -> str:
        """The topology file."""
        columns = [f"id {self.key_type}", "customer_id BIGINT", *(f"{name} {type_}" for name, type_, _ in self.values), "note STRING"]
        return _TOPOLOGY.format(schema=", ".join(columns))

    def select(self, customer: str, note: str) -> str:
        """The columns of orders, as SQL."""
        values = [f"{sql} AS {name}" for name, _, sql in self.values]
        return ", ".join([f"{self.key} AS id", f"{customer}::BIGINT AS customer_id", *values, f"'{note} ' || hash(p) AS note"])


@dataclass(frozen=True)
class Change:
    """One change set: about ``k`` rows of the result change. ``rows``: a Parquet file of the new rows of ``table``."""

    side: str
    k: int
    table: str
    rows: Path


class Work:
    """One size: its landing files for rejoin, and Parquet files of the same rows for the other engines.

    Args:
        n: orders.
        root: an empty directory.
        orders_a_customer: how many orders a customer has, on average.
        shape: what an order looks like.
    """

    def __init__(self, n: int, root: Path, orders_a_customer: int = 20, shape: Shape | None = None) -> None:
        self.n, self.root, self.orders_a_customer = n, root, orders_a_customer
        self.customers = max(1, n // orders_a_customer)
        self._shape = shape or Shape()
        self.db = duckdb.connect()
        self.db.execute(f"SET temp_directory = '{root / 'duckdb.tmp'}'")
        self._random = np.random.default_rng(n)
        self._number = 0
        self._pending: list[Change] = []
        self._landing = Landing(root / "landing", tuple(TABLE_OF.values()), self.db)
        (root / "changes").mkdir()
        (root / "topology.py").write_text(self._shape.topology())

    def source(self, table: str) -> Path:
        """A source table as Parquet, as of the last ``refresh``."""
        return self.root / f"{table}.parquet"

    def sources(self) -> dict[str, str]:
        """The source tables as DuckDB reads them."""
        return {table: f"read_parquet('{self.source(table)}')" for table in TABLE_OF.values()}

    def first_rows(self) -> None:
        """Writes both source tables as Parquet, and lands them as snapshot reads."""
        orders = self._shape.select(f"(hash(p) % {self.customers})", "note")
        for table, rows, columns in (("orders", self.n, orders), ("customers", self.customers, _CUSTOMER.format(name="customer"))):
            self._parquet(f"SELECT {columns} FROM range({rows}) t(p)", self.source(table))
            self._landing.snapshot(table, self.source(table), rows)

    def change(self, side: str, k: int) -> Change:
        """Draws, lands and returns the next change set."""
        self._number += 1
        table, file = TABLE_OF[side], self.root / "changes" / f"{self._number:05}.parquet"
        if side == "left":
            positions, columns = self._orders(k), self._shape.select("customer", f"changed {self._number}")
        else:
            positions = self._random.choice(self.customers, -(-k // self.orders_a_customer), replace=False, shuffle=False)
            columns = _CUSTOMER.format(name=f"renamed {self._number}")
        self.db.register("drawn", pa.table({"p": positions, "customer": self._random.integers(self.customers, size=len(positions))}))
        self._parquet(f"SELECT {columns} FROM drawn", file)
        self.db.unregister("drawn")
        self._landing.update(table, file, len(positions))
        made = Change(side, k, table, file)
        self._pending.append(made)
        return made

    def landed(self) -> None:
        """Removes the landed files: rejoin has read them."""
        self._landing.clear()

    def refresh(self) -> None:
        """Brings the Parquet sources up to date with every change set so far."""
        for table in TABLE_OF.values():
            files = [str(c.rows) for c in self._pending if c.table == table]
            if files:
                nth = "row_number() OVER (PARTITION BY id ORDER BY filename DESC)"
                newest = f"SELECT * EXCLUDE filename FROM read_parquet({files}, filename = true) QUALIFY {nth} = 1"
                kept = f"SELECT * FROM read_parquet('{self.source(table)}') s WHERE NOT EXISTS (FROM newest n WHERE n.id = s.id)"
                fresh = self.root / "fresh.parquet"
                self._parquet(f"WITH newest AS MATERIALIZED ({newest}) {kept} UNION ALL FROM newest", fresh)
                fresh.replace(self.source(table))
        for change in self._pending:
            change.rows.unlink()
        self._pending.clear()

    def close(self) -> None:
        """Removes everything."""
        self.db.close()
        shutil.rmtree(self.root)

    def _orders(self, k: int) -> Positions:
        """The positions of k different orders."""
        if not self._shape.recent:
            return self._random.choice(self.n, k, replace=False, shuffle=False)
        found = np.empty(0, np.int64)
        while len(found) < k:
            ages = self._random.exponential(self.n / 100, k).astype(np.int64)
            found = np.unique(np.concatenate([found, self.n - 1 - ages[ages < self.n]]))
        return self._random.choice(found, k, replace=False)

    def _parquet(self, query: str, file: Path) -> None:
        self.db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
