"""What it costs to read changes as connectors write them: a million events of a topic and of files through a left join of two tables, runs that find nothing
new, and changes of an Iceberg table. Prints a line each, best of `--times`: seconds of the clock, and of this machine's CPUs without the broker's.
`python bench/sources.py 1000000`
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyiceberg.catalog.sql import SqlCatalog

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from integration.servers import KafkaServer

FILE = """
from rejoin import Topology, debezium, iceberg, kafka, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, total DECIMAL(12,2), status STRING, created_at TIMESTAMP, note STRING", source={orders})
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS name"]).named("enriched")
"""
TABLES = """
from rejoin import Topology, debezium, iceberg, kafka, snapshot

t = Topology("t")
{tables}
"""
PARTITIONS, FILES, CUSTOMERS = 4, 8, 100_000


@dataclass(frozen=True)
class Cost:
    """Seconds of the clock and of the CPUs."""

    seconds: float
    cpu: float


def timed(root: Path) -> Cost:
    """A run of ``t.py`` in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "rejoin.cli", "run", "t.py", "--engine", "local"]
    # Python keeps what it has compiled, as it does on most machines.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=root, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def told(what: str, costs: list[Cost]) -> None:
    best = min(costs, key=lambda cost: cost.seconds)
    print(f"| {what} | {best.seconds:.2f} | {best.cpu:.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def field(type_: str, called: str, **more: object) -> dict[str, object]:
    return {"type": type_, "optional": True, **more, "field": called}


ROW = [
    field("int64", "id", optional=False),
    field("int64", "customer_id"),
    field("string", "total"),
    field("string", "status"),
    field("int64", "created_at", name="io.debezium.time.MicroTimestamp", version=1),
    field("string", "note"),
]
TEXTS = ("version", "connector", "name", "snapshot", "db", "sequence", "schema", "table", "origin")
NUMBERS = ("ts_ms", "ts_us", "ts_ns", "txId", "lsn", "xmin", "origin_lsn")
SOURCE = dict.fromkeys(TEXTS, "string") | dict.fromkeys(NUMBERS, "int64")
STRUCTS = {"before": ROW, "after": ROW, "source": [field(type_, name) for name, type_ in SOURCE.items()]}
ENVELOPE = [
    *({"type": "struct", "fields": fields, "optional": True, "name": f"shop.{name}", "field": name} for name, fields in STRUCTS.items()),
    field("string", "op", optional=False),
    *(field("int64", name) for name in ("ts_ms", "ts_us", "ts_ns")),
]
VALUE_SCHEMA = compact({"type": "struct", "fields": ENVELOPE, "optional": False, "name": "shop.public.orders.Envelope", "version": 2})
KEY_SCHEMA = compact({"type": "struct", "fields": ROW[:1], "optional": False, "name": "shop.public.orders.Key"})


def events(count: int, *, schemas: bool) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of events about orders as Debezium writes them: seven inserts, then three updates, of every ten."""
    drawn, lsn, inserts = random.Random(7), 20_000_000, int(count * 0.7)
    for number in range(count):
        insert, lsn = number < inserts, lsn + drawn.choice((56, 64, 120))
        row = {
            "id": number if insert else drawn.randrange(inserts),
            "customer_id": drawn.randrange(CUSTOMERS),
            "total": f"{drawn.randrange(1, 999_999) / 100:.2f}",
            "status": drawn.choice(("new", "paid", "sent", "gone")),
            "created_at": 1_700_000_000_000_000 + number * 1000,
            "note": "n" * drawn.randrange(5, 40) + str(number),
        }
        value = compact(
            {"before": None, "after": row, "source": _source(lsn, number), "transaction": None, "op": "cu"[not insert], **_times(number)}
        )
        key = compact({"id": row["id"]})
        if schemas:
            key, value = (f'{{"schema":{schema},"payload":{text}}}' for schema, text in ((KEY_SCHEMA, key), (VALUE_SCHEMA, value)))
        yield key.encode(), value.encode()


def _times(number: int) -> dict[str, int]:
    at = 1_700_000_000_123 + number
    return {"ts_ms": at, "ts_us": at * 1000, "ts_ns": at * 1_000_000}


def _source(lsn: int, number: int) -> dict[str, object]:
    at = {"version": "3.6.3.Final", "connector": "postgresql", "name": "shop", "snapshot": "false", "db": "shop", **_times(number)}
    log = {"sequence": f'["{lsn - 8}","{lsn}"]', "txId": 700 + number, "lsn": lsn, "xmin": None, "origin": None, "origin_lsn": None}
    return {**at, "schema": "public", "table": "orders", **log}


def customers(root: Path) -> None:
    (root / "customers").mkdir()
    (root / "customers" / "1.csv").write_text("id,name\n" + "".join(f"{i},name {i}\n" for i in range(CUSTOMERS)))


def send(server: KafkaServer, topic: str, messages: Iterator[tuple[bytes, bytes]]) -> None:
    """Makes the topic, and sends it the messages."""
    admin = AdminClient({"bootstrap.servers": server.address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(20)
    producer = Producer(
        {"bootstrap.servers": server.address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000, "enable.idempotence": True}
    )
    for number, (key, value) in enumerate(messages):
        producer.produce(topic, value, key)
        if number % 5_000 == 0:
            producer.poll(0)
    producer.flush()


def write(folder: Path, messages: Iterator[tuple[bytes, bytes]], count: int) -> None:
    """Files of lines ``{"key":..,"value":..}``."""
    folder.mkdir()
    for part in range(FILES):
        with (folder / f"{part:03}.jsonl").open("wb") as out:
            for number, (key, value) in enumerate(messages, 1):
                out.write(b'{"key":' + key + b',"value":' + value + b"}\n")
                if number == -(-count // FILES):
                    break


def joins(root: Path, server: KafkaServer, count: int, times: int) -> None:
    """A million events, from files and from a topic, without and with schemas."""
    customers(root)
    for schemas in (False, True):
        name = "with schemas" if schemas else "short"
        topic, folder = f"orders.{schemas}".lower(), f"orders_{schemas}"
        send(server, topic, events(count, schemas=schemas))
        write(root / folder, events(count, schemas=schemas), count)
        sources = {"files": f"debezium('{folder}')", f"topic of {PARTITIONS} partitions": f"debezium(kafka('{topic}'))"}
        costs: dict[str, list[Cost]] = {what: [] for what in sources}
        for _ in range(times):
            for what, source in sources.items():
                (root / "t.py").write_text(FILE.format(orders=source))
                shutil.rmtree(root / "lake", ignore_errors=True)
                costs[what].append(timed(root))
        for what, found in costs.items():
            told(f"{count:,} {name} events from {what}, joined", found)
        shutil.rmtree(root / folder)


@contextmanager
def fresh(parent: Path, name: str) -> Iterator[Path]:
    root = parent / name
    root.mkdir()
    yield root
    shutil.rmtree(root)


def nothing_new(root: Path, what: str, tables: list[str], times: int) -> None:
    """A run that finds nothing new, after one that read everything."""
    lines = (
        f"t.table('t{n}', key='id', schema='id BIGINT, name STRING', source={source}).named('o{n}')" for n, source in enumerate(tables)
    )
    (root / "t.py").write_text(TABLES.format(tables="\n".join(lines)))
    timed(root)
    told(f"nothing new of {what}", [timed(root) for _ in range(times)])


def idle(parent: Path, server: KafkaServer, times: int) -> None:
    """Twenty topics, twenty Iceberg tables, a hundred thousand files."""
    with fresh(parent, "topics") as root:
        names = [f"idle.{n}" for n in range(20)]
        for name in names:
            send(server, name, _small(50))
        nothing_new(root, "20 topics", [f"debezium(kafka('{name}'))" for name in names], times)
    with fresh(parent, "tables") as root:
        catalog = iceberg_catalog(root)
        rows = pa.table({"id": pa.array(range(50), pa.int64()), "name": [f"n{i}" for i in range(50)]})
        for number in range(20):
            catalog.create_table(f"x.t{number}", rows.schema).append(rows)
        nothing_new(root, "20 Iceberg tables", [f"snapshot(iceberg('x.t{n}', at='bench'))" for n in range(20)], times)
    with fresh(parent, "files") as root:
        (root / "landing").mkdir()
        for number, (key, value) in enumerate(_small(100_000)):
            (root / "landing" / f"{number:06}.jsonl").write_bytes(b'{"key":' + key + b',"value":' + value + b"}\n")
        nothing_new(root, "100,000 files", ["debezium('landing')"], times)


def _small(count: int) -> Iterator[tuple[bytes, bytes]]:
    for n in range(count):
        value = {"before": None, "after": {"id": n, "name": f"n{n}"}, "source": _source(n + 1, n), "op": "c", **_times(n)}
        yield compact({"id": n}).encode(), compact(value).encode()


def iceberg_catalog(root: Path) -> SqlCatalog:
    """A catalog that ``iceberg(.., at="bench")`` reads."""
    (root / "warehouse").mkdir()
    where = {"uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}
    os.environ["REJOIN_SOURCE_BENCH"] = json.dumps({"type": "sql", **where})
    catalog = SqlCatalog("bench", **where)
    catalog.create_namespace("x")
    return catalog


def iceberg_changes(root: Path, count: int, times: int) -> None:
    """Ten thousand changed rows of an Iceberg table of many, whose files were all written anew, or one of them."""
    customers(root)
    numbers = np.arange(count)
    columns: dict[str, Any] = {
        "id": numbers,
        "customer_id": numbers % CUSTOMERS,
        "total": pa.array((numbers % 99_999).astype("int32")).cast(pa.decimal128(12, 2)),
        "status": pa.array(["new"] * count),
        "created_at": pa.array(numbers, pa.timestamp("us", "UTC")),
        "note": pa.array([f"note {n}" for n in range(count)]),
    }
    rows = pa.table(columns)
    table = iceberg_catalog(root).create_table("x.orders", rows.schema)
    for at in range(0, count, -(-count // FILES)):
        table.append(rows.slice(at, -(-count // FILES)))
    (root / "t.py").write_text(FILE.format(orders="snapshot(iceberg('x.orders', at='bench'))"))
    told(f"{count:,} rows of an Iceberg table, joined", [timed(root)])
    changed: list[tuple[str, Callable[[np.random.Generator], np.ndarray]]] = [
        ("of one file", lambda drawn: drawn.choice(count // FILES, 10_000, replace=False)),
        ("of all files", lambda drawn: drawn.choice(count, 10_000, replace=False)),
    ]
    drawn = np.random.default_rng(1)
    for where, choose in changed:
        costs = []
        for number in range(times):
            statuses = np.array(rows["status"].to_pylist(), dtype=object)
            statuses[choose(drawn)] = f"{where} {number}"
            rows = rows.set_column(3, "status", pa.array(statuses, pa.string()))
            upto = count // FILES if where == "of one file" else count
            table.overwrite(rows.slice(0, upto), overwrite_filter=f"id < {upto}")
            costs.append(timed(root))
        told(f"10,000 changes of it, {where}", costs)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", choices=("joins", "idle", "iceberg"), nargs="+", default=("joins", "idle", "iceberg"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        (broker := Path(name) / "broker").mkdir()
        server = KafkaServer(broker)
        server.start()
        os.environ["REJOIN_SOURCE_KAFKA"] = server.address
        try:
            print("| what | seconds | CPU s | load |\n|---|---|---|---|")
            if "joins" in given.only:
                with fresh(Path(name), "joined") as root:
                    joins(root, server, given.rows, given.times)
            if "idle" in given.only:
                idle(Path(name), server, given.times)
        finally:
            server.stop()
        if "iceberg" in given.only:
            with fresh(Path(name), "iceberg") as root:
                iceberg_changes(root, given.rows, given.times)


if __name__ == "__main__":
    main()
