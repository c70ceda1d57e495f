"""A topology of groups over tables, joins and groups, and what its outputs have to be: DuckDB's GROUP BY over what arrived, written by hand.

Everything has a column ``s``, the history that it belongs to.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from rejoin import Lake
from rejoin.declare.sources import debezium
from rejoin.declare.topology import Topology

Event = tuple[str, int, dict[str, Any], dict[str, Any] | None]
"""Table, run, key, the other columns (None: deleted)."""
TABLES = {
    "customers": (["s", "c"], "s BIGINT, c BIGINT, name STRING, region STRING"),
    "orders": (["s", "o"], "s BIGINT, o BIGINT, c BIGINT, note STRING"),
    "lines": (["s", "o", "n"], "s BIGINT, o BIGINT, n BIGINT, p STRING, quantity INT, weight DOUBLE, done BOOLEAN"),
    "products": (["s", "p"], "s BIGINT, p STRING, price DECIMAL(10,2)"),
}


def topology() -> Topology:
    on = Topology("grouped")
    customers, orders, lines, products = (on.table(n, key=k, schema=schema, source=debezium(n)) for n, (k, schema) in TABLES.items())
    of_customers = (
        orders.group_by("s", "c")
        .aggregate(
            orders="count(*)",
            notes="count(note)",
            kinds="count(DISTINCT note)",
            first="min(o)",
            last="max(note)",
            x="count(*) FILTER (WHERE note = 'x')",
        )
        .named("of_customers")
    )
    lines.filter("quantity <> 4").group_by("s", "quantity % 2 AS odd").aggregate(
        total="sum(quantity)",
        every="bool_and(done)",
        some="bool_or(done)",
        mean="avg(quantity)",
        weight="sum(weight)",
        heavy="avg(weight) FILTER (WHERE done)",
        lightest="min_by(p, weight)",
        heaviest="max_by(n, weight) FILTER (WHERE quantity > 1)",
        top="collect(struct(p, quantity AS q, weight) ORDER BY weight DESC, quantity % 3 LIMIT 3)",
        finished="collect(p ORDER BY quantity) FILTER (WHERE done)",
        weights="collect(weight)",
    ).named("of_odd")
    priced = lines.left_join(products, foreign_key=["s", "p"], select=["left.*", "quantity * right.price AS amount"])
    of_orders = priced.group_by("s", "o").aggregate(amount="sum(amount)", n="count(*)", most="max_by(p, amount)")
    documents = orders.left_join(of_orders, foreign_key=["s", "o"], select=["left.*", "right.amount", "right.n", "right.most"]).named(
        "order_documents"
    )
    spent = documents.filter("n IS NOT NULL").group_by("s", "c").aggregate(spent="sum(amount)", n="sum(n)", best="max_by(o, amount)")
    customers.left_join(spent, foreign_key=["s", "c"], select=["left.*", "spent", "n", "best"]).named("customer_documents")
    nested = orders.nest(priced, ["s", "o"], name="lines", select=["n", "p", "amount"], order_by="amount DESC, p").named("nested_orders")
    customers.nest(nested, ["s", "c"], name="orders", select=["o", "note", "lines"], order_by="note").named("nested_customers")
    of_customers.left_join(spent, select=["left.s", "left.c", "orders", "spent"]).named("both_groups")
    customers.full_join(of_customers, select=["left.s", "left.c", "name", "orders"]).named("every_customer")
    keys = ["left.s AS os", "left.o", "left.note", "right.s", "right.c", "kinds"]
    orders.filter("note <> 'y'").full_join(of_customers, foreign_key=["s", "c"], select=keys).named("orders_and_groups")
    by_region = orders.join(customers, foreign_key=["s", "c"], select=["left.*", "right.region"]).group_by("s", "region")
    regions = by_region.aggregate(orders="count(*)").filter("orders > 1").select(["s", "region", "orders * 10 AS tens"]).named("regions")
    regions.group_by("s").aggregate(regions="count(*)", tens="sum(tens)").named("of_regions")
    pairs = lines.full_join(
        products, foreign_key=["s", "p"], select=["left.s AS ls", "left.o", "left.n", "right.s AS rs", "right.p", "price", "quantity"]
    )
    pairs.group_by("coalesce(ls, rs) AS s", "p").aggregate(pairs="count(*)", lines="count(n)", sold="sum(quantity * price)").named(
        "of_products"
    )
    counted = {"n": "count(*)", "some": "count(quantity)", "total": "sum(quantity)", "mean": "avg(quantity)"}
    few = {"few": "sum(quantity) FILTER (WHERE quantity < 3)", "sold": "sum(amount)", "finished": "count(*) FILTER (WHERE done)"}
    priced.group_by("s", "p").aggregate(**counted, **few).named("of_prices")
    return on


PRICED = "SELECT l.*, quantity * price AS amount FROM lines l LEFT JOIN products p ON l.s = p.s AND l.p = p.p"
OF_ORDERS = f"SELECT s, o, sum(amount) AS amount, count(*) AS n, last(p ORDER BY amount, n) FILTER (WHERE amount IS NOT NULL) AS most FROM ({PRICED}) GROUP BY s, o"
DOCUMENTS = f"SELECT o.*, t.amount, t.n, t.most FROM orders o LEFT JOIN ({OF_ORDERS}) t ON o.s = t.s AND o.o = t.o"
SPENT = f"""SELECT s, c, sum(amount) AS spent, sum(n) AS n, last(o ORDER BY amount, o) FILTER (WHERE amount IS NOT NULL) AS best
    FROM ({DOCUMENTS}) WHERE n IS NOT NULL GROUP BY s, c"""
REGIONS = """SELECT o.s, region, count(*) * 10 AS tens FROM orders o JOIN customers c ON o.s = c.s AND o.c = c.c GROUP BY o.s, region HAVING count(*) > 1"""
OF_CUSTOMERS = """SELECT s, c, count(*) AS orders, count(note) AS notes, count(DISTINCT note) AS kinds, min(o) AS first, max(note) AS last,
        count(*) FILTER (WHERE note = 'x') AS x FROM orders GROUP BY s, c"""
NESTED = f"""SELECT o.*, coalesce(t.lines, []) AS lines FROM orders o LEFT JOIN
    (SELECT s, o, list({{n: n, p: p, amount: amount}} ORDER BY amount DESC NULLS LAST, p NULLS FIRST, n) AS lines FROM ({PRICED}) GROUP BY s, o) t
    ON o.s = t.s AND o.o = t.o"""
QUERIES = {
    "nested_orders": NESTED,
    "nested_customers": f"""SELECT c.*, coalesce(t.orders, []) AS orders FROM customers c LEFT JOIN
        (SELECT s, c, list({{o: o, note: note, lines: lines}} ORDER BY note NULLS FIRST, o) AS orders FROM ({NESTED}) GROUP BY s, c) t
        ON c.s = t.s AND c.c = t.c""",
    "of_customers": OF_CUSTOMERS,
    "both_groups": f"SELECT t.s, t.c, orders, spent FROM ({OF_CUSTOMERS}) t LEFT JOIN ({SPENT}) u ON t.s = u.s AND t.c = u.c",
    "every_customer": f"""SELECT coalesce(a.s, t.s) AS s, coalesce(a.c, t.c) AS c, name, orders
        FROM customers a FULL JOIN ({OF_CUSTOMERS}) t ON a.s = t.s AND a.c = t.c""",
    "orders_and_groups": f"""SELECT a.s AS os, o, note, t.s, t.c, kinds
        FROM (SELECT * FROM orders WHERE note <> 'y') a FULL JOIN ({OF_CUSTOMERS}) t ON a.s = t.s AND a.c = t.c""",
    "of_odd": """SELECT s, quantity % 2 AS odd, sum(quantity) AS total, bool_and(done) AS every, bool_or(done) AS some, sum(quantity) / count(quantity) AS mean,
        list_sum(list(weight ORDER BY o, n) FILTER (WHERE weight IS NOT NULL)) AS weight, list_sum(list(weight ORDER BY o, n) FILTER (WHERE done AND weight IS NOT NULL)) / nullif(count(weight) FILTER (WHERE done), 0) AS heavy,
        first(p ORDER BY weight, o, n) FILTER (WHERE weight IS NOT NULL) AS lightest,
        last(n ORDER BY weight, o, n) FILTER (WHERE weight IS NOT NULL AND quantity > 1) AS heaviest,
        list({p: p, q: quantity, weight: weight} ORDER BY weight DESC NULLS LAST, quantity % 3 NULLS FIRST, o, n)[1:3] AS top,
        coalesce(list(p ORDER BY quantity NULLS FIRST, o, n) FILTER (WHERE done), []) AS finished, list(weight ORDER BY o, n) AS weights
        FROM lines WHERE quantity <> 4 GROUP BY s, quantity % 2""",
    "order_documents": DOCUMENTS,
    "customer_documents": f"SELECT c.*, spent, n, best FROM customers c LEFT JOIN ({SPENT}) t ON c.s = t.s AND c.c = t.c",
    "regions": REGIONS,
    "of_regions": f"SELECT s, count(*) AS regions, sum(tens) AS tens FROM ({REGIONS}) GROUP BY s",
    "of_prices": f"""SELECT s, p, count(*) AS n, count(quantity) AS some, sum(quantity) AS total, sum(quantity) / count(quantity) AS mean,
        sum(quantity) FILTER (WHERE quantity < 3) AS few, sum(amount) AS sold, count(*) FILTER (WHERE done) AS finished FROM ({PRICED}) GROUP BY s, p""",
    "of_products": """SELECT coalesce(l.s, p.s) AS s, p.p, count(*) AS pairs, count(n) AS lines, sum(quantity * price) AS sold
        FROM lines l FULL JOIN products p ON l.s = p.s AND l.p = p.p GROUP BY coalesce(l.s, p.s), p.p""",
}


def history(number: int, chance: random.Random, runs: int, lengths: tuple[int, ...] = (0, 4, 15, 40)) -> Iterator[Event]:
    """The events of one history, in the order of their arrival, with the run that each arrives in. Keys are few: groups lose their last member all the time."""
    for run in sorted(chance.choices(range(runs), k=chance.choice(lengths))):
        table = chance.choice(("customers", "orders", "orders", "lines", "lines", "lines", "products"))
        few = {"c": chance.randrange(3), "o": chance.randrange(4), "n": chance.randrange(3), "p": chance.choice("ab")}
        key = {"s": number} | {k: few[k] for k in TABLES[table][0][1:]}
        rest: dict[str, dict[str, Any]] = {
            "customers": {"name": chance.choice(("Ann", "Bob")), "region": chance.choice(("n", "s", None))},
            "orders": {"c": chance.choice((0, 1, 2, None)), "note": chance.choice(("x", "y", None))},
            "lines": {
                "p": chance.choice(("a", "b", "c", None)),
                "quantity": chance.choice((1, 2, 3, 4, None)),
                "weight": chance.choice((0.5, 0.25, 1e16, -1e16, 3.0, None)),  # the order of adding shows
                "done": chance.choice((True, False, None)),
            },
            "products": {"price": chance.choice(("1.25", "7.50", "0.01", None))},
        }
        yield table, run, key, None if chance.random() < 0.3 else rest[table]


def land(root: Path, run: int, events: list[Event], chance: random.Random) -> None:
    """Writes a run's events, some of them twice."""
    lines = defaultdict[str, list[str]](list)
    for lsn, (table, _, key, rest) in enumerate(events, start=run * 1_000_000):
        source = {"connector": "postgresql", "lsn": lsn}
        value = {"op": "d" if rest is None else "c", "before": None, "after": None if rest is None else key | rest, "source": source}
        lines[table] += [json.dumps({"key": key, "value": value})] * chance.choice((1, 1, 1, 2))
    for table in TABLES:
        (root / table).mkdir(exist_ok=True)
        if lines[table]:
            (root / table / f"{run}.jsonl").write_text("\n".join(lines[table]) + "\n")


def differences(lake: Lake, events: list[Event]) -> list[str]:
    """A line for every output that is not what DuckDB makes of the events."""
    database, found = duckdb.connect(), []
    rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {table: {} for table in TABLES}
    for table, _, key, rest in events:
        if rest is None:
            rows[table].pop(tuple(key.values()), None)
        else:
            rows[table][tuple(key.values())] = key | rest
    for table, (_, schema) in TABLES.items():
        database.execute(f"CREATE TABLE {table} ({schema})")
        columns = [column.split()[0] for column in schema.split(", ")]
        if rows[table]:
            given = pa.table({c: pa.array([row.get(c) for row in rows[table].values()]) for c in columns})
            database.register("given", given)
            database.execute(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM given")
    for output, query in QUERIES.items():
        stored = lake.read(output).to_arrow()
        database.register("stored", stored)
        names = ", ".join(f'"{name}"' for name in stored.column_names)
        for one, other, what in ((f"({query})", "stored", "missing"), ("stored", f"({query})", "too many")):
            wrong = database.execute(f"SELECT {names} FROM {one} EXCEPT ALL SELECT {names} FROM {other} ORDER BY ALL").fetchall()
            found += [f"{output}: {what} {len(wrong)}, such as {wrong[:3]}"] if wrong else []
    return found
