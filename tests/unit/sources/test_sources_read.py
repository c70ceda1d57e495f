"""A pin as a DataFrame: the driver and the workers give the same events, and errors of workers keep their type."""

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_cases import CAPTURES, table

from rejoin.errors import SourceFileChanged
from rejoin.plan.model import DebeziumSource, SnapshotSource
from rejoin.sources import available, coded_errors, read
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


def test_driver_and_workers_read_the_same_events(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("debezium_capture.jsonl", "debezium_capture_schemas.jsonl"):
        (tmp_path / "src").mkdir(exist_ok=True)
        shutil.copy(CAPTURES / name, tmp_path / "src" / name)
    ddl = "id BIGINT; total DECIMAL(12,2); d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP; big STRING"
    of = table(ddl, source=DebeziumSource("src", topic="e6.shop.orders"))
    pin = available(of, str(tmp_path), (), None)
    assert pin is not None
    local = read(spark, of, pin, str(tmp_path))
    monkeypatch.setattr(reading, "LOCAL_BYTES", 0)
    remote = read(spark, of, pin, str(tmp_path))
    assert local.schema == remote.schema == spark.createDataFrame([], events_ddl(of)).schema
    found = sorted(map(str, local.collect()))
    assert len(found) == 122 and found == sorted(map(str, remote.collect()))

    changed = tmp_path / pin.files[0].path
    changed.write_bytes(changed.read_bytes().replace(b"paid", b"diap"))
    with pytest.raises(SourceFileChanged, match=pin.files[0].path), coded_errors():
        read(spark, of, pin, str(tmp_path)).collect()


def test_parquet_is_read_with_names_positions_lines_and_quarantined_null_keys(spark: Any, tmp_path: Path) -> None:
    of = table("id BIGINT; v DECIMAL(10,2); note STRING", source=SnapshotSource("src"))
    for i, type_ in enumerate((pa.int32(), pa.int64())):
        (tmp_path / "src/1").mkdir(parents=True, exist_ok=True)
        values = pa.table({"id": pa.array([i, None], type_), "v": pa.array([1, 2], pa.decimal128(4, 1))})
        pq.write_table(values, tmp_path / f"src/1/p+{i} [x]%20.parquet")
    pin = available(of, str(tmp_path), (), None)
    assert pin is not None
    frame = read(spark, of, pin, str(tmp_path))
    assert [(f.name, f.dataType) for f in frame.schema] == [(f.name, f.dataType) for f in spark.createDataFrame([], events_ddl(of)).schema]
    rows = frame.orderBy("_arrival").collect()
    assert [(r["_kind"], r["id"], str(r["v"]), r["_line"], r["_arrival"] >> 40, r["_code"]) for r in rows] == [
        ("upsert", 0, "1.00", 1, 0, None),
        ("quarantined", None, "None", 2, 0, "MISSING_KEY"),
        ("upsert", 1, "1.00", 1, 1, None),
        ("quarantined", None, "None", 2, 1, "MISSING_KEY"),
    ]
    assert sorted({r["_file"] for r in rows}) == [file.path for file in pin.files]
