"""The texts of tests as tables: what is read, what is equal, what differs."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from rejoin.errors import BadTestTable
from rejoin.testing import Grid, plugin
from rejoin.testing.grid import Change
from rejoin.testing.text import lines, read, split, written

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("total", pa.decimal128(10, 2)),
        ("share", pa.float32()),
        ("ok", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("wall", pa.timestamp("us")),
        ("raw", pa.binary()),
    ]
)
ANN = {
    "id": 1,
    "name": "Ann",
    "total": Decimal("12.50"),
    "share": 0.1,
    "ok": True,
    "day": date(2026, 11, 21),
    "at": datetime(2026, 11, 21, 10, tzinfo=UTC),
    "wall": datetime(2026, 11, 21, 10),  # noqa: DTZ001 -- a wall clock
    "raw": b"\x00\x01",
}
NOBODY = dict.fromkeys(ANN) | {"id": 2}


def people(*rows: dict[str, object]) -> Grid:
    return Grid("people", ["id"], COLUMNS, [Change("", None, row) for row in rows], changed=False)


def changed(*changes: Change) -> Grid:
    return Grid("changes of people in run 2", ["id"], COLUMNS, changes, changed=True)


@pytest.mark.parametrize(
    "value", [None, "", " ", "a", "a b", "a | b", 'say "a"', '"', "NULL", "null", "a\nb", " a", "a ", "-", "\u2028", "ä"]
)
def test_a_written_cell_reads_as_what_it_was(value: str | None) -> None:
    [line] = lines(f"{written('x')} | {written(value)} | {written('y')}")
    assert [read(cell) for cell in split(line)] == ["x", value, "y"]


@pytest.mark.parametrize("line", ['1 | "Ann', '1 | "Ann" B | 2', '1 | "A\\x"'])
def test_a_broken_quote_is_refused(line: str) -> None:
    with pytest.raises(BadTestTable):
        [read(cell) for cell in split(line)]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("total", ["12.5", "12.50", "1.25E1"]),
        ("share", ["0.1", "0.10"]),
        ("ok", ["true"]),
        ("day", ["2026-11-21"]),
        ("at", ["2026-11-21 10:00", "2026-11-21T10:00:00Z", "2026-11-21 11:00:00.000+01:00"]),
        ("wall", ["2026-11-21 10:00", "2026-11-21T10:00:00.000000"]),
        ("raw", ["AAE="]),
    ],
)
def test_values_are_compared_by_their_types(column: str, texts: list[str]) -> None:
    for text in texts:
        assert people(ANN) == f"id | {column}\n 1 | {text}"
    assert people(ANN) != f"id | {column}\n 1 | x"
    assert people(ANN) != f"id | {column}\n 1 | NULL"
    assert people(NOBODY) == f"id | {column}\n 2 | NULL"


def test_the_order_of_rows_does_not_count_their_number_does() -> None:
    grid = people(ANN, NOBODY)
    assert grid == "id\n2\n1"
    assert grid != "id\n1"
    assert grid != "id\n1\n2\n2"
    assert people() == ""
    assert people() == "id | name"
    assert grid != ""


def test_null_is_not_the_empty_text() -> None:
    assert people(NOBODY | {"name": ""}) == 'id | name\n2 | ""'
    assert people(NOBODY | {"name": ""}) != "id | name\n2 | NULL"
    assert people(NOBODY | {"name": "NULL"}) == 'id | name\n2 | "NULL"'


def test_was_is_what_the_column_to_its_left_had_before() -> None:
    grid = changed(Change("U", ANN, ANN | {"name": "Anne", "ok": False}), Change("I", None, NOBODY), Change("D", ANN | {"id": 3}, None))
    assert (
        grid
        == """
      op | id | name | was | ok    | was
      U  | 1  | Anne | Ann | false | true
      I  | 2  | NULL |     | NULL  |
      D  | 3  |      | Ann |       | true
    """
    )
    assert grid != "op | id | name | was\nU | 1 | Anne | NULL\nI | 2 | NULL |\nD | 3 | | Ann"
    assert repr(changed(Change("U", ANN, ANN | {"name": "Anne"}))).splitlines()[1].startswith("op | id | name | was | total | share")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op | id | nam\nU | 1 | Ann", "no column 'nam'"),
        ("op | id\nU | 1 | Ann", "has 3 cells"),
        ("was | id\nAnn | 1", "no column to its left"),
        ("op | was\nU | I", "no column to its left"),
    ],
)
def test_an_expectation_that_cannot_be_met_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadTestTable, match=message):
        assert changed(Change("U", ANN, ANN)) == text


def test_a_difference_shows_each_row_once_and_in_the_order_of_keys() -> None:
    grid, text = people(ANN, NOBODY), "id | name\n1 | Anne\n2 | NULL\n3 | Cleo"
    shown = [
        "people: 3 rows expected (-), 2 rows found (+)",
        "  id | name",
        "- 1  | Anne",
        "+ 1  | Ann",
        "  2  | NULL",
        "- 3  | Cleo",
    ]
    assert grid.difference(text) == shown
    assert plugin.pytest_assertrepr_compare("==", grid, text) == plugin.pytest_assertrepr_compare("==", text, grid) == shown
    assert plugin.pytest_assertrepr_compare("!=", grid, text) is None
    assert plugin.pytest_assertrepr_compare("==", "a", "b") is None
