"""A lake that stored wall clocks as instants at UTC is put right before a run writes into it, and every value stays what the clock showed."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hiding import located

from rejoin import Topology as Declared
from rejoin import debezium
from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files, delete_file
from rejoin.lake.iceberg.wall_clock_columns import schema_of
from rejoin.lake.ledger.records import Run, StepRecord, Write
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.wall_clocks import wall_clocks
from rejoin.plan.check.compile import compile
from rejoin.steps.run.mend import mend
from rejoin.steps.run.topology import Topology

UTC = pa.timestamp("us", "UTC")
CLOCK = dt.datetime(2026, 3, 29, 2, 30, 0, 123_456)  # noqa: DTZ001 -- a wall clock, in an hour that Central Europe does not have
VALUES = pa.struct([("wall", UTC), ("seen", UTC), ("note", pa.string())])
EVENTS = pa.schema([("at", UTC), ("_run", pa.int64()), ("_op", pa.string()), *VALUES, ("_before", VALUES)])
RESPONSES = pa.schema([("pk_1", UTC), ("left_hash", pa.binary()), ("right", pa.struct([("wall", UTC), ("_hash", pa.binary())]))])


def plan() -> Any:
    declared = Declared("t")
    schema = "at TIMESTAMP_NTZ, wall TIMESTAMP_NTZ, seen TIMESTAMP, note STRING"
    events = declared.table("events", key="at", schema=schema, source=debezium("landing"))
    events.left_join(events, foreign_key="wall", select=["left.*", "right.wall AS other"]).named("joined")
    return compile(declared)


def clock(number: int) -> dt.datetime:
    return CLOCK + dt.timedelta(hours=number)


def row(number: int, run: int) -> dict[str, Any]:
    old = None if run == 1 else {"wall": clock(number + 1), "seen": clock(0), "note": "old"}
    return {"at": clock(number), "_run": run, "_op": "U", "wall": clock(number + run), "seen": clock(0), "note": f"{run}", "_before": old}


@pytest.fixture
def old(tmp_path: Path) -> Topology:
    """A lake as an earlier version left it: rows of two runs in a file each, one of them hidden, and a transient table."""
    topology = Topology(plan(), lake_config(str(tmp_path / "lake")), str(tmp_path))
    refs, ledger = topology.refs, topology.ledger
    refs.ensure_namespace()
    refs.create("events", EVENTS, {})
    [responses] = [table_names.responses(n, e) for n in topology.plan.nodes for e in n.edges]
    refs.create(responses, RESPONSES, {})
    refs.empty(responses)
    head = refs.empty("events")
    for run, numbers in ((1, range(5)), (2, range(2))):
        opened = ledger.open(f"run {run}", topology.plan, {"joined": "f"})
        made = pa.Table.from_pylist([row(n, run) for n in numbers], EVENTS)
        gone = []
        if run == 2:
            table = refs.require("events", head)
            keys = pa.table({"at": pa.array([clock(4)], UTC)})
            gone = [delete_file(table, located(table, head, ["at"], keys))]
        head = refs.commit_files("events", f"run_{run}_a", head, data_files(refs.require("events", head), made), gone)
        ledger.register(opened.number, StepRecord("ingest.events", {"changes": 1}, 0.1, 0), "a", (Write("events", head),))
        ledger.publish(opened.number)
        refs.roll_forward("events", opened.number, head, tagged=False)
        ledger.rolled_forward(opened.number)
    return topology


def mended(topology: Topology) -> Run | None:
    return mend(topology, lambda work: topology.upkeep("somebody", RunKind.MEND, work))


def stored(topology: Topology) -> list[dict[str, Any]]:
    table = topology.refs.table("events")
    assert table is not None
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda r: (r["_run"], r["at"]))


def test_fault_a12_a_lake_that_holds_wall_clocks_as_instants_is_mended_before_the_next_run(old: Topology) -> None:
    before = stored(old)
    assert len(before) == 6 and before[0]["at"].tzinfo is not None
    done = mended(old)
    assert done is not None and (done.kind, done.state) == ("mend", "committed")
    naive = ("at", "wall")
    expected = [
        {
            **{k: v.replace(tzinfo=None) if k in naive else v for k, v in r.items()},
            "_before": None if r["_before"] is None else {**r["_before"], "wall": r["_before"]["wall"].replace(tzinfo=None)},
        }
        for r in before
    ]
    assert stored(old) == expected
    table = old.refs.table("events")
    assert table is not None
    assert [f.name for f in table.schema().fields] == EVENTS.names, "every column is at its place"
    assert [f.name for f in table.schema().find_field("_before").field_type.fields] == VALUES.names
    files = [(t.file.record_count, len(t.delete_files)) for t in table.scan().plan_files()]
    assert sorted(files) == [(2, 0), (4, 0)], "a file a file: one version of a key in each"
    head = old.ledger.states(done.number)["events"]
    found = duckdb_lookup.having(table, head, ["at"], pa.table({"at": pa.array([clock(1)], pa.timestamp("us"))}), ["wall", "_run"])
    assert isinstance(found, pa.Table)
    assert sorted(found.to_pylist(), key=lambda r: r["_run"]) == [{"wall": clock(2), "_run": 1}, {"wall": clock(3), "_run": 2}]


def test_fault_a12_after_it_is_mended_nothing_is_done_and_earlier_runs_can_still_be_read(old: Topology) -> None:
    assert mended(old) is not None
    assert mended(old) is None
    [responses] = [table_names.responses(n, e) for n in old.plan.nodes for e in n.edges]
    table = old.refs.table(responses)
    assert table is not None
    assert [str(f.field_type) for f in (table.schema().find_field(c) for c in ("pk_1", "right.wall"))] == ["timestamp", "timestamp"]
    first = old.ledger.states(1)["events"]
    events = old.refs.require("events", first)
    assert str(schema_of(events, first).find_field("at").field_type) == "timestamptz"
    early = events.scan(snapshot_id=first).to_arrow().to_pylist()
    assert sorted(r["at"].replace(tzinfo=None) for r in early) == [clock(n) for n in range(5)]
    now = PointQuery(old.ledger, old.refs).get("events", (clock(1).isoformat(),))
    assert now == {"at": clock(1), "wall": clock(3), "seen": clock(0).replace(tzinfo=dt.UTC), "note": "2"}


def test_the_wall_clocks_of_a_plan_are_named_in_every_table(old: Topology) -> None:
    made = wall_clocks(old.plan)
    assert made["events"] == {("at",), ("wall",), ("_before", "at"), ("_before", "wall")}
    assert made["events__quarantine"] == {("at",), ("wall",), ("_row", "at"), ("_row", "wall")}
    assert made["joined"] == {("at",), ("wall",), ("other",)}
    assert made["joined__changes"] == {
        *((s, c) for s in ("_before", "_after") for c in ("at", "wall", "other")),
        ("at",),
        ("wall",),
        ("other",),
    }
    [subscriptions] = [paths for name, paths in made.items() if "__subscriptions__" in name]
    assert subscriptions == {("fk_1",), ("pk_1",)}
