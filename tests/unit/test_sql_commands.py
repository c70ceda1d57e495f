"""``rejoin sql`` and ``rejoin head``: what they print and write, and their exit codes."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from rejoin.cli import main
from rejoin.report.rows import fitting


@pytest.fixture
def call(location: str):  # type: ignore[no-untyped-def]
    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [*map(str, arguments), "--lake", location])

    return call


def test_an_answer_is_a_table_that_says_what_was_read(call) -> None:  # type: ignore[no-untyped-def]
    done = call("sql", "SELECT id, note, customer_id = 7 AS seven FROM orders WHERE id IN (1, 3) ORDER BY id")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["id", "note", "seven"],
        ["1", "<script>alert('x')</script>", "true"],
        ["3", "first", "true"],
        ["2", "row(s),", "as", "of", "run", "2", "of", "shop"],
    ]


def test_a_long_answer_is_cut_and_says_how_much_more_there_is(call) -> None:  # type: ignore[no-untyped-def]
    done = call("sql", "SELECT range AS n FROM range(1234)")
    assert len(done.stdout.splitlines()) == 43
    assert "the first 40 of 1,234 row(s)" in done.stdout and "--csv" in done.stdout


def test_what_would_do_something_to_a_terminal_is_shown_instead(call) -> None:  # type: ignore[no-untyped-def]
    done = call("sql", "SELECT chr(27) || '[31m' || chr(10) AS \"[bold]\", NULL AS n")
    assert done.stdout.splitlines()[:2] == ["[bold]      n     ", "\\x1b[31m\\n  NULL  "]


def test_columns_that_do_not_fit_are_named(call) -> None:  # type: ignore[no-untyped-def]
    done = call("sql", f"SELECT {', '.join(f'{i} AS column_number_{i}' for i in range(30))}")
    assert "not shown: column_number_" in done.stdout and done.stdout.splitlines()[2].endswith("column_number_29")
    assert [fitting([3, 3], 10), fitting([3, 3], 9), fitting([], 9), fitting([50], 5)] == [[3, 3], [3], [], [12]]
    assert [fitting([5, 90, 30], 100), fitting([5, 90, 30], 50), fitting([5, 90, 30], 20)] == [[5, 40, 30], [5, 19, 19], [5]]


def test_head_shows_some_rows_and_whether_there_are_more(call) -> None:  # type: ignore[no-untyped-def]
    assert "2 row(s) of orders, as of run 2 of shop; there are more" in call("head", "orders", "-n", 2).stdout
    assert call("head", "orders").stdout.splitlines()[-1] == "5 row(s) of orders, as of run 2 of shop"
    assert " ".join(call("head", "customers").stdout.split()) == "id name 0 row(s) of customers, as of run 2 of shop"
    lines = call("head", "orders", "-n", 2, "--as-of", 1, "--json").stdout.splitlines()
    assert [json.loads(line)["note"] for line in lines] == ["first", "first"]


def test_all_rows_go_to_a_file_or_the_output(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    big = call("sql", "FROM range(25000)", "--csv", "-").stdout.splitlines()
    assert (len(big), big[0], big[-1]) == (25_001, '"range"', "24999")
    query = "SELECT id, CASE id WHEN 3 THEN '' WHEN 4 THEN 'a\"b,' END AS t, [id] AS l FROM orders WHERE id BETWEEN 3 AND 5 ORDER BY id"
    assert call("sql", query, "--csv", "-").stdout == '"id","t","l"\n3,"","[3]"\n4,"a""b,","[4]"\n5,,"[5]"\n'
    (tmp_path / "x.csv").write_text("old")
    assert call("sql", query, "--csv", tmp_path / "x.csv").exit_code == 0
    assert (tmp_path / "x.csv").read_text().startswith('"id"')
    assert call("sql", query, "--parquet", tmp_path / "x.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "x.parquet").to_pylist()[0] == {"id": 3, "t": "", "l": [3]}
    assert call("sql", f"FROM ({query}) WHERE false", "--parquet", tmp_path / "none.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "none.parquet").schema.names == ["id", "t", "l"]
    assert {p.name for p in tmp_path.iterdir()} == {"x.csv", "x.parquet", "none.parquet"}


NESTED = "SELECT {'d': 1.50, 'n': 'NaN'::DOUBLE} AS s, MAP {'k\"': [1, NULL]} AS m, [DATE '2020-01-31'] AS l, NULL::INT[] AS none"


def test_nested_values_are_json_on_the_terminal_and_in_csv(call) -> None:  # type: ignore[no-untyped-def]
    s, m, days = '{"d": "1.50", "n": "NaN"}', '{"k\\"": [1, null]}', '["2020-01-31"]'
    assert call("sql", NESTED).stdout.splitlines()[1].split("  ")[:4] == [s, m, days, "NULL"]
    [_, line] = csv.reader(io.StringIO(call("sql", NESTED, "--csv", "-").stdout))
    assert [json.loads(value) for value in line[:3]] == [json.loads(value) for value in (s, m, days)] and line[3] == ""


def test_a_file_is_whole_or_not_there(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "x.csv").write_text("old")
    done = call("sql", "SELECT CAST(note AS INT) FROM orders", "--csv", tmp_path / "x.csv")
    assert done.exit_code == 2 and "QUERY_FAILED" in done.stderr and "first" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"] and (tmp_path / "x.csv").read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("sql", "SELEC"), 2, "QUERY_REFUSED"),
        (("sql", "COPY orders TO 'x'"), 2, "QUERY_REFUSED"),
        (("sql", "FROM nothing"), 2, "expected: orders, customers, enriched"),
        (("head", "nothing"), 2, "UNKNOWN_TABLE"),
        (("head", "orders", "--as-of", "9"), 4, "RUN_UNKNOWN"),
        (("head", "orders", "-n", "-1"), 2, "Invalid value"),
        (("head", "orders", "--csv", "/nowhere/x.csv"), 2, "No such file or directory"),
        (("head", "orders", "--csv", "-", "--json"), 2, "exclude each other"),
        (("sql", "SELECT 1", "--topology", "nope"), 2, "no topology 'nope'"),
    ],
)
def test_a_mistake_is_one_message_and_an_exit_code(call, arguments: tuple[str, ...], code: int, message: str) -> None:  # type: ignore[no-untyped-def]
    done = call(*arguments)
    assert done.exit_code == code and message in done.stderr and done.stdout == ""
