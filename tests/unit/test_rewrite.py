"""An output and its changes in one pass, against PyIceberg's own reader: what is written, what is hidden, and what is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoin.engines.deferred_relation import database
from rejoin.errors import InvariantBroken
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg import row_addresses
from rejoin.lake.iceberg.commits import data_files
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.write import output_changes
from rejoin.statements.own_columns import PLACE

ROW = pa.schema([("k", pa.int64()), ("note", pa.string()), ("_run", pa.int64()), ("_hash", pa.binary())])
IMAGE = pa.struct([("k", pa.int64()), ("note", pa.string()), ("_hash", pa.binary())])
LOG = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("k", pa.int64()), ("_before", IMAGE), ("_after", IMAGE)])
CHANGES = LOG.append(pa.field(PLACE, pa.int64()))


def row(key: int, run: int) -> dict[str, Any]:
    return {"k": key, "note": f"{key} 'of' {run}", "_run": run, "_hash": bytes([key % 256, run])}


def image(key: int, run: int) -> dict[str, Any]:
    return {name: value for name, value in row(key, run).items() if name != "_run"}


class Lake:
    """An output of 30 rows in three files of the first run, and its changes table."""

    def __init__(self, root: Path) -> None:
        self.refs = Refs(lake_config(str(root)), "t")
        self.refs.ensure_namespace()
        self.refs.create("rows", ROW, {})
        self.refs.create("changes", LOG, {})
        self.base = self.refs.empty("rows")
        for at in range(3):
            made = pa.Table.from_pylist([row(key, 1) for key in range(at * 10, at * 10 + 10)], ROW)
            files = data_files(self.refs.require("rows", self.base), made)
            self.base = self.refs.commit_files("rows", f"b{at}", self.base, files)

    def places(self) -> dict[int, int]:
        """Where each row lies, as a run's statement says it."""
        table = self.refs.require("rows", self.base)
        with database().cursor() as connection:
            found = connection.sql(duckdb_lookup.text_of(table, self.base, ["k", PLACE])).to_arrow_table()
        return dict(zip(found["k"].to_pylist(), found[PLACE].to_pylist(), strict=True))

    def stored(self, name: str, snapshot: int) -> list[dict[str, Any]]:
        found = self.refs.require(name, snapshot).scan(snapshot_id=snapshot).to_arrow()
        return sorted(found.to_pylist(), key=lambda r: int(r["k"]))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def change(op: str, key: int, place: int | None) -> dict[str, Any]:
    before, after = image(key, 1) if op != "I" else None, image(key, 2) if op != "D" else None
    return {"_run": 2, "_op": op, "k": key, "_before": before, "_after": after, PLACE: place}


def batches(changes: list[dict[str, Any]], size: int) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_pylist(changes, CHANGES).to_batches(max_chunksize=size)


def test_a_place_is_the_same_to_a_lookup_and_a_statement_and_names_file_and_position(lake: Lake) -> None:
    table, known = lake.refs.require("rows", lake.base), lake.places()
    found = duckdb_lookup.having(
        table, lake.base, ["k"], pa.table({"k": [4, 15, 29]}), ["k", PLACE]
    )  # of files that are left out none is counted
    assert isinstance(found, pa.Table)
    assert dict(zip(found["k"].to_pylist(), found[PLACE].to_pylist(), strict=True)) == {k: known[k] for k in (4, 15, 29)}
    paths = row_addresses.paths(files_of(table, lake.base).data)
    for key in (4, 15, 29):
        [at] = row_addresses.split(pa.array([known[key]]).to_numpy(), paths).to_pylist()
        assert pq.read_table(at["file_path"].removeprefix("file://"))["k"][at["pos"]].as_py() == key


@pytest.mark.parametrize("size", [1, 3, 100])
def test_one_pass_writes_the_changes_and_the_rows_that_they_make(lake: Lake, size: int) -> None:
    known = lake.places()
    ops = {2: "U", 9: "D", 10: "D", 19: "U", 25: "U", 40: "I", 41: "I"}
    changes = [change(op, key, known.get(key)) for key, op in ops.items()]
    output, log = lake.refs.require("rows", lake.base), lake.refs.require("changes", lake.refs.empty("changes"))
    work = output_changes.ChangesOf(log, output, ["k", "note"])
    made = output_changes.together([work(batches(some, size)) for some in (changes[:3], changes[3:])])
    logged = lake.refs.commit_files("changes", "log", lake.refs.empty("changes"), made.log)
    assert lake.stored("changes", logged) == [{k: v for k, v in one.items() if k != PLACE} for one in changes]
    deletes = output_changes.deletes(output, lake.base, made.gone, 5, 2)
    after = lake.refs.commit_files("rows", "after", lake.base, made.added, deletes)
    expected = {key: row(key, 1) for key in range(30)} | {key: row(key, 2) for key in ops}
    assert lake.stored("rows", after) == [expected[key] for key in sorted(expected) if ops.get(key) != "D"]


def test_files_of_deletes_are_of_so_many_rows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_changes, "DELETES", 2)
    known, output = lake.places(), lake.refs.require("rows", lake.base)
    gone = [pa.array([known[key] for key in (29, 3, 11)]), pa.array([known[4], known[5]])]
    deletes = output_changes.deletes(output, lake.base, gone, 5, 2)
    assert [file.record_count for file in deletes] == [2, 2, 1]
    after = lake.refs.commit_files("rows", "after", lake.base, [], deletes)
    assert [r["k"] for r in lake.stored("rows", after)] == [k for k in range(30) if k not in (3, 4, 5, 11, 29)]


@pytest.mark.parametrize(
    ("places", "keys"),
    [
        ([1, 2, None], 3),  # a key without a row
        ([1, 2, 2], 3),  # two keys with one row
        ([1, 2, 3], 2),  # a key with two rows
        ([], 1),
    ],
)
def test_rows_that_are_not_one_for_each_changed_key_stop_the_run(lake: Lake, places: list[int | None], keys: int) -> None:
    output = lake.refs.require("rows", lake.base)
    with pytest.raises(InvariantBroken, match=f"{len(set(places) - {None})} rows for {keys} changed keys in run 2; nothing was committed"):
        output_changes.deletes(output, lake.base, [pa.array(places, pa.int64())], keys, 2)
    assert output_changes.deletes(output, lake.base, [], 0, 2) == []
