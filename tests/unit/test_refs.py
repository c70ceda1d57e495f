"""Many writers of one table at once: each has a branch of its own, and every branch holds its base and what its writer added."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from rejoin.lake.commit import Contents, Entries, data_files
from rejoin.lake.config import lake_config
from rejoin.lake.files import files_of
from rejoin.lake.refs import Refs

WRITERS = 6


@pytest.fixture
def refs(tmp_path: Path) -> Refs:
    made = Refs(lake_config(str(tmp_path)), "t")
    made.ensure_namespace()
    made.create("rows", numbers().schema, {})
    return made


def numbers(*wanted: int) -> pa.Table:
    return pa.table({"n": pa.array(wanted, pa.int64())})


def held(refs: Refs, snapshot: int) -> list[int]:
    return sorted(refs.require("rows", snapshot).scan(snapshot_id=snapshot).to_arrow()["n"].to_pylist())


def base(refs: Refs) -> int:
    empty = refs.empty("rows")
    return refs.commit_files("rows", "base", empty, data_files(refs.require("rows", empty), numbers(1, 2, 3)))


def test_writers_at_once_lose_nothing_of_their_base(refs: Refs) -> None:
    start = base(refs)

    def write(number: int) -> int:
        return refs.commit_files("rows", f"writer_{number}", start, data_files(refs.require("rows", start), numbers(number)))

    with ThreadPoolExecutor(WRITERS) as pool:
        snapshots = list(pool.map(write, range(10, 10 + WRITERS)))
    assert [held(refs, s) for s in snapshots] == [[1, 2, 3, n] for n in range(10, 10 + WRITERS)]


@pytest.mark.parametrize("how", ["append", "rewrite"])
def test_a_commit_that_another_one_overtakes_at_the_last_moment_is_done_again_from_its_base(
    refs: Refs, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = base(refs)
    table = refs.require("rows", start)
    slow, fast = data_files(table, numbers(5)), data_files(table, numbers(4))
    commit_table, calls = type(table.catalog).commit_table, []

    def overtaken(catalog: Any, *args: Any) -> object:
        calls.append(args)
        if len(calls) == 1:
            refs.commit_files("rows", "faster", start, fast)
            raise CommitFailedException("what the SQL catalog says if the table's row has changed since it was read")
        return commit_table(catalog, *args)

    monkeypatch.setattr(type(table.catalog), "commit_table", overtaken)
    if how == "append":
        made = refs.commit_files("rows", "slower", start, slow)
    else:
        made = refs.commit_rewrite("rows", "slower", start, Contents(Entries(files_of(table, start).data_entries, ()), slow))
    assert held(refs, made) == [1, 2, 3, 5]
    assert refs.head("rows", "slower") == made
    assert len(calls) == 3
