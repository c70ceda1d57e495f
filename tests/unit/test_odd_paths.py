"""Lakes in folders with odd names, and columns with the names that DuckDB gives its own."""

from pathlib import Path

import pyarrow as pa
import pytest
from hiding import located
from pyiceberg.table import Table
from sqlalchemy.engine import make_url

from rejoin.engines.deferred_relation import database
from rejoin.errors import SetupError
from rejoin.lake.compact import folding
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files, delete_file
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.row_addresses import paths, split
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.query import bounded_looks
from rejoin.lake.read import duckdb_lookup
from rejoin.statements.own_columns import PLACE

OWN = ["file_row_number", "filename", "file_index", "rowid", "f", "p", "pos", "file_path", "op", "n", "start", "source", "gone", "env"]
"""Names of columns that DuckDB or a query of ours has as well."""


class Stored:
    """A table in a lake, written and changed as small runs do: rows 0 to 9 of run 1, of which 3 is hidden, and row 10 of run 2."""

    def __init__(self, lake: Path, names: list[str]) -> None:
        self.config = lake_config(str(lake))
        self.refs = Refs(self.config, "t")
        self.refs.ensure_namespace()
        self.names = names
        self.refs.create("rows", self._rows([]).schema, {})
        base = self.refs.empty("rows")
        first = self.refs.commit_files("rows", "b1", base, data_files(self.refs.require("rows", base), self._rows(range(10))))
        keys = pa.table({names[0]: [self._value(names[0], 3)]})
        gone = delete_file(self.table(first), located(self.table(first), first, names[:1], keys))
        self.head = self.refs.commit_files("rows", "b2", first, data_files(self.table(first), self._rows([10], 2)), [gone])

    def table(self, snapshot_id: int | None = None) -> Table:
        return self.refs.require("rows", self.head if snapshot_id is None else snapshot_id)

    def having(self, snapshot_id: int, numbers: list[int], columns: list[str]) -> pa.Table:
        keys = pa.table({self.names[0]: [self._value(self.names[0], n) for n in numbers]})
        found = duckdb_lookup.having(self.table(snapshot_id), snapshot_id, [self.names[0]], keys, columns)
        assert isinstance(found, pa.Table), found
        return found

    def places(self) -> dict[str, tuple[int, int]]:
        """The rows in the file of every row, and its position there, by its first column, as a statement over the files says it."""
        table = self.table()
        with database().cursor() as connection:
            found = connection.sql(duckdb_lookup.text_of(table, self.head, [self.names[0], PLACE])).to_arrow_table()
        counts = {file.file_path: file.record_count for file in files_of(table, self.head).data}
        places = split(found[PLACE].to_numpy(), paths(files_of(table, self.head).data)).to_pylist()
        keys = found[self.names[0]].to_pylist()
        return {key: (counts[at["file_path"]], at["pos"]) for key, at in zip(keys, places, strict=True)}

    def expected(self, numbers: list[int]) -> list[dict[str, object]]:
        return [{**{n: self._value(n, i) for n in self.names}, "_run": 2 if i == 10 else 1} for i in numbers]

    def _rows(self, numbers: object, run: int = 1) -> pa.Table:
        count = list(numbers)  # type: ignore[call-overload]
        columns = {name: pa.array([self._value(name, n) for n in count], pa.string()) for name in self.names}
        bookkeeping = {"_run": pa.array([run] * len(count), pa.int64()), "_op": pa.array(["I"] * len(count), pa.string())}
        return pa.table({**columns, **bookkeeping})

    @staticmethod
    def _value(name: str, number: int) -> str:
        return f"{name} {number:02}"


def check(stored: Stored) -> None:
    """Every way in which this process reads the table."""
    left = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    columns = [*stored.names, "_run"]
    everything = duckdb_lookup.every(stored.table(), stored.head, columns)
    assert isinstance(everything, pa.Table)
    assert sorted(everything.to_pylist(), key=lambda r: str(r[stored.names[0]])) == stored.expected(left)
    assert stored.having(stored.head, [2, 3, 10], columns).sort_by(stored.names[0]).to_pylist() == stored.expected([2, 10])
    run = duckdb_lookup.of_run(stored.table(), stored.head, 2, columns)
    assert isinstance(run, pa.Table) and run.to_pylist() == stored.expected([10])
    assert bounded_looks.live_rows(stored.table(), stored.head, [stored.names[0]]) == len(left)
    assert stored.places() == {stored.expected([n])[0][stored.names[0]]: (10 if n < 10 else 1, n % 10) for n in left}
    done = folding.fold(stored.table(), stored.head, [stored.names[0]], None)
    assert done is not None and not done.kept.data and not done.deletes
    folded = stored.refs.commit_rewrite("rows", "b3", stored.head, done)
    found = stored.table(folded).scan(snapshot_id=folded).to_arrow().select(columns)
    assert found.to_pylist() == stored.expected(left)


@pytest.mark.parametrize("folder", ["env=prod", "file_row_number=7/n=3", "_run=9"])
def test_fault_a3_a_folder_that_looks_like_a_partition_is_no_column(tmp_path: Path, folder: str) -> None:
    check(Stored(tmp_path / folder, ["env", "n"]))


def test_fault_a3_files_are_read_by_the_one_scan_that_knows_the_options() -> None:
    places = [path for path in Path("include").rglob("*.py") if "read_parquet(" in path.read_text() or "parquet_scan" in path.read_text()]
    assert [p.name for p in places if "def _read_parquet" not in p.read_text()] == ["duckdb_scan.py"]
    text = Path("include/rejoin/lake/read/duckdb_scan.py").read_text()
    assert text.count("read_parquet(") == 1 and not any("read_csv" in p.read_text() for p in Path("include").rglob("*.py"))


@pytest.mark.parametrize("first", OWN)
def test_fault_a11_a_column_may_have_a_name_that_duckdb_gives_its_own(tmp_path: Path, first: str) -> None:
    check(Stored(tmp_path, [first, *(n for n in OWN if n != first)]))


def test_fault_a11_a_column_called_as_duckdbs_row_number_in_capitals(tmp_path: Path) -> None:
    check(Stored(tmp_path, ["k", "File_Row_Number"]))


ODD = [
    "a b",
    "a%20b",
    "100%",
    "a#b",
    "a?b",
    "a+b",
    "a=b",
    "a;b",
    "a&b,c",
    "a:b",
    "é日🙂",
    "it's",
    'a"b',
    "[x]",
    "a*",
    "{a,b}",
    "~",
    "$HOME",
    "a!|<>^@",
    " a",
    "a ",
]


@pytest.mark.parametrize("folder", ODD)
def test_fault_a5_a_lake_is_in_the_folder_that_was_named(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    decoys = [Stored(home / name / "lake", ["k"]) for name in ("x", "ab", "b")] if folder in ("[x]", "a?b", "a*", "{a,b}") else []
    stored = Stored(home / folder / "lake", ["k", "env"])
    check(stored)
    assert {p.name for p in home.iterdir()} == {folder, *({"x", "ab", "b"} if decoys else set())}, "something is beside the folder"
    files = {p.suffix for p in (home / folder).rglob("*") if p.is_file()}
    assert {".parquet", ".avro", ".json", ".db"} <= files
    for url in (stored.config.uri, stored.config.ledger):
        place = make_url(url).database
        assert place is not None and Path(place).parent == home / folder / "lake" and not make_url(url).query


@pytest.mark.parametrize("prefix", ["", "file://", "file:"])
def test_fault_a5_a_warehouse_that_a_lake_file_names_is_taken_as_it_is_written(tmp_path: Path, prefix: str) -> None:
    warehouse, file = tmp_path / "a b%20#c?" / "wh", tmp_path / "my lake.toml"
    file.write_text(f'catalog = "sqlite"\nuri = "sqlite:///{tmp_path}/a%20b.db"\nwarehouse = "{prefix}{warehouse}"\n')
    check(Stored(file, ["k"]))
    assert list(warehouse.rglob("*.parquet")) and (tmp_path / "a b.db").is_file()
    assert {p.name for p in tmp_path.iterdir()} - {"a b.db-wal", "a b.db-shm"} == {"a b%20#c?", "my lake.toml", "a b.db"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("", "the path of the lake is empty", id="nothing"),
        pytest.param("  ", "the path of the lake is empty", id="blanks"),
        pytest.param("{tmp}/a\nb", "cannot be used", id="a line feed"),
        pytest.param("{tmp}/a\\b", "cannot be used", id="a backslash"),
        pytest.param("{tmp}/a\udcffb", "cannot be used", id="no UTF-8"),
        pytest.param("{tmp}/file", "cannot be at", id="a file"),
        pytest.param("{tmp}/file/lake", "cannot be at", id="below a file"),
        pytest.param("/proc/rejoin", "cannot be at", id="nobody may write there"),
        pytest.param("{tmp}/" + "x" * 300, "cannot be at", id="too long a name"),
        pytest.param("~nobody-of-this-name/lake", "cannot be at", id="a home of nobody"),
        pytest.param("{tmp}/none.toml", "does not exist", id="no lake file"),
        pytest.param("{tmp}/folder.toml", "does not exist", id="a folder for a lake file"),
        pytest.param("{tmp}/broken.toml", "is no TOML: line 1", id="a lake file that is broken"),
        pytest.param("{tmp}/binary.toml", "is no text in UTF-8", id="a lake file that is no text"),
        pytest.param("{tmp}/kinds.toml", "warehouse, spark is of another kind", id="settings of another kind"),
        pytest.param("{tmp}/relative.toml", "is no whole path: warehouse", id="a relative warehouse"),
        pytest.param("{tmp}/host.toml", "is no whole path: file://host/warehouse", id="a warehouse on another machine"),
        pytest.param("{tmp}/url.toml", "named by no URL", id="a database that cannot be"),
        pytest.param("{tmp}/other.toml", "named by no URL", id="a kind of database that cannot be"),
    ],
)
def test_fault_b_a_path_that_can_be_no_lake_is_refused_and_nothing_is_written(tmp_path: Path, path: str, message: str) -> None:
    texts = {
        "file": "x",
        "broken.toml": 'uri = "secret\nx = 1',
        "kinds.toml": 'catalog = "sqlite"\nwarehouse = 5\nuri = "x"\nspark = "y"\n',
        "relative.toml": 'catalog = "sqlite"\nuri = "sqlite:///x.db"\nwarehouse = "warehouse"\n',
        "host.toml": 'catalog = "sqlite"\nuri = "sqlite:///x.db"\nwarehouse = "file://host/warehouse"\n',
        "url.toml": 'uri = "secret"\nwarehouse = "/w"\n',
        "other.toml": 'uri = "mongo://me:secret@host/db"\nwarehouse = "/w"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SetupError) as refused:
        lake_config(path.replace("{tmp}", str(tmp_path)))
    assert message in refused.value.what and refused.value.exit_code == 5 and "secret" not in str(refused.value)
    assert str(refused.value).isprintable() or "\n" in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_fault_b_a_catalog_that_is_no_database_is_refused(tmp_path: Path) -> None:
    config = lake_config(str(tmp_path / "lake"))
    (tmp_path / "lake" / "catalog.db").write_text("this is no database, but long enough to have a header of one " * 3)
    with pytest.raises(SetupError, match=r"catalog\.db cannot be used"):
        Refs(config, "t")
    (tmp_path / "lake" / "ledger.db").mkdir()
    with pytest.raises(SetupError, match=r"ledger\.db cannot be used"):
        Ledger(config.ledger, "t")
