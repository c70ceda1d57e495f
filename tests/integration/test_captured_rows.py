"""The rows of a snapshot land as Parquet, and say what lines of changes say of the same rows: values, keys, and what is refused."""

import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from rejoin.capture import rows
from rejoin.capture.capture import Request, capture
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources import SourceAccess, read_along, waiting

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

TIMES = ["2026-01-02 03:04:05.678901", "infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "0001-01-01"]
NUMBERS = ["0", "1", "7", "-1"]
TYPES = {
    "smallint": [*NUMBERS, "-32768"],
    "int": [*NUMBERS, "2147483647"],
    "bigint": [*NUMBERS, "9223372036854775807"],
    "oid": ["0", "4294967295"],
    "numeric": [*NUMBERS, "1.00", "12.50", "-0.001", "1e30", "NaN", "Infinity", "12345678901234567890.123", "12345678901234567", "0.1"],
    "numeric(12, 2)": [*NUMBERS, "12.50", "NaN"],
    "real": [*NUMBERS, "1.1", "-0", "NaN", "Infinity", "1e-30", "16777216", "1e20"],
    "double precision": [*NUMBERS, "1.1", "-0", "NaN", "-Infinity", "1e300", "0.1", "1e-7", "1e16"],
    "boolean": ["true", "false"],
    "bytea": [r"\xdeadbeef", r"\x", r"\x5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"],
    "text": [
        "",
        "a",
        'é"\\\n\u2028',
        "12.5",
        "-7",
        "true",
        "NaN",
        "3q2+7w==",
        "__debezium_unavailable_value",
        "2026-01-01",
        "wide " * 20_000,
    ],
    "char(5)": ["a", ""],
    "date": TIMES,
    "timestamp": TIMES,
    "timestamptz": TIMES,
    "time": ["10:11:12.5", "24:00"],
    "interval": ["1 day -00:00:01", "1 year"],
    "uuid": ["12345678-1234-1234-1234-123456789abc"],
    "jsonb": ['{"a": [1.50, null]}'],
    "text[]": ['{a,"b c",NULL}'],
    "mood": ['so "so"'],
    "positive": ["1.50", "7"],
    "label": ["xyz"],
}
FITTING = {
    "smallint": "INT",
    "int": "INT",
    "bigint": "BIGINT",
    "oid": "BIGINT",
    "numeric": "DOUBLE",
    "numeric(12, 2)": "DECIMAL(12,2)",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "bytea": "BINARY",
    "text": "DECIMAL(12,2)",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "positive": "BIGINT",
}
DECLARED = [
    "BOOLEAN",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(12,2)",
    "DECIMAL(38,0)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
]
MADE = """
CREATE TYPE mood AS ENUM ('so "so"'); CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
CREATE DOMAIN short AS varchar(9); CREATE DOMAIN label AS short
"""
ODD = ['"a.b"', '"A b"', '"ä"', '"select"', '"dou""ble"', '"payload"', '"schema"', '"op"', '"source"', '"Name"', '"name"', '"it\'s"']


class Database:
    """Tables in a database of their own, captured into a directory."""

    def __init__(self, server: str, root: Path) -> None:
        self.at, self.root = f"rows_{uuid.uuid4().hex[:8]}", root
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {self.at}")  # type: ignore[arg-type]
        self.url = server.rsplit("/", 1)[0] + f"/{self.at}"
        self.db = psycopg.connect(self.url, autocommit=True)
        self._declared: dict[str, str] = {}

    def make(self, name: str, columns: str, declared: str = "id INT") -> None:
        """A table, and what a topology declares of it."""
        self.db.execute(f"CREATE TABLE {name} ({columns})")  # type: ignore[arg-type]
        self._declared[name] = declared

    def capture(self, *, resnapshot: bool = False) -> int:
        """Captures once; how many rows of snapshots."""
        tables = [
            f't.table("{name}", key="id", schema="{schema}", source=debezium(captured("public.{name}", at="{self.at}"))).select("id").named("o_{name}")'
            for name, schema in self._declared.items()
        ]
        file = self.root / "t.py"
        file.write_text("\n".join(["from rejoin import Topology, captured, debezium", 't = Topology("t")', *tables]))
        (done,) = capture(load(str(file)), Request(str(self.root), {self.at: {"url": self.url}}, resnapshot=resnapshot, tell=str))
        return done.rows

    def directory(self, name: str) -> Path:
        return self.root / "landing" / self.at / f"public.{name}"

    def said(self, name: str, ddl: str, key: str = "id") -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Ends of the names of files -> the events that they hold."""
        of, access = self._read_as(name, ddl, key), SourceAccess(str(self.root))
        pin = waiting(of, access, None, dict).pin
        assert pin is not None
        found = defaultdict[str, list[dict[str, Any]]](list)
        for batch in read_along(of, pin, access):
            for event in batch.to_pylist():
                found[Path(event["_file"]).suffix].append(event)
        yield from found.items()

    def _read_as(self, name: str, ddl: str, key: str) -> Table:
        columns = tuple(Column(*part.strip().rsplit(" ", 1)) for part in ddl.split(";"))
        source = DebeziumSource(str(self.directory(name).relative_to(self.root)))
        return Table(name, (key,), columns, source, tuple(column.name for column in columns))


@pytest.fixture
def database(logging_server: str, tmp_path: Path) -> Iterator[Database]:
    made = Database(logging_server, tmp_path)
    with made.db:
        yield made


def same_of_both(database: Database, name: str, ddl: str, key: str = "id") -> list[dict[str, Any]]:
    """The rows of a table, as those of its snapshot and those that were changed later say them alike."""
    columns = [part.strip().rsplit(" ", 1)[0] for part in ddl.split(";")]
    found = {}
    for end, events in database.said(name, ddl, key):
        kept = [e for e in events if e["_kind"] in ("upsert", "quarantined")]
        told = [{c: e[c] for c in (*columns, "_kind", "_missing", "_absent", "_code", "_reason")} for e in kept]
        found[end] = sorted(map(repr, told))
        result = told
    assert found[".parquet"] == found[".jsonl"]
    return result


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_every_type_says_the_same_in_rows_and_changes(database: Database, *, every: bool) -> None:
    database.db.execute(MADE)
    names = {kind: re.sub(r"\W+", "_", kind) for kind in TYPES}
    tables = [(f"{form}_{names[kind]}", kind, declared) for kind in TYPES for form, declared in (("s", "STRING"), ("n", "INT"))]
    for name, kind, declared in tables:
        database.make(name, f"id int PRIMARY KEY, v {kind}", f"id INT, v {declared}")
        filled(database, name, kind)
    database.capture()
    for name, kind, _ in tables:
        database.db.execute(f"TRUNCATE {name}")  # type: ignore[arg-type]
        filled(database, name, kind)
    database.capture()
    read = 0
    for kind, values in TYPES.items():
        for declared in DECLARED if every else {"STRING", FITTING.get(kind, "INT")}:
            name = f"{'s' if declared == 'STRING' else 'n'}_{names[kind]}"
            for ddl, key in ((f"id INT; v {declared}", "id"), (f"v {declared}; id INT", "v"))[: 1 + every]:
                told = same_of_both(database, name, ddl, key)
                assert len(told) == len(values) + 1
                read += sum(t["_kind"] == "upsert" for t in told)
    assert read > 150


def filled(database: Database, name: str, kind: str) -> None:
    for i, value in enumerate([*TYPES[kind], None]):
        database.db.execute(f"INSERT INTO {name} VALUES (%s, %s::text::{kind})", (i, value))  # type: ignore[arg-type]


def test_names_of_columns_are_what_they_are(database: Database) -> None:
    database.make("odd", f"id int PRIMARY KEY, made int GENERATED ALWAYS AS (id + 1) STORED, {', '.join(f'{c} text' for c in ODD)}")
    insert = f"INSERT INTO odd (id, {', '.join(ODD)}) VALUES (1, {', '.join(['NULL', *(['%s'] * (len(ODD) - 1))])})"
    database.db.execute(insert, [str(i) for i in range(1, len(ODD))])  # type: ignore[arg-type]
    database.capture()
    database.db.execute("DELETE FROM odd")
    database.db.execute(insert, [str(i) for i in range(1, len(ODD))])  # type: ignore[arg-type]
    database.capture()
    columns = [name.strip('"').replace('""', '"') for name in ODD]
    (row,) = same_of_both(database, "odd", "; ".join(["id INT", *(f"{c} STRING" for c in columns)]))
    assert {c: row[c] for c in columns} == {c: str(i) if i else None for i, c in enumerate(columns)}


def test_tables_of_few_rows_and_of_many_ranges_say_where_they_begin_and_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_RANGE_PAGES", 1)
    sizes = {"none": 0, "one": 1, "two": 2, "many": 1000, "gaps": 1000}
    for name, size in sizes.items():
        database.make(name, "id int PRIMARY KEY")
        database.db.execute(f"INSERT INTO {name} SELECT generate_series(1, {size})")  # type: ignore[arg-type]
    database.db.execute("DELETE FROM gaps WHERE id BETWEEN 2 AND 900 OR id > 901")
    database.db.execute("VACUUM gaps")
    sizes["gaps"] = 2  # in two ranges, and none in the others
    assert database.capture() == sum(sizes.values())
    for name, size in sizes.items():
        found = dict(database.said(name, "id INT"))
        marks = [e["_snapshot"].split()[0] for e in found.get(".parquet", [])]
        assert len({e["id"] for e in found.get(".parquet", [])}) == len(marks) == size
        assert marks[-1:] == (["last"] if size else []) and marks.count("last") == min(size, 1)
        assert marks[:1] == (["first"] if size > 1 else marks[-1:]) and marks.count("first") == (size > 1)
        assert [e["_kind"] for e in found.get(".jsonl", [])] == ([] if size else ["skipped"])
    files = list(database.directory("many").glob("*.parquet"))
    assert len(files) > 4 and sum(pq.ParquetFile(file).metadata.num_rows for file in files) == 1000
    database.db.execute("TRUNCATE one")
    database.capture(resnapshot=True)
    found = dict(database.said("one", "id INT"))
    assert sorted(e["_kind"] for e in found[".jsonl"]) == ["skipped", "truncate", "truncate"]  # one is of the log
    assert [e["_kind"] for e in dict(database.said("two", "id INT"))[".jsonl"]] == ["truncate"]


def test_rows_that_an_older_rejoin_landed_as_lines_stay_what_they_are(database: Database) -> None:
    database.make("old", "id int PRIMARY KEY")
    database.db.execute("INSERT INTO old VALUES (1)")
    database.capture()
    (file,) = database.directory("old").glob("*.parquet")
    lsn = int(file.name[:20])
    source = f'{{"connector":"postgresql","name":"{database.at}","schema":"public","table":"old","lsn":{lsn},"ts_us":7,"snapshot":"last"}}'
    before = dict(database.said("old", "id INT"))[".parquet"]
    file.unlink()
    file.with_suffix(".jsonl").write_text(f'{{"key":{{"id":1}},"value":{{"before":null,"after":{{"id":1}},"source":{source},"op":"r"}}}}\n')
    database.db.execute("INSERT INTO old VALUES (2)")
    assert database.capture() == 0
    old, new = dict(database.said("old", "id INT"))[".jsonl"]
    assert {**old, "_file": ""} == {**before[0], "_file": ""} and new["id"] == 2
