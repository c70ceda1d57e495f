"""What ``rejoin replay`` does with files: one small one for real, and all mistakes that it refuses."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rejoin.cli import main
from rejoin.replay.scenarios import scenarios

LEFT = {"side": "left", "key": "k", "value": "x|p", "ts": 1}


def line(join: str = "fk-left", events: object = (LEFT,), **more: object) -> dict[str, object]:
    return {"name": "s", "join": join, "events": events, **more}


def event(**changed: object) -> dict[str, object]:
    return LEFT | changed


ODD = "k\0|+;😀"
BY_HAND = [
    line(
        name="odd keys, an empty value, and a delete",
        join="fk-left",
        events=[
            event(key=ODD, value="😀\0|p"),
            event(key="é", value=""),
            event(side="right", key="😀\0", value=""),
            event(key=ODD, value=None),
        ],
    ),
    line(
        name="the newest time wins, whatever arrives last",
        join="fk-left",
        versioned_ms=1000,
        events=[event(value="|new", ts=9), event(value="|old", ts=5), event(value="|same time", ts=9)],
    ),
    line(name="the last arrival wins, whatever its time", join="fk-left", events=[event(value="|a", ts=9), event(value="|b", ts=5)]),
    line(name="nothing happens", join="fk-left", events=[]),
]
TABLES = [{"é": "+null"}, {"k": "|same time+null"}, {"k": "|b+null"}, {}]
CHANGES = [
    [[[ODD, "😀\0|p+null"]], [["é", "+null"]], [[ODD, "😀\0|p+"]], [[ODD, None]]],
    [[["k", "|new+null"]], [], [["k", "|same time+null"]]],
    [[["k", "|a+null"]], [["k", "|b+null"]]],
    [],
]


def written(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(item) for item in lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a replay makes for itself is made here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def answers(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["replay", *arguments])
    assert done.exit_code == 0, done.stderr
    return [json.loads(text) for text in done.stdout.split("\n") if text]


@pytest.mark.slow
def test_one_event_a_run_in_a_lake_that_stays(tmp_path: Path) -> None:
    file, lake = written(tmp_path / "by_hand.jsonl", BY_HAND), tmp_path / "lake"
    got = answers(str(file), "--lake", str(lake))
    assert [a["name"] for a in got] == [item["name"] for item in BY_HAND]
    assert [a["changes"] for a in got] == CHANGES
    assert [a["table"] for a in got] == TABLES
    history = CliRunner().invoke(main, ["history", "--lake", str(lake), "--json"])
    assert len(history.stdout.splitlines()) == 4  # the longest scenario has four events
    again = CliRunner().invoke(main, ["replay", str(file), "--lake", str(lake)])
    assert again.exit_code == 5
    assert "already holds replay_fk_left" in again.stderr
    assert not list(tmp_path.glob("rejoin-replay-*"))


@pytest.mark.slow
def test_all_events_in_one_run_in_a_lake_that_goes(tmp_path: Path) -> None:
    file = written(tmp_path / "by_hand.jsonl", BY_HAND)
    got = answers(str(file), "--runs", "single")
    assert [a["changes"] for a in got] == [[[[k, v] for k, v in table.items()]] for table in TABLES]
    assert [a["table"] for a in got] == TABLES
    assert not list(tmp_path.glob("rejoin-replay-*"))


SUPPORTED = "fk-chain, fk-chain-right, fk-diamond, fk-inner, fk-left, fk-self, fk-self-filtered, fk-star"
REFUSED = {
    "a window that is no number": (line("stream-stream-inner", window_ms="10 s"), "window_ms, or before_ms and after_ms"),
    "a record of a stream without time": (line("stream-table-left", events=[event(ts=None)]), "ts: milliseconds"),
    "a join nobody knows": (line("fk-outer"), SUPPORTED),
    "an internal name": (line("fk", how=["inner"]), SUPPORTED),
    "a join that is no text": (line(["fk-left"]), SUPPORTED),  # type: ignore[arg-type]
    "no kinds": (line("fk-chain"), "a list of 2 of 'inner', 'left'"),
    "too few kinds": (line("fk-star", how=["inner"]), "a list of 2 of 'inner', 'left'"),
    "an unknown kind": (line("fk-self", how=["outer"]), "a list of 1 of 'inner', 'left'"),
    "no events": ({"name": "s", "join": "fk-left"}, '{"name", "join", "events"'),
    "no name": ({"join": "fk-left", "events": []}, '{"name", "join", "events"'),
    "no object": (["fk-left"], '{"name", "join", "events"'),
    "an event for a table that the shape lacks": (line(events=[LEFT, event(side="mid")]), "side: left, right"),
    "an event that is no object": (line(events=[1]), "side: left, right"),
    "no key": (line(events=[{"side": "left", "value": "x", "ts": 1}]), "key and value: a text or null"),
    "a value that is a number": (line(events=[event(value=1)]), "key and value: a text or null"),
    "no value": (line(events=[{"side": "left", "key": "k", "ts": 1}]), "key and value: a text or null"),
    "half a surrogate pair": (line(events=[event(key="\ud83d")]), "key and value: a text"),
    "a versioned event without time": (line(versioned_ms=1, events=[event(ts=None)]), "ts: milliseconds"),
    "a versioned event before the epoch": (line(versioned_ms=1, events=[event(ts=-1)]), "ts: milliseconds"),
}


@pytest.mark.parametrize(("bad", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_before_anything_runs(tmp_path: Path, bad: dict[str, object], expected: str) -> None:
    file = written(tmp_path / "bad.jsonl", [line(), bad])
    done = CliRunner().invoke(main, ["replay", str(file), "--lake", str(tmp_path / "lake")])
    assert done.exit_code == 3
    assert done.stderr.startswith(f"SCENARIO_REFUSED {file}:2 ")
    assert expected in done.stderr
    assert not done.stdout
    assert not (tmp_path / "lake").exists()


def test_text_that_is_no_json_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b'\n{"name": "s", \n')
    done = CliRunner().invoke(main, ["replay", str(file)])
    assert done.exit_code == 3
    assert f"{file}:2 is no scenario" in done.stderr


@pytest.mark.parametrize("data", [b"plain text", gzip.compress(json.dumps(line()).encode())[:-9]], ids=["no gzip", "cut"])
def test_a_broken_gzip_file_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "bad.jsonl.gz"
    file.write_bytes(data)
    done = CliRunner().invoke(main, ["replay", str(file)])
    assert done.exit_code == 3
    assert f"SCENARIO_REFUSED {file}:1 cannot be read" in done.stderr


def test_a_file_without_lines_needs_no_run(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    done = CliRunner().invoke(main, ["replay", str(tmp_path / "empty.jsonl"), "--lake", str(tmp_path / "lake")])
    assert (done.exit_code, done.stdout) == (0, "")


def test_the_position_is_arrival_or_time_then_arrival(tmp_path: Path) -> None:
    events = [event(ts=9), event(ts=5)]
    file = written(tmp_path / "two.jsonl", [line(events=events), line(events=events, versioned_ms=1)])
    plain, versioned = scenarios([str(file)])
    assert [(e.lsn, e.order) for e in plain.events] == [(1, 0), (2, 0)]
    assert [(e.lsn, e.order) for e in versioned.events] == [(9, 1), (5, 2)]
