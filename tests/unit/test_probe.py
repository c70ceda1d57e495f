"""Reads and commits on the driver, against PyIceberg's own reader: any key type, deletes, changed columns; and where they refuse."""

import datetime as dt
import random
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hiding import located
from limited import limited
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files, delete_file
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.read import duckdb_lookup
from rejoin.limits import limits

KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "BIGINT": (pa.int64(), lambda i: i - 50),
    "INT": (pa.int32(), lambda i: i),
    "STRING": (pa.string(), lambda i: f"{'é' if i % 3 else 'z'}'\"{i % 40}\u00a0{i}"),
    "DECIMAL": (pa.decimal128(20, 3), lambda i: Decimal(i) / 8),
    "BINARY": (pa.binary(), lambda i: bytes([i % 256, 0, 255 - i % 256])),
    "DATE": (pa.date32(), lambda i: dt.date(1970, 1, 1) + dt.timedelta(i - 50)),
    "TIMESTAMP": (pa.timestamp("us", "UTC"), lambda i: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=i)),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), lambda i: dt.datetime(1969, 12, 31) + dt.timedelta(microseconds=i)),  # noqa: DTZ001
    "BOOLEAN": (pa.bool_(), lambda i: i % 2 == 0),
}
COUNT = 200


class Lake:
    """One table, written as rejoin writes small runs."""

    def __init__(self, root: Path, schema: pa.Schema) -> None:
        self.refs = Refs(lake_config(str(root)), "t")
        self.refs.ensure_namespace()
        self.refs.create("rows", schema, {"write.parquet.row-group-limit": "16"})
        self.head, self._writes = self.refs.empty("rows"), 0

    @property
    def table(self) -> Table:
        return self.refs.require("rows", self.head)

    def write(self, rows: pa.Table, gone: pa.Table | None = None) -> None:
        """One more snapshot; ``gone`` has the places of rows to hide."""
        self._writes += 1
        deletes = [] if gone is None else [delete_file(self.table, gone)]
        self.head = self.refs.commit_files("rows", f"b{self._writes}", self.head, data_files(self.table, rows), deletes)

    def having(self, key: list[str], keys: pa.Table, columns: list[str]) -> pa.Table:
        found = duckdb_lookup.having(self.table, self.head, key, keys, columns)
        assert isinstance(found, pa.Table), found
        return found

    def expected(self, wanted: set[tuple[Any, ...]], key: list[str]) -> list[dict[str, Any]]:
        found = self.table.scan(snapshot_id=self.head).to_arrow().to_pylist()
        return [{c: row[c] for c in ("n", "_run", "note")} for row in found if tuple(row[k] for k in key) in wanted]


def rows(kind: str, numbers: list[int], run: int) -> pa.Table:
    type_, value = KEYS[kind]
    columns = {"k": pa.array([value(i) for i in numbers], type_), "n": pa.array(numbers, pa.int64())}
    return pa.table(
        {**columns, "_run": pa.array([run] * len(numbers), pa.int64()), "note": pa.array([f"{run} {i}" for i in numbers], pa.string())}
    )


def same(found: pa.Table, expected: list[dict[str, Any]]) -> None:
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected))


@pytest.fixture
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    return Lake(tmp_path, rows(request.param, [], 0).schema)


@pytest.mark.parametrize(("lake", "kind"), [(k, k) for k in KEYS], indirect=["lake"])
def test_rows_are_found_by_keys_of_every_type_and_hidden_rows_are_not(lake: Lake, kind: str) -> None:
    rng, (type_, value) = random.Random(3), KEYS[kind]
    for run in range(1, 4):
        some = rng.sample(range(COUNT), 60)
        lake.write(rows(kind, sorted(some), run))
    asked = rng.sample(range(COUNT + 20), 40)
    keys = pa.table({"k": pa.array([value(i) for i in asked], type_)})
    wanted = {(value(i),) for i in asked}
    found = lake.having(["k"], keys, ["n", "_run", "note"])
    same(found, lake.expected(wanted, ["k"]))
    assert found.num_rows > 20
    # Hide every second one of them, in two deletes.
    gone = located(lake.table, lake.head, ["k"], keys)
    assert set(gone["file_path"].to_pylist()) <= {f.file_path for f in files_of(lake.table, lake.head).data}
    lake.write(rows(kind, [], 4), gone.take(list(range(0, gone.num_rows, 4))))
    lake.write(rows(kind, [1], 5), gone.take(list(range(2, gone.num_rows, 4))))
    left = lake.having(["k"], keys, ["n", "_run", "note"])
    same(left, lake.expected(wanted, ["k"]))
    assert left.num_rows < found.num_rows


@pytest.mark.parametrize("lake", ["BIGINT"], indirect=True)
def test_a_column_that_was_dropped_and_added_again_is_empty_in_old_rows(lake: Lake) -> None:
    lake.write(rows("BIGINT", list(range(10)), 1))
    with lake.table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("note")
    with lake.table.update_schema() as update:
        update.add_column("note", lake.table.schemas()[0].find_field("note").field_type)
    lake.write(rows("BIGINT", [3], 2))
    keys = pa.table({"k": pa.array([KEYS["BIGINT"][1](i) for i in (3, 4)], pa.int64())})
    found = lake.having(["k"], keys, ["n", "_run", "note"]).to_pylist()
    assert sorted((r["n"], r["_run"], r["note"]) for r in found if r["note"] is not None) == [(3, 2, "2 3")]
    assert len(found) == 3


def test_a_column_may_be_called_what_a_query_calls_its_own(tmp_path: Path) -> None:
    made = pa.table({name: pa.array([1, 2, 3], pa.int64()) for name in ("f", "p", "pos", "file_path", "n")})
    lake = Lake(tmp_path, made.schema)
    lake.write(made)
    keys = made.select(["f"])
    lake.write(made.slice(0, 0), located(lake.table, lake.head, ["f"], keys.slice(0, 1)))
    assert sorted(lake.having(["f"], keys, ["p"])["p"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("lake", ["BIGINT"], indirect=True)
def test_the_rows_of_one_run_are_read_from_its_files(lake: Lake) -> None:
    for run in (1, 2, 3):
        lake.write(rows("BIGINT", [run, run + 10], run))
    found = duckdb_lookup.of_run(lake.table, lake.head, 2, ["n", "_run"])
    assert isinstance(found, pa.Table) and sorted(found["n"].to_pylist()) == [2, 12]


@pytest.mark.parametrize("lake", ["BIGINT"], indirect=True)
def test_what_is_too_large_is_refused_with_a_reason(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write(rows("BIGINT", list(range(50)), 1))
    keys = pa.table({"k": pa.array(range(-50, 0), pa.int64())})
    limited(monkeypatch, small_rows=49, found_times=1)
    assert "more than 49" in getattr(duckdb_lookup.having(lake.table, lake.head, ["k"], keys, ["n"]), "why", "")
    assert "50 rows" in getattr(duckdb_lookup.every(lake.table, lake.head, ["n"]), "why", "")
    limited(monkeypatch, decoded_rows=10)
    assert "decoded" in getattr(duckdb_lookup.having(lake.table, lake.head, ["k"], keys, ["n"]), "why", "")


@pytest.mark.parametrize("lake", ["BIGINT"], indirect=True)
def test_only_row_groups_in_whose_files_a_key_can_be_are_counted(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for run, first in enumerate((0, 100, 200), 1):
        lake.write(rows("BIGINT", list(range(first, first + 50)), run))
    limited(monkeypatch, row_group=16, decoded_rows=47)

    def found(*numbers: int | None) -> list[int] | None:
        keys = pa.table({"k": pa.array([None if n is None else n - 50 for n in numbers], pa.int64())})
        answer = duckdb_lookup.having(lake.table, lake.head, ["k"], keys, ["n"])
        return sorted(answer["n"].to_pylist()) if isinstance(answer, pa.Table) else None

    assert found(0, 220) == [0, 220], "two keys, two row groups of 16"
    assert found(0, 0, None, 220) == [0, 220], "a key is counted once"
    assert found(7, 70, 170, 900) == [7], "one key in a file, three between the files"
    assert found(0, 1, 2) is None, "three row groups are 48 rows"


@pytest.mark.parametrize("lake", ["BOOLEAN"], indirect=True)
def test_keys_that_share_their_first_column_are_counted_one_by_one(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write(rows("BOOLEAN", list(range(0, 100, 2)), 1))
    limited(monkeypatch, row_group=16, decoded_rows=47)

    def asked(*numbers: int) -> pa.Table:
        return pa.table({"k": [True] * len(numbers), "n": pa.array(numbers, pa.int64())})

    assert sorted(lake.having(["k", "n"], asked(2, 2, 4), ["n"])["n"].to_pylist()) == [2, 4]
    assert isinstance(duckdb_lookup.having(lake.table, lake.head, ["k", "n"], asked(2, 4, 6), ["n"]), duckdb_lookup.TooLarge)


def test_floating_point_keys_are_left_to_spark(tmp_path: Path) -> None:
    found = Lake(tmp_path, pa.schema([("k", pa.float64()), ("_run", pa.int64())]))
    found.write(pa.table({"k": [0.0, -0.0], "_run": pa.array([1, 1], pa.int64())}))
    answer = duckdb_lookup.having(found.table, found.head, ["k"], pa.table({"k": [0.0]}), ["k"])
    assert isinstance(answer, duckdb_lookup.TooLarge)


@pytest.mark.parametrize(
    ("keys", "stored", "here"),
    [
        pytest.param(200_000, 200_000, True, id="few keys"),
        pytest.param(200_001, 200_001 * 20, True, id="more, in a large table"),
        pytest.param(200_001, 200_001 * 20 - 1, False, id="more, in a table that is scanned as fast"),
        pytest.param(800_000, 10**9, True, id="as many as the driver may hold"),
        pytest.param(800_001, 10**9, False, id="too many"),
    ],
)
def test_many_keys_are_looked_up_here_where_a_scan_would_cost_more(keys: int, stored: int, here: bool) -> None:
    assert limits().worth(keys, stored) is here


def test_what_duckdb_cannot_hold_goes_to_the_systems_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with cursor() as db:
        [(place,)] = db.execute("SELECT current_setting('temp_directory')").fetchall()
    assert Path(place).parent == Path(tempfile.gettempdir())


@pytest.mark.parametrize("named", ["n", "File_Row_Number"])
def test_a_sample_of_many_rows_is_of_all_files_and_of_what_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    limited(monkeypatch, small_rows=50)
    made = Lake(tmp_path, rows("BIGINT", [], 0).rename_columns(["k", named, "_run", "note"]).schema)
    for start in (0, COUNT, 2 * COUNT):
        made.write(rows("BIGINT", list(range(start, start + COUNT)), 1).rename_columns(["k", named, "_run", "note"]))
    first, *_ = files_of(made.table, made.head).data
    made.write(
        rows("BIGINT", [], 1).rename_columns(["k", named, "_run", "note"]),
        pa.table({"file_path": [first.file_path] * 150, "pos": range(150)}),
    )
    hidden = {r[named] for r in made.table.scan(snapshot_id=made.head).to_arrow().to_pylist()} ^ set(range(3 * COUNT))
    assert len(hidden) == 150
    found = duckdb_lookup.of_run(made.table, made.head, 1, [named, "note"], sample=60)
    assert isinstance(found, pa.Table)
    numbers = found[named].to_pylist()
    assert 40 <= len(set(numbers)) == len(numbers) <= 60  # of the file with hidden rows some were drawn in vain
    assert not hidden & set(numbers)
    assert {n // COUNT for n in numbers} >= {0, 1, 2} - {n // COUNT for n in hidden}
    assert all(r["note"] == f"1 {r[named]}" for r in found.to_pylist())
