"""Joins by time and outer joins: what a run costs, and what it reads, beside the left foreign-key join and beside DuckDB computing everything.

    bench/joins.py [N] [--parts windows,outer,as_of] [--out DIR]

windows: two streams of N records each within an hour, in 30 days; then 10,000 new records on each side. outer: N orders joined with customers by
a foreign key, left and full, and two tables of N rows by their keys; 1,000 changes each. as_of: a tenth of N keys of five versions each, and as many
records of a stream; then 10,000 new records.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import duckdb
from engines import Lake, lake_of
from folders import PROJECT, Folders
from landing import Landing
from measure import CONSOLE, Done, Row, Spent, row, save, saved_rows, spend, tracked
from report import write
from storage import table_sizes

NEW, CHANGED, COUNTED, VERSIONS = 10_000, 1_000, 5, 5
SIDES = {"windows": ("windows",), "outer": ("left", "full", "same key"), "as_of": ("as of",)}
"""How the rows of a part begin."""
DAYS = 30
MICROS = DAYS * 86_400_000_000
HOUR = 3_600_000_000
BEGIN = "TIMESTAMPTZ '2026-01-01 00:00:00+00'"

WINDOWS = """
from rejoin import Topology, records

bench = Topology("bench")
views, clicks = (
    bench.stream(name, id="id", key="ad", event_time="at", schema="id BIGINT, ad BIGINT, at TIMESTAMP, page STRING", source=records(f"landing/{name}"))
    for name in ("views", "clicks")
)
select = ["left.id AS view", "right.id AS click", "left.ad", "left.at", "right.at AS clicked"]
views.join(clicks, within="1 hour", select=select, name="pairs", max_change_share=1.0)
"""
OUTER = """
from rejoin import Topology, debezium

bench = Topology("bench")
orders = bench.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"))
customers = bench.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("landing/customers"))
select = ["left.id", "left.note", "right.name"]
"""
OUTERS = {
    "left": 'orders.left_join(customers, foreign_key="customer_id", select=select, name="joined", max_change_share=1.0)',
    "full": 'orders.full_join(customers, foreign_key="customer_id", select=[*select, "right.id AS customer"], name="joined", max_change_share=1.0)',
    "same key": 'orders.full_join(customers, select=select, name="joined", max_change_share=1.0)',
}
AS_OF = """
from rejoin import Topology, debezium, records

bench = Topology("bench")
schema = "id BIGINT, product BIGINT, at TIMESTAMP, page STRING"
views = bench.stream("views", id="id", key="product", event_time="at", schema=schema, source=records("landing/views"))
products = bench.table("products", key="id", schema="id BIGINT, price STRING", source=debezium("landing/products"))
views.left_join(products, as_of="event_time", select=["left.id", "left.at", "right.price"], name="priced", max_change_share=1.0)
"""


def main() -> None:
    """Measures, checks the results, saves, reports."""
    parts: dict[str, Callable[[int, Folders], Iterator[Row]]] = {"windows": windows, "outer": outer, "as_of": as_of}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=1_000_000, help="rows (default: 1 million)")
    parser.add_argument("--parts", default=",".join(parts), help="what to measure, separated by commas")
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders = Folders(asked.out.resolve())
    file = folders.results / f"joins-{asked.n}.json"
    for part in asked.parts.split(","):
        kept = [r for r in (saved_rows(file) if file.is_file() else []) if not r.side.startswith(SIDES[part])]
        save([*kept, *parts[part](asked.n, folders)], file)
    for grid in write(folders):
        CONSOLE.print(grid.rich())


class Tables:
    """Landing files for rejoin, and Parquet files of the same rows for DuckDB.

    Args:
        root: an empty directory.
        topology: the text of the topology file.
        tables: their names.
    """

    def __init__(self, root: Path, topology: str, *tables: str) -> None:
        self.root, self.db, self.number = root, duckdb.connect(), 0
        self.db.execute(f"SET temp_directory = '{root / 'duckdb.tmp'}'")
        self.db.execute("SET TimeZone = 'UTC'")
        self.landing = Landing(root / "landing", tables, self.db)
        (root / "topology.py").write_text(topology)
        self.lake = lake_of(root)

    def parquet(self, table: str, query: str) -> Path:
        """One more file of a table's rows."""
        self.number += 1
        (self.root / table).mkdir(exist_ok=True)
        file = self.root / table / f"{self.number:05}.parquet"
        self.db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        return file

    def rows(self, table: str) -> str:
        """All of a table's rows, as DuckDB reads them."""
        return f"read_parquet('{self.root / table}/*.parquet')"

    def records(self, table: str, query: str) -> None:
        """Records of a stream: rejoin reads the same file as DuckDB."""
        file = self.parquet(table, query)
        (self.root / "landing" / table / file.name).hardlink_to(file)

    def computed(self, query: str) -> Done:
        """DuckDB's result of a query, written as Parquet."""
        self.db.execute(f"COPY ({query}) TO '{self.root / 'computed.parquet'}' (FORMAT parquet)")
        return Done()


def repeated(tables: Tables, change: Callable[[], object], what: str) -> list[Spent]:
    """Some runs, each after a change; a first one warms up."""
    spent = []
    for _ in tracked(range(1 + COUNTED), what):
        change()
        spent.append(spend(tables.lake.run))
        tables.landing.clear()
    return spent[1:]


def stored(lake: Lake, n: int, what: str) -> Row:
    """The bytes of all tables as they are, as bytes written."""
    return row("tables", n, n, what, [Spent(0.0, 0, sum(table_sizes(lake).values()), 0.0, Done(), 0)])


# --- two streams ----------------------------------------------------------------------------------------------------------


def windows(n: int, folders: Folders) -> Iterator[Row]:
    """Pairs of views and clicks of one ad, about one per view."""
    tables = Tables(folders.empty(f"joins-windows-{n}"), WINDOWS, "views", "clicks")

    def land(numbers: Iterable[int]) -> None:
        first, *_, last = numbers
        for seed, table in enumerate(("views", "clicks")):
            at = f"{BEGIN} + to_microseconds((p * {MICROS // n} + hash(p + {seed}) % {MICROS // n})::BIGINT)"
            columns = f"p AS id, (hash(p * 2 + {seed}) % {max(1, n // 360)})::BIGINT AS ad, {at} AS at, 'page ' || (p % 1000) AS page"
            tables.records(table, f"SELECT {columns} FROM range({first}, {last + 1}) t(p)")

    land(range(n))
    met = f"v.ad = c.ad AND epoch_us(c.at) BETWEEN epoch_us(v.at) - {HOUR} AND epoch_us(v.at) + {HOUR}"
    query = f"SELECT v.id AS view, c.id AS click, v.ad, v.at, c.at AS clicked FROM {tables.rows('views')} v JOIN {tables.rows('clicks')} c ON {met}"
    yield row("duckdb full", n, 2 * n, "windows, load", [spend(partial(tables.computed, query)) for _ in range(2)])
    yield row("rejoin", n, 2 * n, "windows, load", [spend(tables.lake.run)])
    tables.landing.clear()
    yield stored(tables.lake, n, "windows")
    ends = iter(range(n, 10 * n, NEW))

    def more() -> None:
        first = next(ends)
        land(range(first, first + NEW))

    yield row("rejoin", n, 2 * NEW, "windows", repeated(tables, more, "windows"))
    tables.lake.check()


# --- outer joins, and tables by their keys ----------------------------------------------------------------------------------


def outer(n: int, folders: Folders) -> Iterator[Row]:
    """Changes of orders and of customers, through every kind of join."""
    for kind, join in OUTERS.items():
        tables = Tables(folders.empty(f"joins-{kind.replace(' ', '-')}-{n}"), OUTER + join, "orders", "customers")
        orders, customers = (
            _orders(n, n if kind == "same key" else n // 20, 0),
            _customers(n if kind == "same key" else n // 20, "customer"),
        )
        for table, query, count in (("orders", orders, n), ("customers", customers, n)):
            tables.landing.snapshot(table, tables.parquet(table, query), count)
        yield row("rejoin", n, n, f"{kind}, load", [spend(tables.lake.run)])
        tables.landing.clear()
        tables.lake.compact()
        for side in ("left", "right"):
            change = partial(_changed, tables, n, n if kind == "same key" else n // 20, side)
            yield row("rejoin", n, CHANGED, f"{kind}, {side} changes", repeated(tables, change, kind))
        tables.lake.check()


def _orders(n: int, customers: int, number: int) -> str:
    return f"SELECT p AS id, (hash(p + {number}) % {customers})::BIGINT AS customer_id, 'note {number} ' || hash(p) AS note FROM range({n}) t(p)"


def _customers(n: int, name: str) -> str:
    return f"SELECT p AS id, '{name} ' || p AS name FROM range({n}) t(p)"


def _changed(tables: Tables, n: int, customers: int, side: str) -> None:
    number = tables.number + 1
    if side == "left":
        table, k, query = "orders", CHANGED, _orders(n, customers, number)
        chosen = f"(hash(id + {number}) % {n}) < {CHANGED}"
    else:
        table, k, query = "customers", max(1, CHANGED * customers // n), _customers(customers, f"renamed {number}")
        chosen = f"(hash(id + {number}) % {n}) < {CHANGED}"
    file = tables.parquet("changes", f"SELECT * FROM ({query}) WHERE {chosen}")
    tables.landing.update(table, file, 2 * k)


# --- as of event time -------------------------------------------------------------------------------------------------------


def as_of(n: int, folders: Folders) -> Iterator[Row]:
    """Views of products at the price that they had then."""
    keys = max(1, n // 10)
    tables = Tables(folders.empty(f"joins-as-of-{n}"), AS_OF, "views", "products")
    begin = 1_767_225_600_000  # BEGIN, in milliseconds
    step = MICROS // 1000 // VERSIONS
    for version in range(VERSIONS):
        time = f"{begin} + {version * step} + hash(p + {version}) % {step}"
        query = f"SELECT p AS id, 'price ' || (hash(p) % 100 + {version}) AS price, ({time})::BIGINT AS ms FROM range({keys}) t(p)"
        _versions(tables, version, query, keys)

    def land(first: int, count: int) -> None:
        at = f"{BEGIN} + to_microseconds((hash(p) % {MICROS})::BIGINT)"
        columns = f"p AS id, (hash(p * 2) % {keys})::BIGINT AS product, {at} AS at, 'page ' || (p % 1000) AS page"
        tables.records("views", f"SELECT {columns} FROM range({first}, {first + count}) t(p)")

    land(0, keys)
    yield row("rejoin", n, keys * (1 + VERSIONS), "as of event time, load", [spend(tables.lake.run)])
    tables.landing.clear()
    tables.lake.compact()
    ends = iter(range(keys, 1_000 * keys, NEW))
    yield row("rejoin", n, NEW, "as of event time", repeated(tables, lambda: land(next(ends), NEW), "as of"))
    query = f"""SELECT v.id, v.at, p.price FROM {tables.rows("views")} v
ASOF LEFT JOIN (SELECT *, to_timestamp(ms / 1000) AS since FROM {tables.rows("products")}) p ON v.product = p.id AND v.at >= p.since"""
    yield row("duckdb full", n, keys, "as of event time", [spend(partial(tables.computed, query)) for _ in range(3)])
    tables.lake.check()


def _versions(tables: Tables, number: int, query: str, count: int) -> None:
    """Lands a version of every product, with its time as that of the commit."""
    rows = f"read_parquet('{tables.parquet('products', query)}')"
    source = f"{{'connector': 'postgresql', 'lsn': {1 + number * count} + t.id, 'snapshot': 'false', 'ts_ms': t.ms}}"
    after, op = "{'id': t.id, 'price': t.price}", "c" if number == 0 else "u"
    event = f"SELECT {{'id': t.id}} AS key, {{'op': '{op}', 'source': {source}, 'after': {after}}} AS value FROM {rows} t"
    tables.db.execute(f"COPY ({event}) TO '{tables.root}/landing/products/{number:05}.jsonl' (FORMAT json)")


if __name__ == "__main__":
    main()
