"""Bounds of data files: a manifest says nothing of a column that does not hold for every row, whoever wrote it, and lookups and folds know it."""

from pathlib import Path

import pyarrow as pa
import pytest
from file_bounds import of_snapshot, stored_files
from limited import limited
from pyiceberg.expressions import AlwaysTrue, GreaterThan
from pyiceberg.table import Table

from rejoin.lake.compact import folding
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.iceberg.commits import data_files
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import bounds, files_of, unique
from rejoin.lake.read import duckdb_lookup

LONG, SHORT = "z" * 5_000, 8_192
VALUES = pa.struct([("note", pa.string()), ("n", pa.int64())])
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("_run", pa.int64()),
        ("note", pa.string()),
        ("raw", pa.binary()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("_before", VALUES),
    ]
)
PROPERTIES = {"write.parquet.row-group-limit": str(SHORT), "write.metadata.metrics.column.key": "full"}


def rows(keys: list[str], run: int = 1, note: str = "a") -> pa.Table:
    values = [
        {"key": k, "_run": run, "note": note, "raw": note.encode(), "n": i, "d": float(i), "_before": {"note": k, "n": i}}
        for i, k in enumerate(keys)
    ]
    return pa.Table.from_pylist(values, SCHEMA)


def numbered(start: int, end: int) -> list[str]:
    return [f"k{i:06d}" for i in range(start, end)]


class Lake:
    """A table, written as rejoin writes small runs, or (``old``) as it did before its bounds were right."""

    def __init__(self, root: Path) -> None:
        self.refs = Refs(lake_config(str(root)), "t")
        self.refs.ensure_namespace()
        self.refs.create("rows", SCHEMA, PROPERTIES)
        self.head, self._writes = self.refs.empty("rows"), 0

    @property
    def table(self) -> Table:
        return self.refs.require("rows", self.head)

    def write(self, added: pa.Table) -> None:
        self._writes += 1
        self.head = self.refs.commit_files("rows", f"b{self._writes}", self.head, data_files(self.table, added))

    def old(self, added: pa.Table) -> None:
        self.table.append(added)
        found = self.refs.table("rows")
        assert found is not None
        self.head = found.metadata.current_snapshot_id or 0

    def fold(self, versions: folding.Versions | None = None) -> folding.Folded:
        done = folding.fold(self.table, self.head, ["key"], versions)
        assert done is not None
        self.head = self.refs.commit_rewrite("rows", "folded", self.head, done)
        return done

    def keys(self) -> list[str]:
        return sorted(self.table.scan(row_filter=AlwaysTrue(), snapshot_id=self.head).to_arrow()["key"].to_pylist())

    def above_z(self, column: str = "key") -> int:
        above = GreaterThan(column, "yy")  # type: ignore[call-arg, arg-type]  # pydantic hides the positional form from mypy
        return self.table.scan(row_filter=above, snapshot_id=self.head).to_arrow().num_rows

    def looked_up(self, key: str) -> int:
        found = duckdb_lookup.having(self.table, self.head, ["key"], pa.table({"key": [key]}), ["key"])
        assert isinstance(found, pa.Table)
        return found.num_rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.mark.parametrize("place", ["first", "last"])
def test_fault_a1_a_row_group_with_a_value_too_long_for_parquets_statistics_leaves_the_columns_of_its_file_without_bounds(
    lake: Lake, place: str
) -> None:
    short, long = rows(numbered(0, SHORT)), rows([LONG, "zz"], note=LONG)
    lake.write(pa.concat_tables([short, long] if place == "last" else [long, short]).combine_chunks())
    assert of_snapshot(lake.table, lake.head) == []
    [file] = stored_files(lake.table, lake.head)
    ids = {f.name: f.field_id for f in lake.table.schema().fields}
    assert {ids["key"], ids["note"], ids["raw"]}.isdisjoint({*file.lower_bounds, *file.upper_bounds})
    assert {ids["_run"], ids["n"], ids["d"]} <= set(file.lower_bounds) & set(file.upper_bounds)
    assert lake.above_z() == 2 and lake.above_z("note") == 2
    assert lake.looked_up(LONG) == 1


def test_fault_a1_a_row_group_of_nulls_only_does_not_cost_a_column_its_bounds(lake: Lake) -> None:
    nulls = pa.Table.from_pylist([{"key": f"n{i}", "_run": 1} for i in range(3)], SCHEMA)
    lake.write(pa.concat_tables([rows(numbered(0, SHORT)), nulls]).combine_chunks())
    [file] = files_of(lake.table, lake.head).data
    assert bounds(lake.table, file, "note") == ("a", "a") and bounds(lake.table, file, "n") == (0, SHORT - 1)
    assert of_snapshot(lake.table, lake.head) == []


@pytest.mark.parametrize(
    ("text", "above"),
    [
        pytest.param("a" * 15 + "\ud7ff" + "b", "a" * 15 + "\ue000", id="surrogates are no characters"),
        pytest.param("a" * 15 + "\U0010ffff" + "b", "a" * 14 + "b", id="nothing is above the last character"),
        pytest.param("\U0010ffff" * 17, None, id="nothing of that length is above"),
        pytest.param("a" * 16, "a" * 16, id="short enough"),
    ],
)
def test_fault_a1_a_shortened_upper_bound_is_a_text_above_the_value_or_is_left_out(lake: Lake, text: str, above: str | None) -> None:
    lake.write(rows(["k"], note=text))
    [file] = stored_files(lake.table, lake.head)
    note, raw = (lake.table.schema().find_field(c).field_id for c in ("note", "raw"))
    assert file.upper_bounds.get(note) == (None if above is None else above.encode())
    assert file.lower_bounds[note].decode() == text[:16]
    assert file.lower_bounds[raw] == text.encode()[:16] and file.upper_bounds.get(raw, b"\xff") >= text.encode()
    assert of_snapshot(lake.table, lake.head) == []


def test_fault_a1_bytes_that_end_in_the_last_byte_are_shortened_upwards_too(lake: Lake) -> None:
    raw = lake.table.schema().find_field("raw").field_id
    values = {b"a" * 14 + b"\xff" * 3: b"a" * 13 + b"b", b"\xff" * 17: None}
    for value, above in values.items():
        lake.write(pa.Table.from_pylist([{"key": "k", "_run": 1, "raw": value}], SCHEMA))
        [file] = [f for f in stored_files(lake.table, lake.head) if f.lower_bounds[raw] == value[:16]]
        assert file.upper_bounds.get(raw) == above
    assert of_snapshot(lake.table, lake.head) == []


def test_fault_a1_bounds_of_texts_that_an_older_rejoin_wrote_are_not_trusted_and_numbers_are(lake: Lake) -> None:
    lake.old(rows([*numbered(0, SHORT), LONG]))
    lake.write(rows(["new"], run=2))
    assert "rows: column key of a file of 8193 rows: a bound that does not hold" in of_snapshot(lake.table, lake.head)
    assert lake.looked_up(LONG) == 1
    files = files_of(lake.table, lake.head).data
    assert [bounds(lake.table, f, "key") for f in files] == [None, None]
    assert sorted(bounds(lake.table, f, "_run") or () for f in files) == [(1, 1), (2, 2)]
    assert not unique(lake.table, files, "key") and not column_bounds.exact(lake.table, lake.head)


def test_fault_a1_a_compaction_repairs_the_bounds_of_files_that_it_leaves_where_they_are(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, base_rows=1_000)
    lake.old(rows([*numbered(0, SHORT), LONG]))
    lake.old(rows([f"p{i:06d}" for i in range(2_000)]))
    before = {f.file_path for f in stored_files(lake.table, lake.head)}
    assert lake.above_z() == 0 and folding.todo(lake.table, lake.head, ["key"])
    repaired = folding.with_exact_bounds(lake.table, lake.head)
    lake.head = lake.refs.commit_rewrite("rows", "repaired", lake.head, repaired)
    assert {f.file_path for f in stored_files(lake.table, lake.head)} == before
    assert of_snapshot(lake.table, lake.head) == [] and column_bounds.exact(lake.table, lake.head)
    assert lake.above_z() == 1
    small = [f for f in files_of(lake.table, lake.head).data if f.record_count == 2_000]
    assert [bounds(lake.table, f, "key") for f in small] == [("p000000", "p001999")]  # what held is kept
    lake.write(rows(["zz"], run=2))
    assert column_bounds.exact(lake.table, lake.head)


@pytest.mark.parametrize("old", [True, False])
def test_fault_a1_a_fold_by_key_range_loses_no_row_whose_key_is_beyond_what_the_manifest_says(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    limited(monkeypatch, base_rows=1_000)
    write = lake.old if old else lake.write
    write(rows([*numbered(0, SHORT), LONG]))  # by its bounds all below p
    write(rows([f"p{i:06d}" for i in range(2_000)]))
    lake.write(rows([*numbered(0, SHORT), *(f"p{i:06d}" for i in range(2_000)), "zz"], run=2, note="b"))
    expected = sorted({*lake.keys()})
    for _ in range(2):
        lake.fold(folding.Versions(alive="true"))
        assert lake.keys() == expected
        assert of_snapshot(lake.table, lake.head) == []
    assert lake.looked_up(LONG) == 1 and len(expected) == SHORT + 2_002
