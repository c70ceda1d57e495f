"""A pin as a DataFrame: the driver and the workers give the same events, and errors of workers keep their type."""

import gzip
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from limited import limited
from pinning import there
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo
from pyspark.sql.pandas.types import from_arrow_schema
from source_cases import CAPTURES, table

from rejoin.errors import SourceCorrupt, SourceFileChanged
from rejoin.plan.model.sources import DebeziumSource, RecordsSource, SnapshotSource
from rejoin.sources import SourceAccess, coded_errors, read, read_here, waiting
from rejoin.sources.events import events_ddl

reading = importlib.import_module("rejoin.sources.read")
# pyspark leaves its sockets to the garbage collector.
LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.slow, *map(pytest.mark.filterwarnings, LEAKS)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(str(reading.__file__)).parents[2]), os.environ.get("PYTHONPATH", "")])
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", warehouse)
    session = builder.config("spark.sql.session.timeZone", "America/New_York").getOrCreate()
    yield session
    session.stop()


def laid(root: Path, name: str, content: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def exactly(rows: pa.Table) -> list[str]:
    """Everything that can be seen of rows; as text, since NaN is not equal to itself and -0.0 is equal to 0.0. Instants as numbers: a text
    would show them in the zone of who looks.
    """
    plain = [rows[f.name].cast(pa.timestamp("us")).cast(pa.int64()) if pa.types.is_timestamp(f.type) else rows[f.name] for f in rows.schema]
    return sorted(map(repr, pa.table(plain, names=rows.column_names).to_pylist()))


EVENTS = "id BIGINT; total DECIMAL(12,2); d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP; big STRING"
ALL = "id BIGINT; b BOOLEAN; f FLOAT; x DOUBLE; s STRING; y BINARY; d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP; n DECIMAL(10,2)"
HEADER = b"id,b,f,x,s,y,d,ts,tz,n"
ROW = b'%d,true,1.5,-0.0,"a ""b""\nc",YWI=,1969-12-31,0001-01-01T00:00:00,9999-12-31T23:59:59.999999Z,0.10'
JSON = b'{"id": %d, "b": false, "f": null, "ts": null, "x": "NaN", "s": "\\u00e9", "y": "YWI=", "d": "2024-02-29", "tz": "2024-03-10T07:30:00+01:00", "n": 1.5}'
LONG = [
    b'%d,"a\n%d",2024-02-29T11:14:15+01:00,1.5,yes\n' % (i, i) if i % 50 == 0 else b"%d,n %d,2024-02-29 11:14:15,-%d.5,f\n" % (i, i, i)
    for i in range(4_000)
]
BOTH_WAYS = {
    "change events": (EVENTS, DebeziumSource("src", topic="e6.shop.orders"), {}, 122),
    "CSV": (ALL, SnapshotSource("src"), {"a.csv": b"\n".join([HEADER, ROW % 1, ROW % 2, b"x,y", b'3,"\xff"', b"", ROW % 4]),
                                        "b.csv.gz": gzip.compress(b"\r\n".join([HEADER, ROW % 5, b'6,"a"b\n', b"7" + b"," * 9]))}, 8),
    "plain and other lines of CSV": ("id BIGINT; s STRING; tz TIMESTAMP; n DECIMAL(10,2); b BOOLEAN", SnapshotSource("src"),
                                     {"a.csv": b"id,s,tz,n,b\n" + b"".join(LONG), "b.csv.gz": gzip.compress(b"b,id,n,tz,s\r\n" + b"T,%d,1,,\r\n" * 2_500 % (*range(2_500),))}, 6_500),
    "JSON lines": (ALL, SnapshotSource("src"), {"a.jsonl": b"\n".join([JSON % 1, JSON % 2, b'{"id": 1,', b"\xff", JSON % 2**70]),
                                                "b.jsonl.gz": gzip.compress(b"\n".join([JSON % i for i in range(100)]))}, 105),
    "records": (ALL, RecordsSource("src"), {"2026-01-01/a.csv": b"\n".join([HEADER, ROW % 1, b"x,y"]), "a.csv.gz": gzip.compress(HEADER + b"\n" + ROW % 2)}, 3),
}  # fmt: skip


@pytest.mark.parametrize("case", BOTH_WAYS)
def test_the_driver_and_the_workers_read_the_same_events_of_the_same_types(
    spark: Any, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddl, source, files, count = BOTH_WAYS[case]
    if not files:
        files = {name: (CAPTURES / name).read_bytes() for name in ("debezium_capture.jsonl", "debezium_capture_schemas.jsonl")}
    for name, content in files.items():
        laid(tmp_path, f"src/1/{name}" if source.kind == "snapshot" else f"src/{name}", content)
    of = table(ddl, source=source)
    pin = there(of, str(tmp_path)).pin
    assert pin is not None
    here = read_here(of, pin, SourceAccess(str(tmp_path)))
    assert here is not None
    limited(monkeypatch, fetched_bytes=0)
    assert read_here(of, pin, SourceAccess(str(tmp_path))) is None, "the pin is Spark's to read"
    frame = read(spark, of, pin, SourceAccess(str(tmp_path)))
    assert frame.schema == spark.createDataFrame([], events_ddl(of)).schema == from_arrow_schema(here.schema, prefer_timestamp_ntz=True)
    elsewhere = frame.toArrow()
    assert elsewhere.schema.types == here.schema.types or [str(t) for t in elsewhere.schema.types] == [str(t) for t in in_zone(here.schema)]
    assert (here.num_rows, exactly(here)) == (count, exactly(elsewhere))


def test_workers_read_the_rows_of_an_iceberg_table_and_what_changed_as_the_driver_does(spark: Any, tmp_path: Path) -> None:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    catalog = load_catalog("bronze", **settings)
    catalog.create_namespace("shop")
    rows = pa.table({"id": pa.array(range(9), pa.int64()), "name": [None, *"abcdefgh"]})
    there = catalog.create_table("shop.things", rows.schema)
    there.append(rows)
    of, access = (
        table("id BIGINT; name STRING", source=SnapshotSource("iceberg://b/shop.things")),
        SourceAccess(".", {"b": {**settings, "name": "bronze"}}),
    )
    whole = waiting(of, access, None, tuple).pin
    assert whole is not None
    there.delete(EqualTo("id", 4))
    there.append(rows.slice(0, 1).set_column(0, "id", pa.array([77], pa.int64())))
    changes = waiting(of, access, whole, tuple).pin
    assert changes is not None
    for pin, kinds in ((whole, ["upsert"] * 9), (changes, ["upsert", "delete"])):
        here = read_here(of, pin, access)
        assert here is not None
        assert here["_kind"].to_pylist() == kinds
        assert exactly(read(spark, of, pin, access).orderBy("_arrival").toArrow()) == exactly(here)


def in_zone(schema: pa.Schema) -> list[pa.DataType]:
    """The types as Spark hands them over: an instant has the session's time zone."""
    return [pa.timestamp("us", "America/New_York") if t == pa.timestamp("us", "UTC") else t for t in schema.types]


def test_an_error_of_a_worker_keeps_its_type(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = table("id BIGINT; name STRING", source=SnapshotSource("src"))
    laid(tmp_path, "src/1.csv", b"id,name\n1,paid\n")
    pin = there(of, str(tmp_path)).pin
    assert pin is not None
    limited(monkeypatch, fetched_bytes=0)
    laid(tmp_path, "src/1.csv", b"id,name\n1,diap\n")
    with pytest.raises(SourceFileChanged, match=r"src/1\.csv"), coded_errors():
        read(spark, of, pin, SourceAccess(str(tmp_path))).collect()
    laid(tmp_path, "src/2.csv", b'id,name\n1,"paid\n')
    pin = there(of, str(tmp_path)).pin
    assert pin is not None
    with pytest.raises(SourceCorrupt, match=r"src/2\.csv.*line 2"), coded_errors():
        read(spark, of, pin, SourceAccess(str(tmp_path))).collect()


def test_parquet_is_read_with_names_positions_lines_and_quarantined_null_keys(spark: Any, tmp_path: Path) -> None:
    of = replace(table("id BIGINT; v DECIMAL(10,2); note STRING", source=SnapshotSource("src")), optional=("note",))
    for i, type_ in enumerate((pa.int32(), pa.int64())):
        (tmp_path / "src/1").mkdir(parents=True, exist_ok=True)
        values = pa.table({"id": pa.array([i, None], type_), "v": pa.array([1, 2], pa.decimal128(4, 1))})
        pq.write_table(values, tmp_path / f"src/1/p+{i} [x]%20.parquet")
    pin = there(of, str(tmp_path)).pin
    assert pin is not None
    frame = read(spark, of, pin, SourceAccess(str(tmp_path)))
    assert [(f.name, f.dataType) for f in frame.schema] == [(f.name, f.dataType) for f in spark.createDataFrame([], events_ddl(of)).schema]
    rows = frame.orderBy("_arrival").collect()
    assert [(r["_kind"], r["id"], str(r["v"]), r["_line"], r["_arrival"] >> 43, r["_code"]) for r in rows] == [
        ("upsert", 0, "1.00", 1, 0, None),
        ("quarantined", None, "None", 2, 0, "MISSING_KEY"),
        ("upsert", 1, "1.00", 1, 1, None),
        ("quarantined", None, "None", 2, 1, "MISSING_KEY"),
    ]
    assert sorted({r["_file"] for r in rows}) == [part.id for part in pin.parts]


def test_parquet_files_of_records_may_have_one_name_in_two_folders(spark: Any, tmp_path: Path) -> None:
    of = table("id BIGINT; name STRING", source=RecordsSource("src"))
    for folder in ("2026-01-01", "2026-01-02", "."):
        (tmp_path / "src" / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": pa.array([len(folder)], pa.int64()), "name": [folder]}), tmp_path / "src" / folder / "0.parquet")
    pin = there(of, str(tmp_path)).pin
    assert pin is not None
    here = read_here(of, pin, SourceAccess(str(tmp_path)))
    assert here is not None and here["name"].to_pylist() == [".", "2026-01-01", "2026-01-02"]
    found = read(spark, of, pin, SourceAccess(str(tmp_path))).orderBy("_arrival").collect()
    assert [(r["name"], r["_file"], r["_arrival"] >> 43) for r in found] == [
        (".", "src/0.parquet", 0),
        ("2026-01-01", "src/2026-01-01/0.parquet", 1),
        ("2026-01-02", "src/2026-01-02/0.parquet", 2),
    ]
