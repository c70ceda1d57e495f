"""What queries over a lake may not do, and how it is told."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from published import one_table, publish
from small_lake import make
from test_odd_paths import Stored

from rejoin import Lake
from rejoin.errors import EngineFailed, QueryFailed, QueryRefused, RunUnknown, SnapshotExpired, UnknownTable


@pytest.fixture
def lake(location: str) -> Lake:
    return Lake(location)


FILE = "/etc/hostname"
REFUSED = {
    "another statement": "COPY orders TO '{tmp}/x.csv'",
    "a file that is written inside": "WITH a AS (COPY orders TO '{tmp}/x.csv') SELECT * FROM a",
    "rows that are written inside": "WITH a AS (INSERT INTO orders VALUES (1) RETURNING *) SELECT * FROM a",
    "a file that is written by a text": "FROM query('WITH a AS (COPY (SELECT 1) TO ''{tmp}/x.csv'') SELECT * FROM a')",
    "a file of the lake that is written": "WITH a AS (COPY orders TO 'lake://0.parquet') SELECT * FROM a",
    "an export": "EXPORT DATABASE '{tmp}/x'",
    "a database": "ATTACH '{tmp}/x.db'",
    "an extension": "INSTALL httpfs",
    "an extension that is there": "LOAD json",
    "a setting": "SET enable_external_access = true",
    "a new table": "CREATE TABLE x AS SELECT 1",
    "what an engine would do": "EXPLAIN ANALYZE COPY orders TO '{tmp}/x.csv'",
    "a call": "CALL enable_logging(storage_path = '{tmp}/x')",
    "two statements": "SELECT 1; SELECT 2",
    "nothing": " -- nothing",
    "a parameter": "SELECT $1",
    "a file by its function": "SELECT * FROM read_csv('{file}')",
    "a text": "SELECT * FROM read_text('{file}')",
    "names of files": "SELECT * FROM glob('/etc/*')",
    "files of the lake by no name": "SELECT * FROM read_parquet('lake://99.parquet')",
    "a file of the lake": "SELECT * FROM read_parquet('{lake}/warehouse/shop/orders/data/*.parquet')",
    "a mistake": "SELEC 1",
    "a column that is not there": "SELECT nothing FROM orders",
}


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED.keys())
def test_a_query_that_does_not_only_read_the_lake_is_refused(lake: Lake, tmp_path: Path, query: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        lake.sql(query.format(tmp=tmp_path, file=FILE, lake=lake.location)).to_arrow()
    assert refused.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_relation_that_was_handed_out_neither_reads_nor_writes_files(lake: Lake, tmp_path: Path) -> None:
    import duckdb

    rows = lake.read("orders").to_duckdb()
    with pytest.raises(duckdb.Error):
        rows.write_csv(str(tmp_path / "x.csv"))
    with pytest.raises(duckdb.Error):
        rows.query("v", f"SELECT * FROM v, read_text('{FILE}')").fetchall()
    assert list(tmp_path.iterdir()) == []


def test_variables_of_this_process_are_no_tables(lake: Lake) -> None:
    secrets = pa.table({"x": [1]})
    with pytest.raises(UnknownTable, match="no table 'secrets'"):
        lake.sql("SELECT * FROM secrets")
    assert secrets.num_rows == 1


def test_an_unknown_table_that_is_read_whole_is_told_too(lake: Lake) -> None:
    for name in ("nothing", "other.orders", "", ".", 'a"b'):
        with pytest.raises(UnknownTable):
            lake.read(name)


@pytest.mark.parametrize("query", ["SELECT * FROM nothing", f"SELECT * FROM '{FILE}'", "SELECT * FROM other.orders", "SELECT * FROM a.b.c"])
def test_an_unknown_table_is_told_with_those_that_there_are(lake: Lake, query: str) -> None:
    with pytest.raises(UnknownTable) as refused:
        lake.sql(query)
    assert refused.value.expected == "orders, customers, enriched"


@pytest.mark.parametrize("query", ["SELECT CAST(note AS INT) FROM orders", "SELECT error(note) FROM orders"])
def test_what_cannot_be_computed_is_told_without_values(lake: Lake, query: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        lake.sql(query).to_arrow()
    assert "first" not in str(failed.value) and failed.value.__cause__ is None


def test_a_file_that_is_gone_is_no_mistake_of_the_query(tmp_path: Path) -> None:
    stored = Stored(tmp_path / "lake", ["k"])
    lake = Lake(tmp_path / "lake")
    publish(lake.location, one_table("t", "rows", "k STRING", "k"), {"rows": stored.head})
    for file in (tmp_path / "lake" / "warehouse").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(EngineFailed):
        lake.sql("SELECT * FROM rows").to_arrow()


def test_a_lake_or_run_or_topology_that_is_not_there_is_told_and_nothing_is_made(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(RunUnknown, match="there is no lake at"):
        Lake(tmp_path / "none").tables()
    with pytest.raises(RunUnknown, match="no run was committed yet"):
        Lake(tmp_path).sql("SELECT 1")
    assert not (tmp_path / "none").exists() and not (tmp_path / "ledger.db").exists()
    with pytest.raises(RunUnknown, match="no run 9"):
        lake.read("orders", as_of=9)
    with pytest.raises(RunUnknown, match="run 3 was not committed"):
        lake.read("orders", as_of=3)
    with pytest.raises(UnknownTable, match="no topology 'nope'"):
        lake.sql("SELECT 1", topology="nope")


def test_a_state_that_is_gone_is_told(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    with sqlite3.connect(tmp_path / "lake" / "ledger.db") as db:
        db.execute("UPDATE rejoin_states SET snapshot_id = 1 WHERE table_name = 'orders' AND run = 1")
    with pytest.raises(SnapshotExpired):
        lake.read("orders", as_of=1)
    assert lake.read("enriched", as_of=1).count() == 6
