"""What ``rejoin discover`` guesses from samples."""

import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rejoin.cli import main
from rejoin.discover.columns import Column, key_of, of_arrow, of_connect, of_rows
from rejoin.discover.foreign_keys import foreign_keys
from rejoin.discover.landed_rows import landed as landed_rows
from rejoin.discover.table import ForeignKey, Found, FoundTable
from rejoin.discover.topology_file import identifier, topology_file
from rejoin.plan.check.topology_file import load


@pytest.mark.parametrize(
    ("values", "type_", "of_texts"),
    [
        ([1, 2], "BIGINT", None),
        ([1, 2.5], "DECIMAL(18,1)", None),
        ([1e-9], "DOUBLE", None),
        ([2**70], "DECIMAL(38,0)", None),
        ([True, None], "BOOLEAN", None),
        (["1", "2"], "STRING", "BIGINT"),
        (["01", "2"], "STRING", "STRING"),
        (["1.50", "2"], "STRING", "DECIMAL(18,2)"),
        (["true", "F"], "STRING", "BOOLEAN"),
        (["2026-01-31"], "DATE", "DATE"),
        (["2026-01-31T10:00:00Z", "2026-01-31 10:00:00.5+02:00"], "TIMESTAMP", "TIMESTAMP"),
        (["2026-01-31T10:00"], "TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
        (["x", None], "STRING", "STRING"),
        ([None], "STRING", "STRING"),
        ([[1]], None, None),
    ],
)
def test_types(values: list[Any], type_: str | None, of_texts: str | None) -> None:
    rows = [{"c": value} for value in values]
    assert of_rows(rows)[0].type == type_
    if of_texts:
        assert of_rows(rows, texts=True)[0].type == of_texts


def test_types_of_connect() -> None:
    decimal = {"scale": "2", "connect.decimal.precision": "10"}
    fields = [
        {"field": "a", "type": "int32"},
        {"field": "b", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "c", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": decimal},
        {"field": "d", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "e", "type": "array"},
        {"field": "f", "type": "array", "items": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}},
        {
            "field": "g",
            "type": "array",
            "items": {"type": "array", "items": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": decimal}},
        },
        {"field": "h", "type": "array", "items": {"type": "struct"}},
    ]
    found = ["INT", "DATE", "DECIMAL(10,2)", "TIMESTAMP", None, "ARRAY<TIMESTAMP_NTZ>", "ARRAY<ARRAY<DECIMAL(10,2)>>", None]
    assert [c.type for c in of_connect(fields)] == found


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (pa.large_list(pa.int16()), "ARRAY<INT>"),
        (pa.struct([("a", pa.list_(pa.string())), ("b", pa.decimal128(5, 2))]), "STRUCT<a: ARRAY<STRING>, b: DECIMAL(5,2)>"),
        (pa.map_(pa.string(), pa.date32()), "MAP<STRING, DATE>"),
        (pa.map_(pa.int32(), pa.date32()), None),
        (pa.struct([("a", pa.duration("us"))]), None),
        (pa.struct([("a b", pa.int32())]), None),
        (pa.struct([]), None),
    ],
)
def test_nested_types_of_arrow(kind: pa.DataType, type_: str | None) -> None:
    assert of_arrow(kind) == type_


def test_the_key_is_unique_and_if_possible_called_so() -> None:
    rows = [{"n": 1, "order_id": 5, "x": 1}, {"n": 2, "order_id": 6, "x": 1}]
    columns = [Column(name, "BIGINT") for name in ("n", "order_id", "x")]
    assert key_of("orders", columns, rows) == ("order_id",)
    assert key_of("orders", columns[:1], rows) == ("n",)
    assert key_of("orders", columns[2:], rows) == ()


def found(name: str, key: str, rows: list[dict[str, Any]]) -> FoundTable:
    return FoundTable(name, of_rows(rows), (key,), 'snapshot("x")', rows)


def test_foreign_keys_are_named_as_the_table_or_hold_its_keys() -> None:
    orders = found("orders", "id", [{"id": n, "customer_id": n % 7, "payer_id": n % 5, "total": n % 3} for n in range(50)])
    customers = found("customers", "id", [{"id": n} for n in range(5)])
    assert list(foreign_keys([orders, customers])) == [
        ForeignKey("orders", ("customer_id",), "customers", "5 of 7 sampled values are keys of customers"),
        ForeignKey("orders", ("payer_id",), "customers", "5 of 5 sampled values are keys of customers"),
    ]


def test_names_are_those_of_python_and_none_comes_twice() -> None:
    assert [identifier(text, {"orders"}) for text in ("shop orders!", "orders", "2026", "class", "ü")] == [
        "shop_orders",
        "orders_2",
        "t_2026",
        "t_class",
        "table",
    ]


def test_a_key_with_a_quote_in_its_name_is_a_text_of_python() -> None:
    for key, printed in ((("it's",), '#     key="it\'s",'), (("it's", "né"), '#     key=["it\'s", "né"],')):
        assert printed in topology_file("t", "l", Found([FoundTable("x", [Column("it's", "INT")], key, 'snapshot("l")', [])]))


def put(root: Path, **files: str | bytes) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data.encode() if isinstance(data, str) else data)


def event(table: str, lsn: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None, op: str = "c") -> dict[str, Any]:
    source = {"connector": "postgresql", "name": "s", "schema": "public", "table": table, "lsn": lsn, "snapshot": "false"}
    return {"before": before, "after": after, "op": op, "source": source}


def lines(*documents: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in documents)


def parquet(root: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), root / name)


def maxwell(table: str, row: dict[str, Any], at: int) -> dict[str, Any]:
    own = {"database": "shop", "table": table, "type": "insert", "ts": 1, "commit": True, "position": f"b.1:{at}"}
    return own | {"data": row}


ORDERS = [{"id": 1, "customer": 7, "total": 12.5}, {"id": 2, "customer": 8, "total": 3}]
PEOPLE = [{"id": 7, "name": "Ann"}, {"id": 8, "name": "Bob"}]


def connect(root: Path) -> None:
    of = {
        "orders": [event("orders", n, row) for n, row in enumerate(ORDERS, 1)],
        "customer": [event("customer", n, row) for n, row in enumerate(PEOPLE, 1)],
    }
    of["orders"].append(event("orders", 9, None, {"id": 2, "customer": None, "total": None}, "d"))
    for name, events in of.items():
        data = gzip.compress(lines(*events).encode())
        put(root, **{f"l/topics/s.public.{name}/partition=0/s.public.{name}+0+0000000000.json.gz": data})


def one_feed(root: Path) -> None:
    events = [event("orders", n, row) for n, row in enumerate(ORDERS, 1)] + [event("customer", n, row) for n, row in enumerate(PEOPLE, 5)]
    put(root, **{"l/0001.jsonl": lines(*events)})


def snapshots(root: Path) -> None:
    put(root, **{"l/orders.csv": "id;customer;total\n1;7;12.5\n2;8;3\n"})
    parquet(root, "l/customer/2026-01-01.parquet", [{"id": 7, "name": "x"}])
    parquet(root, "l/customer/2026-01-02.parquet", PEOPLE)


def binlog(root: Path) -> None:
    put(root, **{"l/1.json": lines(*(maxwell("orders", row, 1) for row in ORDERS), *(maxwell("customer", row, 2) for row in PEOPLE))})


def landed(root: Path) -> None:
    mark = {"_fivetran_synced": "2026-01-01T00:00:00Z", "_fivetran_deleted": False}
    put(root, **{"l/orders/1.jsonl": lines(*(row | mark for row in ORDERS)), "l/customer/1.jsonl": lines(*(row | mark for row in PEOPLE))})


def landed_in_columns(root: Path) -> None:
    """Rows in Parquet, each as it is now: flattened by Debezium, and of DMS, whose full load says no order."""
    orders = [row | {"total": Decimal(row["total"]), "__deleted": "false", "__lsn": n} for n, row in enumerate([*ORDERS, ORDERS[0]])]
    parquet(root, "l/orders/orders+0+0000000000.parquet", orders)
    parquet(root, "l/customer/LOAD00000001.parquet", [row | {"Op": None, "AR_H_CHANGE_SEQ": None} for row in PEOPLE])
    changed = [{"id": 7, "name": name, "Op": "U", "AR_H_CHANGE_SEQ": f"{n:035}"} for n, name in enumerate(("Anne", "Ann"), 1)]
    parquet(root, "l/customer/2026/11/28/20261128-0900.parquet", [*changed, {**changed[0], "id": 9, "Op": "I"}])


def landed_csv(root: Path) -> None:
    """The same of DMS in CSV."""
    put(root, **{"l/customer/1.csv": "Op;id;name;AR_H_CHANGE_SEQ\nI;7;Ann;1\nI;8;Bob;2\nU;8;Rob;3\n"})
    orders = [row | {"__op": "c", "__deleted": "false", "__file": "b.000002", "__pos": n} for n, row in enumerate(ORDERS)]
    put(root, **{"l/orders/1.jsonl": lines(*orders, orders[0] | {"__pos": 9})})


def in_columns(root: Path) -> None:
    """Change events as sinks of Connect write them, in Parquet and in Avro."""
    orders = [event("orders", n, {**row, "total": Decimal(row["total"])}) for n, row in enumerate(ORDERS, 1)]
    parquet(root, "l/orders/orders+0+0000000000.parquet", orders)
    parts = {"Row": {"id": "long", "name": "string"}, "Source": {"connector": "string", "table": "string", "lsn": "long"}}
    row, source = ({"type": "record", "name": n, "fields": [{"name": f, "type": t} for f, t in of.items()]} for n, of in parts.items())
    fields = {"before": ["null", row], "after": ["null", "Row"], "source": source, "op": "string"}
    envelope = {"type": "record", "name": "Envelope", "fields": [{"name": f, "type": t} for f, t in fields.items()]}
    written = io.BytesIO()
    fastavro.writer(written, envelope, [event("customer", n, row) for n, row in enumerate(PEOPLE, 1)])
    put(root, **{"l/customer/customer+0+0000000000.avro": written.getvalue()})


@pytest.mark.parametrize("make", [connect, one_feed, snapshots, binlog, landed, landed_in_columns, landed_csv, in_columns])
def test_what_is_printed_is_a_topology_that_runs(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(main, ["discover", "l"], catch_exceptions=False)
    assert printed.exit_code == 0, printed.stderr
    Path("t.py").write_text(printed.stdout)
    plan = load("t.py")
    assert {table.name: table.key for table in plan.tables} == {"orders": ("id",), "customer": ("id",)}
    assert {c.name: c.type for c in plan.table("orders").columns}["total"].startswith("DECIMAL")
    ran = CliRunner().invoke(main, ["run", "t.py", "--engine", "local"], catch_exceptions=False)
    assert ran.exit_code == 0, ran.stderr
    row = CliRunner().invoke(main, ["get", "orders_with_customer", "1"], catch_exceptions=False)
    assert json.loads(row.stdout)["customer_name"] == "Ann"


@pytest.mark.parametrize(
    ("fields", "call"),
    [
        ("id __lsn __deleted", 'flattened(p, order_by="__lsn")'),
        ("id __source_lsn __op", 'flattened(p, order_by="__source_lsn", deleted=None)'),
        ("id __file __pos __row __deleted", """flattened(p, order_by=["CAST(split_part(__file, '.', 2) AS BIGINT)", "__pos", "__row"])"""),
        ("id __commit_lsn __change_lsn __deleted", 'flattened(p, order_by="concat(__commit_lsn, __change_lsn)")'),
        ("id __pos __deleted", 'flattened(p, order_by="TODO")'),
        ("id Op AR_H_CHANGE_SEQ", "dms(p)"),
        ("id Op", 'dms(p, sequence="TODO")'),
        ("id _ab_cdc_lsn _ab_cdc_deleted_at", 'airbyte(p, order_by="_ab_cdc_lsn")'),
        ("id _fivetran_synced _fivetran_deleted", "fivetran(p)"),
        ("id op", "snapshot(p)"),
        ("id __index_level_0__", "snapshot(p)"),
    ],
)
def test_fields_of_a_tool_say_what_reads_its_rows(fields: str, call: str) -> None:
    found = landed_rows(fields.split()).table("orders", "p", of_rows([dict.fromkeys(fields.split(), 1)]), [])
    assert found.source == call
    assert found.runs is ("TODO" not in call)
    assert ("TODO" in call) is any("TODO" in note for note in found.notes)


def test_what_nobody_can_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, **{"l/a/1.bin": b"\x00\x01", "l/rows.csv": "a,b\n1,x\n1,x\n"})
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(main, ["discover", "l"], catch_exceptions=False)
    assert "TODO: the columns that are a key" in printed.stdout and 'key="TODO"' in printed.stdout
    assert "left out: l/a" in printed.stderr
    assert CliRunner().invoke(main, ["discover", "nothing"]).exit_code == 3
