"""Files that DuckDB and Arrow write, as they write them: partitions, packed, as JSON and CSV."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from pinning import DDL, RECORDS, SNAPSHOTS, decode_pin, pinned, there
from source_cases import rows, table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import RecordsSource

ROWS = "SELECT i::BIGINT AS id, 'n' || i AS name, DATE '2026-11-26' + (i % 2)::INT AS dt, 'eu' AS region FROM range(2500) AS r(i)"
NAMES = [(i, f"n{i}") for i in range(2500)]


def read(of: Table, root: Path) -> list[tuple[int, str]]:
    found = rows(decode_pin(of, pinned(of, root), str(root)))
    assert {row["_kind"] for row in found} == {"upsert"}
    return sorted((row["id"], row["name"]) for row in found)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("FORMAT json", "1.json"),
        ("FORMAT json, ARRAY true", "1.json"),
        ("FORMAT json, ARRAY true, COMPRESSION gzip", "1.json.gz"),
        ("FORMAT json, COMPRESSION gzip", "1.json"),
        ("FORMAT json, COMPRESSION zstd", "1.json.zst"),
        ("FORMAT csv, HEADER", "1.csv"),
        ("FORMAT csv, HEADER, COMPRESSION zstd", "1.csv"),
        ("FORMAT csv, HEADER, COMPRESSION gzip", "1.csv.gz"),
    ],
)
@pytest.mark.parametrize("of", [SNAPSHOTS, RECORDS], ids=["snapshot", "records"])
def test_what_duckdb_copies_is_read(tmp_path: Path, of: Table, options: str, name: str) -> None:
    (tmp_path / "src").mkdir()
    duckdb.sql(f"COPY ({ROWS}) TO '{tmp_path}/src/{name}' ({options})")
    assert read(of, tmp_path) == NAMES


@pytest.mark.parametrize("options", ["FORMAT json", "FORMAT csv, HEADER", "FORMAT parquet"])
def test_the_partitions_that_duckdb_makes_are_read(tmp_path: Path, options: str) -> None:
    duckdb.sql(f"COPY ({ROWS}) TO '{tmp_path}/src' ({options}, PARTITION_BY (dt, region))")
    of = table(DDL, source=RecordsSource("src"))
    assert read(of, tmp_path) == NAMES and not there(of, str(tmp_path)).ignored


@pytest.mark.parametrize(("codec", "name"), [("gzip", "1.csv"), ("bz2", "1.csv.bz2"), ("zstd", "1.csv.zst"), ("lz4", "1.csv.lz4")])
def test_packed_csv_of_arrow_is_read(tmp_path: Path, codec: str, name: str) -> None:
    (tmp_path / "src").mkdir()
    found: Any = pa.table({"id": [i for i, _ in NAMES], "name": [name for _, name in NAMES]})
    with pa.CompressedOutputStream(str(tmp_path / "src" / name), codec) as stream:
        pyarrow.csv.write_csv(found, stream)
    assert read(SNAPSHOTS, tmp_path) == NAMES
