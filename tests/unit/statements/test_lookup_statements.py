"""What DuckDB reads of the files of a snapshot: rows of a run, of some keys, of some times, and none that is hidden."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import StringType
from statement_tables import check, check_rows, table_of
from stored_tables import StoredTables

from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.read.lookups import LookupKeys, Lookups
from rejoin.plan.model.plan import Plan

ROWS = """
  s INT | o INT | _run BIGINT | v  | at TIMESTAMPTZ
  1     | 1     | 1           | a  | 1970-01-01 00:00:01+00
  1     | 2     | 2           | b  | 1970-01-01 00:00:02+00
  2     | NULL  | 1           | c  | 1970-01-01 00:00:03+00
  2     | 2     | 2           | d  | 1970-01-01 00:00:04+00
"""
MORE = "s INT | o INT | _run BIGINT | v | at TIMESTAMPTZ\n 3 | 1 | 3 | e | 1970-01-01 00:00:05+00\n 3 | 2 | 3 | f | 1970-01-01 00:00:06+00"


@pytest.fixture
def lake(tmp_path: Path) -> StoredTables:
    """``t`` in two files, the first of two runs. The folder above looks like a value of a column, as some tools of Hive's lay out files."""
    made = StoredTables(tmp_path / "v=9", "shop")
    made.append("t", table_of(ROWS))
    made.append("t", table_of(MORE))
    return made


def having(lake: StoredTables, key: list[str], keys: str) -> pa.Table:
    found = duckdb_lookup.having(lake.table("t"), lake.states["t"], key, table_of(keys), ["v"])
    assert isinstance(found, pa.Table)
    return found


def text_of(lake: StoredTables, run: int | None = None) -> str:
    return duckdb_lookup.text_of(lake.table("t"), lake.states["t"], ["v"], run)


def lookups(lake: StoredTables) -> Lookups:
    return Lookups(DuckdbEngine(Plan("shop", (), ())), "shop", lake.states, lake.refs)


def test_the_rows_of_a_run_are_those_that_it_wrote(lake: StoredTables) -> None:
    check_rows(lookups(lake).of_run("t", 2).here(), "v\n b\n d")
    check(text_of(lake, 2), "v\n b\n d")
    check(text_of(lake, 7), "v\n")


def test_a_sample_of_a_run_is_no_larger_than_asked_for(tmp_path: Path) -> None:
    lake = StoredTables(tmp_path, "shop")
    lake.append("t", table_of("n INT | _run BIGINT\n" + "\n".join(f"{n} | 1" for n in range(100))))
    found = duckdb_lookup.of_run(lake.table("t"), lake.states["t"], 1, ["n"], sample=10)
    assert isinstance(found, pa.Table) and found.num_rows == 10


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("s INT | o INT\n 1 | 2\n 3 | 2\n 2 | 1", "v\n b\n f"),
        ("s INT | o INT\n 2 | NULL\n 1 | NULL", "v\n c"),
        ("s INT | o INT\n 2 | NULL\n 1 | 1\n 3 | NULL", "v\n a\n c"),
    ],
    ids=["of two columns", "of which one is null in all", "of which one is null in some"],
)
def test_rows_are_found_by_keys(lake: StoredTables, keys: str, expected: str) -> None:
    check_rows(having(lake, ["s", "o"], keys), expected)


def test_a_key_that_is_given_twice_finds_its_row_once(lake: StoredTables) -> None:
    keys = LocalRelation(table_of("s INT | o INT\n 1 | 2\n 1 | 2"))
    check_rows(lookups(lake).having("t", ["s", "o"], LookupKeys(keys, 2), ["v"]).here(), "v\n b")


def test_a_hidden_row_is_not_read(lake: StoredTables) -> None:
    lake.hide("t", "v IN ('b', 'c', 'e')")
    check(text_of(lake), "v\n a\n d\n f")
    check_rows(having(lake, ["s"], "s INT\n 1\n 2"), "v\n a\n d")
    lake.hide("t", "v = 'f'")
    check(text_of(lake), "v\n a\n d")
    assert lookups(lake).largest_time("t", "at") == 4_000_000


def test_times_are_read_within_their_spans(lake: StoredTables) -> None:
    check_rows(lookups(lake).within("t", "at", [(2_000_000, 3_000_000), (6_000_000, 6_000_000)], ["v"]).here(), "v\n b\n c\n f")


def test_a_column_that_came_later_is_null_before_and_a_renamed_one_keeps_its_values(lake: StoredTables) -> None:
    with lake.table("t").update_schema() as change:
        change.add_column("w", StringType())
        change.rename_column("v", "was")
    rows = duckdb_lookup.text_of(lake.table("t"), lake.states["t"], ["s", "o", "was", "w"])
    check(
        rows,
        "s | o | was | w\n 1 | 1 | a | NULL\n 1 | 2 | b | NULL\n 2 | NULL | c | NULL\n 2 | 2 | d | NULL\n 3 | 1 | e | NULL\n 3 | 2 | f | NULL",
    )
    found = duckdb_lookup.having(lake.table("t"), lake.states["t"], ["s", "o"], table_of("s INT | o INT\n 1 | 2\n 2 | 7"), ["was"])
    assert isinstance(found, pa.Table)
    check_rows(found, "was\n b")


def test_nan_is_a_value(tmp_path: Path) -> None:
    lake = StoredTables(tmp_path, "shop")
    lake.append("t", table_of("n INT | x DOUBLE\n 1 | 0.5\n 2 | nan"))
    rows = duckdb_lookup.text_of(lake.table("t"), lake.states["t"], ["n", "x"])
    check(f"SELECT max(x) AS x FROM ({rows})", "x\n nan")
    check(f"SELECT n FROM ({rows}) WHERE isnan(x)", "n\n 2")
