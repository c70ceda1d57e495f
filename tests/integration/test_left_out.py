"""Outputs that keep what their runs saw (``as_of="run"``), left out by some runs: what was there stays, and the next run takes up the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from rejoin import Lake, Topology, records, snapshot
from rejoin.lake.config import lake_config
from rejoin.operate.ahead import compared
from rejoin.operate.compact import compact
from rejoin.plan.change.outlook import Change
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import RunOptions
from rejoin.steps.run.topology import Topology as Seen

RUN_OF_OTHER = RunOptions(only=("other",))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.chdir(tmp_path)
    for name in ("events", "names"):
        (tmp_path / name).mkdir()
    return Lake(tmp_path / "lake")


def topology(join: str = "left_join", select: tuple[str, ...] = ("left.id", "right.name")) -> Topology:
    on = Topology("seen")
    schema = "id STRING, k BIGINT, at TIMESTAMP"
    events = on.stream("events", id="id", key="k", event_time="at", schema=schema, source=records("events"))
    names = on.table("names", key="k", schema="k BIGINT, name STRING", source=snapshot("names", max_delete_share=1.0))
    getattr(events, join)(names, as_of="run", select=list(select), name="now")
    events.left_join(names, foreign_key="k", select=["left.id", "right.name"], name="other")
    return on


def land(run: int, name: str | None, *ids: str) -> None:
    """Events of ``ids`` that all name the same row, which is now called ``name``; None: it is gone."""
    rows = "2,unrelated\n" if name is None else f"1,{name}\n"
    Path("names", f"{run}.csv").write_text(f"k,name\n{rows}")
    if ids:
        lines = [json.dumps({"id": i, "k": 1, "at": "2026-01-01T00:00:00Z"}) for i in ids]
        Path("events", f"{run}.jsonl").write_text("\n".join(lines) + "\n")


def no_spark() -> Any:
    pytest.fail("Spark is asked for")


def rows(lake: Lake, name: str = "now") -> dict[str, Any]:
    return {r["id"]: r["name"] for r in lake.read(name).to_arrow().to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("upkeep", [False, True], ids=["plain", "compacted in between"])
def test_only_records_that_came_since_see_the_rows_of_the_run_that_makes_up_for_it(lake: Lake, upkeep: bool) -> None:
    for run, name in enumerate(("first", "second"), start=1):
        land(run, name, f"e{run}", f"f{run}")
        lake.run(topology())
    seen = {"e1": "first", "f1": "first", "e2": "second", "f2": "second"}
    for run, name in enumerate(("third", "fourth"), start=3):
        land(run, name, f"e{run}")
        assert lake.run(topology(), options=RUN_OF_OTHER).rebuild == ()
        assert rows(lake) == seen
    if upkeep:
        assert compact(Seen(compile(topology()), lake_config("lake"), "."), no_spark, "upkeep")
    (entry,) = (e for e in compared(compile(topology()), lake_config("lake")).entries if e.name == "now")
    assert (entry.change, entry.why) == (Change.CHANGED, ("takes up the records since run 2, which earlier runs have left out",))
    land(5, "fifth", "e5")
    assert lake.run(topology()).rebuild == ()
    seen |= dict.fromkeys(("e3", "e4", "e5"), "fifth")
    assert rows(lake) == seen
    assert set(rows(lake, "other").values()) == {"fifth"}
    land(6, "sixth", "e6")
    lake.run(topology())
    assert rows(lake) == {**seen, "e6": "sixth"}


def test_results_stay_whose_right_row_is_gone_and_a_run_without_new_records_changes_nothing(lake: Lake) -> None:
    land(1, "first", "e1")
    lake.run(topology("join"))
    land(2, None)
    lake.run(topology("join"), options=RUN_OF_OTHER)
    lake.run(topology("join"))
    assert rows(lake) == {"e1": "first"}


def test_an_edit_makes_all_of_it_anew_also_if_runs_have_left_it_out(lake: Lake) -> None:
    edited = topology(select=("left.id", "right.name", "left.k"))
    land(1, "first", "e1")
    lake.run(topology())
    land(2, "second", "e2")
    lake.run(edited, options=RUN_OF_OTHER)
    run = lake.run(edited)
    assert (run.rebuild, rows(lake)) == (("now",), {"e1": "second", "e2": "second"})


def test_an_output_that_no_run_has_made_yet_is_made_as_a_whole(lake: Lake) -> None:
    land(1, "first", "e1")
    lake.run(topology(), options=RUN_OF_OTHER)
    land(2, "second", "e2")
    lake.run(topology())
    assert rows(lake) == {"e1": "second", "e2": "second"}
