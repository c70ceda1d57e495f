"""What sinks are given: in the order of the key whatever files there are, net over several runs, and from any offset. No Spark, no server."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from integration.made import COLUMNS, Lake

from rejoin.lake import table_names
from rejoin.lake.read import change_feed
from rejoin.steps.run.topology import Topology

NAMES = [c for c, _ in COLUMNS]
LOG = table_names.changes("people")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("lake"), "")
    for _ in range(6):
        made.run(made.some(25, keys=30))
    return made


def now(topology: Topology, name: str) -> change_feed.TableAt:
    table = topology.refs.table(name)
    assert table is not None
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return change_feed.TableAt(table, snapshot.snapshot_id)


def changes(topology: Topology, between: change_feed.RunRange, columns: list[str] = NAMES, offset: int = 0) -> Iterator[pa.RecordBatch]:
    return change_feed.changes(now(topology, LOG), now(topology, "people"), between, ["id"], columns, offset=offset)


def read(topology: Topology, after: int, upto: int, offset: int = 0) -> list[dict[str, object]]:
    found = changes(topology, change_feed.RunRange(after, upto, net=upto > after + 1), offset=offset)
    return pa.Table.from_batches(list(found)).to_pylist() if after < upto else []


def folded(*parts: list[dict[str, object]]) -> dict[object, object]:
    state: dict[object, object] = {}
    for change in (c for part in parts for c in part):
        assert change["_before"] == state.get(change["id"]), "a change is missing"
        assert change["_op"] == ("D" if change["_after"] is None else "I" if change["_before"] is None else "U")
        state[change["id"]] = change["_after"]
    return {k: v for k, v in state.items() if v is not None}


def test_changes_of_any_split_into_ranges_of_runs_fold_to_the_output(lake: Lake) -> None:
    topology, expected = lake.topology(), lake.rows()
    for splits in ([0, 1, 2, 3, 4, 5, 6], [0, 6], [0, 2, 6], [0, 1, 5, 6], [0, 3, 4, 6]):
        parts = [read(topology, a, b) for a, b in pairwise(splits)]
        assert folded(*parts) == expected, splits
        for part in parts:
            ids = [int(str(c["id"])) for c in part]
            assert ids == sorted(set(ids)), "one change a key, in its order"


def test_an_offset_leaves_out_exactly_the_first_rows_also_after_all_files_were_rewritten(lake: Lake) -> None:
    topology = lake.topology()
    whole = {run: read(topology, run - 1, run) for run in range(1, 7)}
    net = read(topology, 0, 6)
    table = topology.refs.table(LOG)
    assert table is not None
    rows = table.scan().to_arrow()
    table.overwrite(rows.take(pa.array(list(reversed(range(rows.num_rows))))))
    for run, expected in whole.items():
        assert read(topology, run - 1, run, 7) == expected[7:]
    assert read(topology, 0, 6, 11) == net[11:]


def test_a_net_change_is_there_for_every_key_that_changed_though_it_is_back_at_its_row_or_gone_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "")
    kept = lake.row(1)
    for changed in ({1: kept}, {1: lake.row(1), 2: lake.row(2)}, {1: kept, 2: None}):
        lake.run(changed)
    assert [(c["id"], c["_run"], c["_op"]) for c in read(lake.topology(), 1, 3)] == [(1, 3, "U"), (2, 3, "D")]


def test_fault_a13_what_an_offset_counts_does_not_depend_on_the_columns_that_are_asked_for(lake: Lake) -> None:
    topology = lake.topology()
    between = change_feed.RunRange(0, 6, net=True)
    whole = read(topology, 0, 6)
    fewer = [c for c in NAMES if c not in ("name", "seen")]
    for columns in (fewer, [*fewer, "added later"]):
        found = pa.Table.from_batches(list(changes(topology, between, columns, 5))).to_pylist()
        assert [(c["id"], c["_op"], c["_run"]) for c in found] == [(c["id"], c["_op"], c["_run"]) for c in whole[5:]]
        for one, other in zip(found, whole[5:], strict=True):
            for side in ("_before", "_after"):
                row = other[side]
                assert one[side] == (None if row is None else {c: row.get(c) for c in columns})  # type: ignore[attr-defined]


def test_the_rows_of_a_run_and_deletes_of_what_went_before_it(lake: Lake) -> None:
    topology = lake.topology()
    batches = list(change_feed.rows(now(topology, "people"), ["id"], NAMES, gone=(now(topology, LOG), 6)))
    found = pa.Table.from_batches(batches).to_pylist()
    assert {r["id"]: r["_after"] for r in found if r["_op"] == "R"} == lake.rows()
    ever = {c["id"] for run in range(1, 7) for c in read(topology, run - 1, run)}
    assert {r["id"] for r in found if r["_op"] == "D"} == ever - lake.rows().keys()
    assert [r["id"] for r in found] == sorted(ever)


def test_a_column_that_the_changes_never_had_is_null(lake: Lake) -> None:
    [batch] = changes(lake.topology(), change_feed.RunRange(0, 1, net=False), ["id", "new"])
    assert {tuple(r) for r in (row["_after"] for row in batch.to_pylist())} == {("id", "new")}
    assert all(row["_after"]["new"] is None for row in batch.to_pylist())


def test_runs_without_changes_give_nothing(lake: Lake) -> None:
    assert list(changes(lake.topology(), change_feed.RunRange(6, 9, net=True))) == []


def test_memory_follows_the_batch_and_not_the_changes(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "")
    lake.run({key: lake.row(key) for key in range(60_000)})
    sizes = [b.num_rows for b in changes(lake.topology(), change_feed.RunRange(0, 1, net=False))]
    assert sum(sizes) == 60_000 and max(sizes) <= 2 * change_feed.BATCH_ROWS
