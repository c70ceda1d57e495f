"""``rejoin discover`` of a real PostgreSQL and of real Iceberg tables: what it prints is captured, and runs."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from rejoin.capture.catalog import CatalogColumn, CatalogTable, UniqueKey
from rejoin.cli import main
from rejoin.discover import database
from rejoin.plan.check.topology_file import load

SHOP = """
CREATE DOMAIN money_like AS numeric(12, 2);
CREATE DOMAIN price AS money_like CHECK (VALUE >= 0);
CREATE TABLE customers (id int PRIMARY KEY, name text, joined timestamptz, tags text[], grid numeric(8, 2)[][], odd interval[], money money_like[], email varchar UNIQUE NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, customer int REFERENCES customers, total price, at timestamp(3), twice numeric GENERATED ALWAYS AS (total * 2) STORED,
                     "odd name" int, mail varchar REFERENCES customers (email));
CREATE TABLE items (order_id bigint REFERENCES orders, line smallint, product_code varchar(10), PRIMARY KEY (order_id, line));
CREATE TABLE shipments (id uuid PRIMARY KEY, order_id bigint, line smallint, FOREIGN KEY (line, order_id) REFERENCES items (line, order_id));
CREATE TABLE products (code varchar(10) PRIMARY KEY, title text);
CREATE TABLE staff (id int PRIMARY KEY, boss int REFERENCES staff, name text);
CREATE TABLE parted (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE parted_2026 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE keyless (a int);
CREATE TABLE by_array (id int[] PRIMARY KEY);
CREATE TABLE silent (id int PRIMARY KEY); ALTER TABLE silent REPLICA IDENTITY NOTHING;
CREATE UNLOGGED TABLE hasty (id int PRIMARY KEY);
INSERT INTO customers SELECT i, 'n' || i, now(), '{a,b}', '{{1.50},{NULL}}', '{1 day}', '{1.5}', 'm' || i FROM generate_series(1, 9) i;
INSERT INTO orders (id, customer, total, at, "odd name", mail) SELECT i, i % 9 + 1, i * 1.5, now(), 1, 'm1' FROM generate_series(1, 20) i;
INSERT INTO items SELECT i, 1, 'p' || i % 5 FROM generate_series(1, 20) i;
INSERT INTO shipments SELECT gen_random_uuid(), i, 1 FROM generate_series(1, 20) i;
INSERT INTO products SELECT 'p' || i, 't' || i FROM generate_series(0, 9) i;
INSERT INTO staff VALUES (1, NULL, 'b'), (2, 1, 'c');
INSERT INTO parted VALUES (1, '2026-02-02');
"""


def rejoin(*words: str) -> Result:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done


def row(table: str, *key: str) -> dict[str, Any]:
    return dict(json.loads(rejoin("get", table, *key).stdout))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_database_by_its_catalog(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(logging_server, autocommit=True) as db:
        db.execute("CREATE DATABASE seen")
    url = logging_server.rsplit("/", 1)[0] + "/seen"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(SHOP)
    monkeypatch.chdir(tmp_path)
    by_url = rejoin("discover", url).stdout
    assert url not in by_url
    monkeypatch.setenv("REJOIN_SOURCE_SEEN", url)
    found = rejoin("discover", "capture://seen")
    assert found.stdout.split("\n", 1)[1] == by_url.split("\n", 1)[1]
    assert found.stderr == "left out: public.hasty: unlogged or temporary, so its changes are in no log\n"
    for words in (
        "# odd: interval[], elements as their texts",
        "# money: money_like[], as its text",
        "# twice: generated, and so not in the log",
        "# odd name: left out, as no column of rejoin has such a name",
        "# no primary key: the log does not say which row is changed or gone. Add one",
        "# REPLICA IDENTITY NOTHING: the log does not say which row is gone. ALTER TABLE public.silent REPLICA IDENTITY DEFAULT",
        "# no join for the foreign key orders_mail_fkey: it leads to email of customers, which is not its key",
        "# the foreign key shipments_line_order_id_fkey of the database",
        "# 5 of 5 sampled values are keys of products",
    ):
        assert words in found.stdout
    (tmp_path / "t.py").write_text(found.stdout)
    tables = {table.name: (table.key, {c.name: c.type for c in table.columns}) for table in load("t.py").tables}
    assert tables["items"] == (("order_id", "line"), {"order_id": "BIGINT", "line": "INT", "product_code": "STRING"})
    assert tables["orders"][1] == {"id": "BIGINT", "customer": "INT", "total": "DECIMAL(12,2)", "at": "TIMESTAMP_NTZ", "mail": "STRING"}
    nested = {"tags": "ARRAY<STRING>", "grid": "ARRAY<ARRAY<DECIMAL(8,2)>>", "odd": "ARRAY<STRING>", "money": "STRING"}
    assert {name: tables["customers"][1][name] for name in nested} == nested
    assert tables["by_array"] == (("id",), {"id": "STRING"})
    assert tables.keys() == {"customers", "orders", "items", "shipments", "products", "staff", "parted", "by_array"}
    rejoin("capture", "t.py", "--once")
    ran = rejoin("run", "t.py", "--engine", "local", "--yes")
    assert "quarantined" not in ran.stdout
    assert row("items_with_product_code", "3", "1")["product_code_title"] == "t3"
    assert row("staff_with_boss", "2")["boss_name"] == "b"
    assert row("orders_with_customer", "3")["customer_name"] == "n4"
    assert row("orders_with_customer", "3")["customer_grid"] == [["1.50"], [None]]


def catalog_table(identity: str, *keys: UniqueKey) -> CatalogTable:
    return CatalogTable(1, "s", "t", identity, True, True, True, keys)


PRIMARY = UniqueKey(primary=True, replica=False, index="t_pkey", columns=("id",))
UNIQUE = UniqueKey(primary=False, replica=False, index="t_x", columns=("x", "y"))
CHOSEN = UniqueKey(primary=False, replica=True, index="t_z", columns=("z",))


@pytest.mark.parametrize(
    ("table", "key", "said"),
    [
        (catalog_table("d", PRIMARY, UNIQUE), ("id",), ""),
        (catalog_table("d", UNIQUE), (), "REPLICA IDENTITY USING INDEX t_x; then the key is x, y"),
        (catalog_table("d"), (), "Add one"),
        (catalog_table("i", PRIMARY, CHOSEN), ("z",), ""),
        (catalog_table("f", PRIMARY), ("id",), ""),
        (catalog_table("f", UNIQUE), ("x", "y"), ""),
        (catalog_table("f"), (), "Add one"),
        (catalog_table("n", PRIMARY), (), "REPLICA IDENTITY NOTHING"),
    ],
)
def test_the_key_is_what_changes_are_told_by(table: CatalogTable, key: tuple[str, ...], said: str) -> None:
    found, missing = database.key(table)
    assert found == key and said in missing and bool(missing) is bool(said)


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("smallint", "INT"),
        ("bigint", "BIGINT"),
        ("numeric(38,0)", "DECIMAL(38,0)"),
        ("numeric(39,0)", "STRING"),
        ("numeric(2,4)", "STRING"),
        ("numeric", "STRING"),
        ("timestamp(3) without time zone", "TIMESTAMP_NTZ"),
        ("timestamp with time zone", "TIMESTAMP"),
        ("bytea", "BINARY"),
        ("jsonb", "STRING"),
        ("timestamp(3) with time zone[]", "ARRAY<TIMESTAMP>"),
        ("numeric[]", "ARRAY<STRING>"),
    ],
)
def test_types_of_postgresql(written: str, type_: str) -> None:
    assert database.column(CatalogColumn("c", written, generated=False, dimensions=written.count("[]"))).type == type_


def test_tables_of_a_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    bronze = SqlCatalog("bronze", **{k: v for k, v in settings.items() if k != "type"})
    bronze.create_namespace("shop")
    fields = NestedField(1, "region", StringType(), required=True), NestedField(2, "no", LongType(), required=True)
    shops = bronze.create_table("shop.shops", Schema(*fields, NestedField(3, "title", StringType()), identifier_field_ids=[1, 2]))
    orders = pa.table({"id": list(range(20)), "customer": [i % 3 for i in range(20)], "parts": [[1]] * 20})
    customers = pa.table({"id": [0, 1, 2], "name": ["a", "b", "c"]})
    bronze.create_table("shop.orders", orders.schema).append(orders)
    bronze.create_table("shop.customer", customers.schema).append(customers)
    bronze.create_table("shop.empty", customers.schema)
    shops.append(pa.Table.from_pylist([{"region": "eu", "no": 1, "title": "x"}], shops.schema().as_arrow()))
    monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps(settings))
    monkeypatch.chdir(tmp_path)
    found = rejoin("discover", "iceberg://bronze/shop")
    assert found.stderr == "left out: shop.empty: it has no snapshot yet\n"
    assert '"id BIGINT, customer BIGINT, parts ARRAY<BIGINT>"' in found.stdout
    (tmp_path / "t.py").write_text(found.stdout)
    assert {t.name: t.key for t in load("t.py").tables} == {"orders": ("id",), "customer": ("id",), "shops": ("region", "no")}
    rejoin("run", "t.py", "--engine", "local")
    assert row("orders_with_customer", "4") == {"id": 4, "customer": 1, "parts": [1], "customer_name": "b"}
