"""Records that are older than the retention of their stream: quarantined, counted, and the same ones however the input is cut into runs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from rejoin import Lake, Topology, records
from rejoin.declare.expectations import between
from rejoin.declare.topology import Relation
from rejoin.errors import BadRecords, TopologyError
from rejoin.plan.check.compile import compile

pytestmark = pytest.mark.slow

SECOND = 1_000_000
Record = tuple[int, int | None]
"""Id, and seconds of the event time."""


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "views").mkdir()
    return tmp_path / "views"


def topology(retention: str | None = "10 seconds", share: float = 1.0, **more: Any) -> Topology:
    on = Topology("web")
    source = records("views/", max_bad_share=share, **more)
    views = on.stream(
        "views", id="id", key="ad", event_time="at", schema="id BIGINT, ad STRING, at TIMESTAMP", source=source, retention=retention
    )
    return _joined(on, views)


def _joined(on: Topology, views: Relation) -> Topology:
    views.join(views, within="1 second", select=["left.id", "right.id AS other"], name="pairs")
    return on


def land(landing: Path, number: int, some: list[Record]) -> None:
    rows = [{"id": i, "ad": "a", "at": None if at is None else f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"} for i, at in some]
    (landing / f"{number:04}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def accepted(stream: list[Record]) -> list[int]:
    """The ids that are taken, read by another way: one record after the other."""
    newest, taken = -1, dict[int, None]()
    for i, at in stream:
        if i in taken or (at is not None and at < newest - 10):
            continue
        taken[i] = None
        newest = max(newest, -1 if at is None else at)
    return sorted(taken)


def stored(lake: Lake) -> list[int]:
    return sorted(r["id"] for r in lake.read("views").to_arrow().to_pylist())


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.nightly)])
def test_a_record_that_is_too_old_is_quarantined_with_its_text(landing: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    lake = Lake(landing.parent / "lake")
    land(landing, 1, [(1, 0), (2, 30), (3, 20), (4, 19), (5, None)])
    lake.run(topology())
    assert stored(lake) == [1, 2, 3, 5]
    land(landing, 2, [(6, 19), (2, 30), (7, 25), (1, 0)])
    lake.run(topology())
    assert stored(lake) == [1, 2, 3, 5, 7]
    aside = sorted(lake.sql("SELECT id, _code, _raw, _line FROM web.views__quarantine").to_arrow().to_pylist(), key=lambda r: r["id"])
    [again, four, six] = aside  # 2 is a duplicate; 1 is stored too, but as old as what a compaction may have let go
    assert (again["id"], again["_code"], again["_line"]) == (1, "TOO_LATE", 4)
    assert (four["id"], four["_code"], four["_line"], json.loads(four["_raw"])["at"]) == (4, "TOO_LATE", 4, "2026-01-01T00:00:19Z")
    assert (six["id"], six["_code"], six["_line"]) == (6, "TOO_LATE", 1)


@pytest.mark.slow
def test_the_same_records_are_too_old_however_they_are_cut_into_runs(landing: Path, tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    chance, at = random.Random(seed), 0
    stream = list[Record]()
    for i in range(30):
        at += chance.randrange(4)
        stream.append(
            (
                chance.randrange(i + 1) if chance.random() < 0.1 else i,
                None if chance.random() < 0.05 else max(0, at - chance.choice([0, 0, 3, 9, 10, 11, 40])),
            )
        )
    times = dict(reversed(stream))  # a record that comes again is the same
    stream = [(i, times[i]) for i, _ in stream]
    for name, most in (("once", len(stream)), ("one by one", 1), ("cut", 9)):
        for file in landing.iterdir():
            file.unlink()
        lake, rest, number = Lake(tmp_path / name), list(stream), 0
        while rest:
            count = min(len(rest), chance.randint(1, most) if name == "cut" else most)
            number += 1
            land(landing, number, rest[:count])
            rest = rest[count:]
            lake.run(topology())
        assert stored(lake) == accepted(stream), (seed, name)


@pytest.mark.parametrize("cuts", [[[(7, 1), (7, 40)]], [[(7, 1)], [(7, 40)]]], ids=["at once", "one by one"])
def test_a_record_that_is_corrected_counts_though_it_was_too_old_first(landing: Path, tmp_path: Path, cuts: list[list[Record]]) -> None:
    lake = Lake(tmp_path / "lake")
    for number, some in enumerate([[(9, 30)], *cuts]):
        land(landing, number, some)
        lake.run(topology())
    assert stored(lake) == [7, 9]


def test_a_record_that_is_held_back_and_meanwhile_too_old_stays_held_back(landing: Path, tmp_path: Path) -> None:
    def watched(most: int) -> Topology:
        on = Topology("web")
        views = on.stream(
            "views",
            id="id",
            key="ad",
            event_time="at",
            schema="id BIGINT, ad STRING, at TIMESTAMP",
            source=records("views/", max_bad_share=1.0),
            retention="10 seconds",
        )
        views.expect(between("id", 0, most), severity="quarantine", max_share=1.0)
        return _joined(on, views)

    lake = Lake(tmp_path / "lake")
    land(landing, 1, [(7, 5), (1, 5)])
    lake.run(watched(5))
    land(landing, 2, [(2, 30)])
    lake.run(watched(5))
    lake.run(watched(100))  # what was held back is judged again, and is too old by now
    assert stored(lake) == [1, 2]
    newest = "SELECT _op FROM web.views__quarantine WHERE id = 7 QUALIFY row_number() OVER (ORDER BY _run DESC) = 1"
    assert [r["_op"] for r in lake.sql(newest).to_arrow().to_pylist()] == ["Q"]


def test_too_many_of_them_stop_the_run(landing: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    land(landing, 1, [(0, 59)])
    lake.run(topology(share=0.05))
    land(landing, 2, [(i, 1) for i in range(1, 20)])
    with pytest.raises(BadRecords, match="TOO_LATE"):
        lake.run(topology(share=0.05))
    assert stored(lake) == [0]
    lake.run(topology(None, share=0.05))
    assert stored(lake) == list(range(20))


@pytest.mark.parametrize(
    ("retention", "lateness", "said"), [("soon", "0 seconds", "expected a text such as"), ("1 second", "2 seconds", "is less than")]
)
def test_a_retention_that_makes_no_sense_is_refused(retention: str, lateness: str, said: str) -> None:
    on = Topology("web")
    schema = "id BIGINT, at TIMESTAMP"
    views = on.stream(
        "views", id="id", key="id", event_time="at", schema=schema, source=records("v"), lateness=lateness, retention=retention
    )
    with pytest.raises(TopologyError, match=said):
        compile(_joined(on, views))
