"""A stream through everything that is no join: compaction keeps it in order of time, redeliveries and deletes change nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from rejoin import Lake, Topology, debezium
from rejoin.declare.expectations import between
from rejoin.plan.model.policy import Fuse, RunOptions


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "views").mkdir()
    return Lake(tmp_path / "lake")


def topology() -> Topology:
    on = Topology("web")
    schema = "id BIGINT, ad STRING, at TIMESTAMP"
    views = on.stream("views", id="id", key="ad", event_time="at", schema=schema, source=debezium("views/"))
    views.join(views, within="1 second", select=["left.id", "right.id AS other", "left.ad"], name="pairs")
    return on


def land(run: int, *records: dict[str, Any]) -> None:
    lines = []
    for n, record in enumerate(records):
        op = record.pop("op", "c")
        source = {"connector": "postgresql", "lsn": run * 1000 + n, "ts_ms": 1}
        value = {"op": op, "before": None, "after": None if op == "d" else record, "source": source}
        lines.append(json.dumps({"key": {"id": record["id"]}, "value": value}))
    Path("views", f"{run}.jsonl").write_text("\n".join(lines) + "\n")


def pairs(lake: Lake) -> list[tuple[int, int]]:
    return sorted((r["id"], r["other"]) for r in lake.read("pairs").to_arrow().to_pylist())


def test_what_is_told_again_of_a_record_changes_nothing(lake: Lake) -> None:
    land(1, {"id": 1, "ad": "a", "at": 0}, {"id": 2, "ad": "a", "at": 1_000_000}, {"id": 3, "ad": "b", "at": 0})
    lake.run(topology())
    assert pairs(lake) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    land(2, {"id": 2, "ad": "b", "at": 0}, {"id": 1, "op": "d"}, {"id": 1, "ad": "a", "at": 0}, {"id": 9, "op": "d"})
    run = lake.run(topology())
    assert pairs(lake) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    assert [(r["id"], r["ad"]) for r in lake.read("views").to_arrow().sort_by("id").to_pylist()] == [(1, "a"), (2, "a"), (3, "b")]
    assert run.number == 2


def test_a_record_without_time_or_key_has_no_partner(lake: Lake) -> None:
    land(1, {"id": 1, "ad": None, "at": 0}, {"id": 2, "ad": None, "at": 0}, {"id": 3, "ad": "a", "at": None}, {"id": 4, "ad": "a", "at": 0})
    lake.run(topology())
    assert pairs(lake) == [(4, 4)]


def test_a_stream_is_stored_in_order_of_time(lake: Lake) -> None:
    import pyarrow.parquet as pq

    land(1, *({"id": i, "ad": "a", "at": (97 * i % 101) * 1_000_000} for i in range(101)))
    lake.run(topology())
    (file,) = [f for f in Path("lake").rglob("*.parquet") if {"id", "ad", "at", "_version"} <= set(pq.read_schema(f).names)]
    times = pq.read_table(file, columns=["at"])["at"].to_pylist()
    assert times == sorted(times)
    assert len(times) == 101


def test_pairs_that_are_held_back_are_judged_again_though_nothing_came(lake: Lake) -> None:
    def watched(most: int) -> Topology:
        on = Topology("web")
        schema = "id BIGINT, ad STRING, at TIMESTAMP"
        views = on.stream("views", id="id", key="ad", event_time="at", schema=schema, source=debezium("views/"))
        select = ["left.id", "right.id AS other", "left.ad"]
        made = views.full_join(views, within="1 second", unmatched="at_once", select=select, name="pairs")
        made.expect(between("id", 0, most), severity="quarantine", max_share=1.0)
        return on

    land(1, {"id": 1, "ad": "a", "at": 0}, {"id": 9, "ad": "a", "at": 0})
    lake.run(watched(5))
    assert pairs(lake) == [(1, 1), (1, 9)]
    lake.run(watched(5), options=RunOptions(replay=("pairs",)))
    assert pairs(lake) == [(1, 1), (1, 9)]
    lake.run(watched(10), options=RunOptions(fuse=Fuse.APPLY))
    assert pairs(lake) == [(1, 1), (1, 9), (9, 1), (9, 9)]
