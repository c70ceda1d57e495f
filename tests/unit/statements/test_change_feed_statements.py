"""What a sink is given: changes of one run as they are, of several runs one a key, and rows with deletes of those that are gone."""

from pathlib import Path

import pyarrow as pa
import pytest
from statement_tables import check_rows
from stored_tables import StoredTables

from rejoin.lake.read import change_feed
from rejoin.lake.read.change_feed import RunRange, TableAt

KEY, COLUMNS = ["s", "o"], ["s", "o", "v"]
ROW = "STRUCT(s INT, o INT, v VARCHAR)"


def image(o: int, v: str, s: int = 1) -> str:
    return f"{{s: {s}, o: {o}, v: {v}}}"


LOG = f"""
  _run BIGINT | _op | s INT | o INT | _before {ROW}    | _after {ROW}
  2           | U   | 1     | 1     | {image(1, "a")}  | {image(1, "b")}
  3           | U   | 1     | 1     | {image(1, "b")}  | {image(1, "c")}
  2           | I   | 1     | 2     | NULL             | {image(2, "d")}
  3           | U   | 1     | 2     | {image(2, "d")}  | {image(2, "e")}
  2           | U   | 1     | 3     | {image(3, "f")}  | {image(3, "g")}
  3           | D   | 1     | 3     | {image(3, "g")}  | NULL
  3           | I   | 2     | 1     | NULL             | {image(1, "h", 2)}
  4           | U   | 2     | 1     | {image(1, "h", 2)} | {image(1, "i", 2)}
"""
OUTPUT = "s INT | o INT | v | _run BIGINT\n 1 | 1 | c | 3\n 1 | 2 | e | 3\n 2 | 1 | i | 4\n 1 | 4 | z | 1"
SHOWN = "_run | _op | s | o | _before.v | _after.v\n"


class Feed(StoredTables):
    """``log`` and ``output``."""

    def __init__(self, root: Path, log: str, output: str) -> None:
        super().__init__(root, "shop")
        self.write("log", log)
        self.write("output", output)

    def at(self, name: str) -> TableAt:
        return TableAt(self.table(name), self.states[name])

    def changes(self, between: RunRange, columns: list[str] = COLUMNS) -> pa.Table:
        return pa.Table.from_batches(change_feed.changes(self.at("log"), self.at("output"), between, KEY, columns))

    def rows(self, gone: int | None = None) -> pa.Table:
        log = None if gone is None else (self.at("log"), gone)
        return pa.Table.from_batches(change_feed.rows(self.at("output"), KEY, COLUMNS, gone=log))


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path, LOG, OUTPUT)


def test_the_changes_of_one_run_are_given_as_they_are(feed: Feed) -> None:
    expected = SHOWN + "3 | U | 1 | 1 | b | c\n 3 | U | 1 | 2 | d | e\n 3 | D | 1 | 3 | g | NULL\n 3 | I | 2 | 1 | NULL | h"
    check_rows(feed.changes(RunRange(2, 3, net=False)), expected)


def test_of_several_runs_a_key_has_one_change_from_its_first_row_to_its_last(feed: Feed) -> None:
    expected = SHOWN + "3 | U | 1 | 1 | a | c\n 3 | I | 1 | 2 | NULL | e\n 3 | D | 1 | 3 | f | NULL\n 3 | I | 2 | 1 | NULL | h"
    check_rows(feed.changes(RunRange(1, 3, net=True)), expected)


def test_a_column_that_rows_did_not_have_then_is_null_in_them_and_a_missing_row_stays_missing(feed: Feed) -> None:
    expected = "o | _before.w | _after.v | _after.w | _before IS NULL | _after IS NULL\n 1 | NULL | h | NULL | true | false\n"
    check_rows(feed.changes(RunRange(2, 3, net=False), [*COLUMNS, "w"]).filter(pa.compute.field("s") == 2), expected)
    gone = feed.changes(RunRange(2, 3, net=False)).filter(pa.compute.field("_op") == "D")
    check_rows(gone, "_before IS NULL | _after IS NULL\n false | true")


def test_what_an_output_was_loaded_with_is_inserted_by_that_run(tmp_path: Path) -> None:
    feed = Feed(tmp_path, LOG + "1 | A | NULL | NULL | NULL | NULL", OUTPUT)
    loaded = SHOWN + "1 | I | 1 | 1 | NULL | a\n 1 | I | 1 | 3 | NULL | f\n 1 | I | 1 | 4 | NULL | z"
    check_rows(feed.changes(RunRange(0, 1, net=False)), loaded)
    more = "\n 2 | U | 1 | 1 | a | b\n 2 | U | 1 | 3 | f | g\n 2 | I | 1 | 2 | NULL | d"
    check_rows(feed.changes(RunRange(0, 2, net=False)), loaded + more)


def test_rows_come_with_a_delete_of_every_key_that_is_gone(feed: Feed) -> None:
    rows = SHOWN + "3 | R | 1 | 1 | NULL | c\n 3 | R | 1 | 2 | NULL | e\n 1 | R | 1 | 4 | NULL | z\n 4 | R | 2 | 1 | NULL | i"
    check_rows(feed.rows(), rows)
    check_rows(feed.rows(gone=4), rows + "\n 3 | D | 1 | 3 | NULL | NULL")
