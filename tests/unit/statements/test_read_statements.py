"""What reads of a lake make of stored rows: newest versions, the feed of an output from its load on, rows that are left out; and the encoding that is hashed."""

import pyarrow as pa
import pytest
from statement_tables import SQL, check

from rejoin.lake.read.duckdb_lookup import among_wanted, inside
from rejoin.lake.read.version_rows import latest, without
from rejoin.statements import load_reference
from rejoin.statements.dialect import picked
from rejoin.statements.load_reference import Images
from rejoin.statements.value_hash import canonical, compared


def test_the_newest_version_of_a_key_is_that_of_the_newest_run() -> None:
    found = "s INT | o INT | _run INT | v\n 1 | 1 | 2 | new\n 1 | 1 | 1 | old\n 1 | 2 | 1 | only\n 2 | 1 | 1 | other"
    check(latest(SQL, ["s", "o", "v"], ["s", "o"]), "s | o | v\n 1 | 1 | new\n 1 | 2 | only\n 2 | 1 | other", found=found)


@pytest.mark.parametrize(("nulls", "of_null"), [(True, "NULL"), (False, "d")])
def test_left_rows_that_are_left_out_stay_without_a_row(*, nulls: bool, of_null: str) -> None:
    lefts, keys = "s INT | o INT | _row\n 1 | 1 | a\n 1 | 2 | b\n 2 | 1 | c\n NULL | 1 | d", "s INT | o INT\n 1 | 1\n 2 | 2\n NULL | 1"
    text = without(SQL, ["s", "o", "_row"], ["s", "o"], ["_row"], nulls=nulls)
    check(text, f"s | o | _row\n 1 | 1 | NULL\n 1 | 2 | b\n 2 | 1 | c\n NULL | 1 | {of_null}", lefts=lefts, keys=keys)


@pytest.mark.parametrize(("nulls", "found"), [(True, "\n NULL | 1"), (False, "")])
def test_stored_rows_are_found_once_by_wanted_keys_and_null_by_null_where_there_can_be_nulls(*, nulls: bool, found: str) -> None:
    stored, wanted = "s INT | o INT\n 1 | 1\n 1 | 2\n NULL | 1\n 2 | 1", "s INT | o INT\n 1 | 1\n 1 | 1\n NULL | 1\n 2 | 2"
    check(among_wanted(SQL, ["s", "o"], nulls=nulls), f"s | o\n 1 | 1{found}", stored=stored, wanted=wanted)


def test_a_time_is_within_one_of_some_spans_with_both_ends() -> None:
    rows = "n INT | t TIMESTAMPTZ\n" + "\n".join(f"{n} | 1970-01-01 00:00:0{n}+00" for n in range(1, 8))
    where = inside(SQL, "t", pa.timestamp("us", "UTC"), [(2_000_000, 3_000_000), (5_000_000, 5_999_999)])
    check(picked(SQL, ["n"], "rows_", where), "n\n 2\n 3\n 5", rows_=rows)


def test_the_feed_of_an_output_begins_with_an_insert_of_every_row_that_it_was_loaded_with() -> None:
    """Run 2 has loaded rows 1 to 4 (and 6 in shop 2); since then 2 was updated twice, 3 deleted, 5 came and went."""
    row = "STRUCT(v VARCHAR)"
    log = f"""
      _run INT | _op | s INT | o INT | _before {row} | _after {row}
      2        | A   | NULL  | NULL  | NULL          | NULL
      3        | U   | 1     | 2     | {{v: b}}      | {{v: c}}
      4        | U   | 1     | 2     | {{v: c}}      | {{v: d}}
      3        | D   | 1     | 3     | {{v: e}}      | NULL
      3        | I   | 1     | 5     | NULL          | {{v: f}}
      4        | D   | 1     | 5     | {{v: f}}      | NULL
      4        | D   | 2     | 2     | {{v: z}}      | NULL
    """
    stored = "s INT | o INT | _run INT | v\n 1 | 1 | 2 | a\n 1 | 2 | 4 | d\n 1 | 4 | 2 | g\n 2 | 6 | 2 | h"
    expected = """
      _run | _op | s | o | _before.v | _after.v
      2    | I   | 1 | 1 | NULL      | a
      2    | I   | 1 | 2 | NULL      | b
      2    | I   | 1 | 3 | NULL      | e
      2    | I   | 1 | 4 | NULL      | g
      2    | I   | 2 | 6 | NULL      | h
      2    | I   | 2 | 2 | NULL      | z
      3    | U   | 1 | 2 | b         | c
      4    | U   | 1 | 2 | c         | d
      3    | D   | 1 | 3 | e         | NULL
      3    | I   | 1 | 5 | NULL      | f
      4    | D   | 1 | 5 | f         | NULL
      4    | D   | 2 | 2 | z         | NULL
    """
    check(load_reference.changes(SQL, ["s", "o"], Images({"v": "VARCHAR"}, {"v"}, {"v"})), expected, log=log, stored=stored)
    lacking = load_reference.changes(SQL, ["s", "o"], Images({"v": "VARCHAR", "w": "INTEGER"}, {"v"}, {"v"}))
    wider = log.replace(row, "STRUCT(v VARCHAR, w INTEGER)").replace("}", ", w: 1}")
    check(
        f"SELECT * FROM ({lacking}) WHERE _run = 2 AND o < 3 AND s = 1",
        "o | _after.v | _after.w\n 1 | a | NULL\n 2 | b | NULL",
        log=wider,
        stored=stored,
    )


def test_the_rows_of_a_load_are_those_after_its_changes() -> None:
    changes = "_run INT | s INT | _op | _after STRUCT(s INT, v VARCHAR, _hash BLOB)\n 2 | 1 | I | {s: 1, v: a, _hash: h}"
    check(load_reference.rows(SQL, ["s", "v"], ["s"]), "s | v | _run | _hash | _op\n 1 | a | 2 | h | I", changes=changes)


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        pytest.param("STRING", "'añ'", "s3:añ", id="text, its length in bytes"),
        pytest.param("STRING", "''", "s0:", id="empty text"),
        pytest.param("STRING", "CAST(NULL AS VARCHAR)", "-", id="null"),
        pytest.param("INT", "7", "i1:7", id="number"),
        pytest.param("DECIMAL(10,2)", "CAST(1.50 AS DECIMAL(10,2))", "n3:1.5", id="decimal without its last zeros"),
        pytest.param("DECIMAL(10,2)", "CAST(10.00 AS DECIMAL(10,2))", "n2:10", id="decimal without its point"),
        pytest.param("DECIMAL(10,0)", "CAST(100 AS DECIMAL(10,0))", "n3:100", id="decimal without a scale"),
        pytest.param("DOUBLE", "CAST('-0' AS DOUBLE)", "f1:0", id="minus zero"),
        pytest.param("DOUBLE", "CAST(0.5 AS DOUBLE)", "f3:0.5", id="double"),
        pytest.param("BINARY", "CAST('ab' AS BLOB)", "x2:ab", id="binary"),
        pytest.param("BINARY", "CAST(NULL AS BLOB)", "-", id="no binary"),
        pytest.param("DATE", "DATE '1970-01-03'", "d1:2", id="date"),
        pytest.param("TIMESTAMP", "TIMESTAMPTZ '1970-01-01 00:00:01+00'", "t7:1000000", id="instant"),
        pytest.param("STRUCT<a: INT, b: STRING>", "{a: 7, b: NULL}", "r5:i1:7-", id="struct with a null"),
        pytest.param("ARRAY<STRING>", "['x', NULL]", "a9:2:s1:x, -", id="array with a null"),
        pytest.param("ARRAY<STRING>", "CAST(NULL AS VARCHAR[])", "-1:", id="no array"),
    ],
)
def test_the_encoding_of_a_value_tells_it_from_any_other(kind: str, value: str, encoded: str) -> None:
    check(f"SELECT decode({canonical(SQL, [(value, kind), (value, kind)])}) AS e", f"e\n {encoded * 2}")


def test_a_map_is_compared_by_its_encoding_and_no_map_is_null() -> None:
    text = compared(SQL, "m", "MAP<STRING, INT>")
    check(f"SELECT {text} AS e FROM given", "e\n NULL\n m1:s1:ai1:1", given="m MAP(VARCHAR, INT)\n NULL\n {a=1}")
