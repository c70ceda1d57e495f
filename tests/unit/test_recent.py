"""What a step has written the next one has in its process; every other reader has it from the files."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from limited import limited

from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.recent_writes import RecentWrites
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.read.lookups import Lookups
from rejoin.lake.write.writer import Writer
from rejoin.plan.model.plan import Plan

WRITTEN = pa.table(
    {
        "id": pa.array([2, 1, 3], pa.int64()),
        "_run": pa.array([1, 1, 1], pa.int64()),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
        "_before": pa.array([{"note": ""}, None, {"note": None}], pa.struct([("note", pa.string())])),
    }
)


def some(count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(count), pa.int64())})


def test_rows_are_there_by_the_snapshot_that_added_them_until_they_are_forgotten() -> None:
    kept = RecentWrites()
    kept.keep(1, some(3))
    kept.keep(2, some(0))
    assert kept.added(1) == some(3) and kept.added(2) == some(0) and kept.added(3) is None
    kept.clear()
    assert kept.added(1) is None


def test_what_was_written_first_goes_where_there_is_more_than_a_process_may_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, recent_bytes=some(10).nbytes)
    kept = RecentWrites()
    for snapshot, count in ((1, 5), (2, 5), (3, 1)):
        kept.keep(snapshot, some(count))
    assert [kept.added(n) for n in (1, 2, 3)] == [None, some(5), some(1)]
    kept.keep(4, some(11))
    assert [kept.added(n) for n in (1, 2, 3, 4)] == [None] * 4


def test_a_step_has_what_the_one_before_it_has_written_and_others_find_the_same_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, engine = lake_config(str(tmp_path / "lake")), DuckdbEngine(Plan("t", (), ()))
    refs, elsewhere = Refs(config, "t"), Refs(config, "t")
    refs.ensure_namespace()
    wrote = Writer(engine, refs, {}, 1, "a").append("made", LocalRelation(WRITTEN), ["id"])
    here, files = (Lookups(engine, "t", {"made": wrote.snapshot_id}, of) for of in (refs, elsewhere))
    found = files.of_run("made", 1).here()
    monkeypatch.setattr(duckdb_lookup, "of_run", lambda *_: pytest.fail("the files were read"))
    assert here.of_run("made", 1).here().cast(found.schema) == found.sort_by("id")
    assert [read.why for access in (here, files) for read in access.reads] == ["just written", "of this run"]
    refs.recent.clear()
    with pytest.raises(pytest.fail.Exception, match="files were read"):
        here.of_run("made", 1)


def test_rows_of_other_runs_are_read_from_the_files(tmp_path: Path) -> None:
    engine, refs = DuckdbEngine(Plan("t", (), ())), Refs(lake_config(str(tmp_path / "lake")), "t")
    refs.ensure_namespace()
    wrote = Writer(engine, refs, {}, 1, "a").append("made", LocalRelation(WRITTEN), ["id"])
    access = Lookups(engine, "t", {"made": wrote.snapshot_id}, refs)
    assert access.of_run("made", 2).here().num_rows == 0
    assert [read.why for read in access.reads] == ["of this run"]
