"""Which snapshots and files of a table go, and that whatever a branch, a tag or somebody else needs stays."""

import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from file_bounds import stored_files
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile

from rejoin.errors import RunSuperseded
from rejoin.lake.compact import expiry
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import SnapshotContents, data_files, delete_file, refs_of
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, files_of

NOW, OLD, YOUNG = timedelta(0), timedelta(days=4), timedelta(days=2)
LIMIT = timedelta(days=3)


class Made:
    """A table ``rows`` whose snapshots and files have letters: snapshot and file ``a`` came together, and hold the row ``a``."""

    def __init__(self, root: Path) -> None:
        self.refs = Refs(lake_config(str(root)), "t")
        self.refs.ensure_namespace()
        self.refs.create("rows", letters("").schema, {})
        self.snapshots = {"": self.refs.empty("rows")}
        self.files: dict[str, str] = {}

    @property
    def table(self) -> Table:
        found = self.refs.table("rows")
        assert found is not None
        return found

    @property
    def directory(self) -> Path:
        return Path(self.table.location().removeprefix("file://"))

    def append(self, letter: str, base: str) -> None:
        """A snapshot that has one more file than another."""
        self._remember(letter, self.refs.commit_files("rows", f"to_{letter}", self.snapshots[base], self._written(letter)))

    def rewrite(self, letter: str, base: str, keeps: str) -> None:
        """A snapshot with some of the files of another, and a new one."""
        files = files_of(self.table, self.snapshots[base])
        kept = tuple(e for e in files.data_entries if e.data_file.file_path in {self.files[k] for k in keeps})
        holds = SnapshotContents(SnapshotFiles(kept, files.delete_entries), self._written(letter))
        self._remember(letter, self.refs.commit_rewrite("rows", f"to_{letter}", self.snapshots[base], holds))

    def hide(self, letter: str, base: str, hidden: str) -> None:
        """A snapshot in which a row of another is deleted: its file is one of deletes."""
        rows = pa.table({"file_path": [self.files[hidden]], "pos": pa.array([0], pa.int64())})
        deletes = [delete_file(self.table, rows)]
        self.files[letter] = deletes[0].file_path
        self._remember(letter, self.refs.commit_files("rows", f"to_{letter}", self.snapshots[base], [], deletes))

    def show(self, letter: str) -> None:
        """``main`` shows a snapshot."""
        with refs_of(self.table) as changes:
            changes.set_current_snapshot(self.snapshots[letter])

    def free(self, kept: str, ours: Callable[[], None] = lambda: None, before: timedelta = LIMIT) -> dict[str, int]:
        return expiry.free(self.refs, "rows", {self.snapshots[k] for k in kept}, datetime.now(UTC) - before, ours)

    def stored(self) -> str:
        """The snapshots that are there."""
        names = {i: letter for letter, i in self.snapshots.items()}
        return "".join(sorted(names[s.snapshot_id] for s in self.table.metadata.snapshots))

    def data(self) -> str:
        """The data and delete files that are there."""
        there = {p.name for p in (self.directory / "data").iterdir()}
        return "".join(sorted(letter for letter, path in self.files.items() if path.rpartition("/")[2] in there))

    def rows(self, letter: str) -> str:
        return "".join(sorted(self.table.scan(snapshot_id=self.snapshots[letter]).to_arrow()["letter"].to_pylist()))

    def _written(self, letter: str) -> Any:
        made = data_files(self.table, letters(letter))
        self.files[letter] = made[0].file_path
        return made

    def _remember(self, letter: str, snapshot_id: int) -> None:
        self.snapshots[letter] = snapshot_id
        with refs_of(self.table) as changes:
            changes.remove_branch(f"to_{letter}")


def letters(some: str) -> pa.Table:
    return pa.table({"letter": pa.array(list(some), pa.string())})


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """``main`` shows d; x is what an attempt left that lost."""
    table = Made(tmp_path)
    table.append("a", "")
    table.append("b", "a")
    table.append("x", "a")
    table.rewrite("c", "b", keeps="b")
    table.hide("d", "c", hidden="c")
    table.show("d")
    return table


def exactly_what_is_needed(made: Made) -> None:
    """No file is there but what the snapshots need, by PyIceberg's own reading, and metadata."""
    table, needed = made.table, set()
    for snapshot in table.metadata.snapshots:
        needed |= {snapshot.manifest_list, *(m.manifest_path for m in snapshot.manifests(table.io))}
        needed |= {file.file_path for file in stored_files(table, snapshot.snapshot_id)}
    there = {f"file://{p}" for p in made.directory.rglob("*") if p.is_file() and not p.name.endswith(".metadata.json")}
    assert there == needed


@pytest.mark.parametrize(
    ("kept", "branches", "tags", "stored", "files"),
    [
        pytest.param("", "", "", "d", "bcd", id="what main shows stays, with files that older snapshots have written"),
        pytest.param("d", "", "", "d", "bcd", id="what is shown and kept"),
        pytest.param("ad", "", "", "ad", "abcd", id="a snapshot before that has a file that is not in the newest"),
        pytest.param("", "x", "", "dx", "abcdx", id="the branch of an open run"),
        pytest.param("", "", "b", "bd", "abcd", id="a tag"),
        pytest.param("c", "", "", "cd", "bcd", id="rows that are deleted later"),
        pytest.param("abcdx", "", "", "abcdx", "abcdx", id="everything"),
    ],
)
def test_snapshots_that_nobody_needs_go_with_the_files_that_only_they_need(
    made: Made, kept: str, branches: str, tags: str, stored: str, files: str
) -> None:
    with refs_of(made.table) as changes:
        for letter in branches:
            changes.create_branch(made.snapshots[letter], f"run_7_{letter}")
        for letter in tags:
            changes.create_tag(made.snapshots[letter], f"run_{letter}")
    before = {letter: made.rows(letter) for letter in stored}
    counts = made.free(kept)
    assert (made.stored(), made.data()) == (stored, files)
    assert {letter: made.rows(letter) for letter in stored} == before
    assert counts == {"snapshots": 5 - len(stored), "files": 5 - len(files), "orphans": 0}
    exactly_what_is_needed(made)
    assert made.free(kept) == {"snapshots": 0, "files": 0, "orphans": 0}


@pytest.mark.parametrize(
    ("name", "age", "stays"),
    [
        ("data/stray.parquet", OLD, False),
        ("data/stray.parquet", YOUNG, True),
        ("metadata/stray-m0.avro", OLD, False),
        ("metadata/stray.metadata.json", OLD, False),
        ("stray", OLD, False),
        ("data/part=1/stray.parquet", OLD, False),
        ("data/_temporary/stray.parquet", OLD, True),
        ("data/.hidden", OLD, True),
        ("data/_SUCCESS", OLD, True),
        ("data/.stray.parquet.crc", OLD, False),
        ("data/.{known}.crc", OLD, True),
        ("elsewhere/{known}", OLD, True),
    ],
)
def test_old_files_that_no_snapshot_knows_go_and_those_that_iceberg_leaves_alone_stay(
    made: Made, name: str, age: timedelta, stays: bool
) -> None:
    known = made.files["b"].rpartition("/")[2]
    stray = made.directory / name.format(known=known)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"left by a crash")
    everything = [p for p in made.directory.rglob("*") if p.is_file()]
    for file in everything:
        aged(file, OLD)
    aged(stray, age)
    assert made.free("abcdx") == {"snapshots": 0, "files": 0, "orphans": 0 if stays else 1}
    # Of metadata an expiry deletes nothing but what no log names any more.
    assert [p for p in everything if not p.exists()] == ([] if stays else [stray])


def test_files_of_statistics_stay_with_their_snapshot_and_go_after_it(made: Made) -> None:
    found = {letter: made.directory / "metadata" / f"{letter}.stats" for letter in "ad"}
    of_partitions = {letter: made.directory / "metadata" / f"{letter}.parquet" for letter in "ad"}
    for file in (*found.values(), *of_partitions.values()):
        file.write_bytes(b"statistics")
        aged(file, OLD)
    with made.table.update_statistics() as update:
        for letter, file in found.items():
            at = {"snapshot-id": made.snapshots[letter], "statistics-path": f"file://{file}", "file-size-in-bytes": 10}
            update.set_statistics(StatisticsFile.model_validate({**at, "file-footer-size-in-bytes": 1, "blob-metadata": []}))
    metadata = made.table.metadata
    for letter, file in of_partitions.items():
        at = {"snapshot-id": made.snapshots[letter], "statistics-path": f"file://{file}", "file-size-in-bytes": 10}
        metadata.partition_statistics.append(PartitionStatisticsFile.model_validate(at))
    made.free("d")
    assert [s.snapshot_id for s in made.table.metadata.statistics] == [made.snapshots["d"]]
    assert [s.snapshot_id for s in made.table.metadata.partition_statistics] == [made.snapshots["d"]]
    there = {p.name for p in (made.directory / "metadata").iterdir()}
    assert there & {"a.stats", "d.stats", "a.parquet", "d.parquet"} == {"d.stats", "d.parquet"}


def superseded() -> None:
    raise RunSuperseded("another process has taken our place")


def test_who_has_lost_its_place_drops_nothing(made: Made) -> None:
    with pytest.raises(RunSuperseded):
        made.free("", superseded)
    assert (made.stored(), made.data()) == ("abcdx", "abcdx")


def test_what_others_commit_while_we_stand_still_stays(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at the last moment before the commit, gone on when others have taken over and made runs: these do not count as kept."""
    commit_table, asked = type(made.table.catalog).commit_table, list[str]()

    def overtaken(catalog: Any, *args: Any) -> object:
        if not asked:
            asked.append("others came")
            made.append("e", "d")
            made.rewrite("f", "e", keeps="b")
            made.show("f")
            raise CommitFailedException("the table's row has changed since it was read")
        return commit_table(catalog, *args)

    def ours() -> None:
        if asked:
            superseded()
        monkeypatch.setattr(type(made.table.catalog), "commit_table", once)

    def once(catalog: Any, *args: Any) -> object:
        monkeypatch.setattr(type(made.table.catalog), "commit_table", commit_table)
        return overtaken(catalog, *args)

    with pytest.raises(RunSuperseded):
        made.free("d", ours)
    assert asked and (made.stored(), made.data()) == ("abcdefx", "abcdefx")


def test_what_others_commit_before_files_are_deleted_can_be_read(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    delete, others = expiry._delete, list[str]()

    def stopped(*args: Any) -> int:
        if not others:
            others.append("came")
            made.append("e", "d")
            made.rewrite("f", "e", keeps="b")
            made.show("f")
        return delete(*args)

    monkeypatch.setattr(expiry, "_delete", stopped)
    made.free("d")
    assert others and made.stored() == "def"
    assert {letter: made.rows(letter) for letter in "def"} == {"d": "b", "e": "be", "f": "bf"}
    exactly_what_is_needed(made)


def test_a_file_that_is_gone_already_is_no_mistake(made: Made) -> None:
    Path(made.files["x"].removeprefix("file://")).unlink()
    assert made.free("d")["snapshots"] == 4
    exactly_what_is_needed(made)


@pytest.mark.parametrize("number", range(12))
def test_after_any_history_every_snapshot_that_stays_reads_as_before_and_nothing_else_is_there(
    number: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    chance = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}")
    made, alphabet = Made(tmp_path), iter("abcdefghijklmnopqrstuvwxyz")
    for letter in [next(alphabet) for _ in range(chance.randint(3, 12))]:
        base = chance.choice(sorted(made.snapshots))
        live = [k for k in made.files if k in (made.rows(base) if base else "")]
        if live and chance.random() < 0.4:
            made.rewrite(letter, base, keeps="".join(chance.sample(live, chance.randrange(len(live) + 1))))
        elif live and chance.random() < 0.4:
            made.hide(letter, base, hidden=chance.choice(live))
        else:
            made.append(letter, base)
        if chance.random() < 0.3:
            with refs_of(made.table) as changes:
                changes.create_tag(made.snapshots[letter], f"run_{letter}")
        if chance.random() < 0.3:
            made.show(letter)
        if chance.random() < 0.2:
            made.free("".join(chance.sample(sorted(made.snapshots), chance.randrange(len(made.snapshots)))), before=NOW)
            made.snapshots = {k: i for k, i in made.snapshots.items() if made.table.snapshot_by_id(i)}
    kept = chance.sample(sorted(made.snapshots), chance.randrange(len(made.snapshots) + 1))
    named = {ref.snapshot_id for ref in made.table.refs().values()}
    stay = {k: made.rows(k) for k, i in made.snapshots.items() if k in kept or i in named}
    made.free("".join(kept))
    assert made.stored() == "".join(sorted(stay))
    assert {k: made.rows(k) for k in stay} == stay
    exactly_what_is_needed(made)


def aged(file: Path, age: timedelta) -> None:
    at = time.time() - age.total_seconds()
    os.utime(file, (at, at))
