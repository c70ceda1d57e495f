"""The ten joins of Kafka Streams: every scenario of ``joins.jsonl``, one event a run and all in one, against a model and against Kafka."""

import functools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from joins_model import FILE, LINES, Line, lines

from rejoin.replay.run import replay

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]
MODES = (
    pytest.param(("some", "per-event", "local"), id="some per-event"),
    pytest.param(("few", "single", "spark"), id="few single by Spark"),
    *(pytest.param(("all", cut, "local"), id=f"all {cut}", marks=pytest.mark.nightly) for cut in ("per-event", "single")),
    pytest.param(("all", "single", "spark"), id="all single by Spark", marks=pytest.mark.nightly),
)


def chosen(which: str) -> list[Line]:
    """By day lines of the most usual window only: each window is a topology of its own, and those cost."""
    found = lines()
    usual = [x for x in found if x.join != "stream-stream" or (x.data["window_ms"], x.data["grace_ms"]) == (10_000, 0)]
    usual = [x for x in usual if not {"before_ms", "after_ms"} & x.data.keys()]
    return {"all": found, "some": usual[::12], "few": usual[::54]}[which]


@functools.cache
def play(which: str, cut: str, engine: str) -> list[tuple[Line, dict[str, Any]]]:
    with TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REJOIN_ENGINE", engine)
        asked = chosen(which)
        file = Path(scratch, "some.jsonl")
        file.write_text("".join(json.dumps(line.data) + "\n" for line in asked))
        answers = [json.loads(json.dumps(answer)) for answer in replay([str(file)], None, per_event=cut == "per-event")]
    return list(zip(asked, answers, strict=True))


@pytest.fixture(params=MODES)
def played(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> list[tuple[Line, dict[str, Any]]]:
    which, cut, engine = request.param
    pairs = play(which, cut, engine)
    # Arrival is what only one event a run shows.
    shown = [(x, a) for x, a in pairs if cut == "per-event" or x.right() is not None]
    record_property("compared", f"joins {which} {cut} ({engine}): {dict(Counter(x.join for x, _ in shown))}")
    return shown


def result(answer: dict[str, Any]) -> object:
    return [tuple(r) for r in answer["results"]] if "results" in answer else answer["table"]


def test_results_equal_the_model(played: list[tuple[Line, dict[str, Any]]]) -> None:
    wrong = [f"{x.name}: expected {x.right()}, got {result(a)}" for x, a in played if x.right() is not None and result(a) != x.right()]
    assert not wrong, f"{len(wrong)} differ, first:\n" + "\n".join(wrong[:5])


def test_results_equal_kafkas_but_where_a_reason_is_known(played: list[tuple[Line, dict[str, Any]]]) -> None:
    wrong = [f"{x.name}: Kafka {x.kafka()}, got {result(a)}" for x, a in played if result(a) != x.kafka() and x.reason() is None]
    assert not wrong, f"{len(wrong)} differ, first:\n" + "\n".join(wrong[:5])


def test_changes_add_up_to_the_rows_of_tables(played: list[tuple[Line, dict[str, Any]]]) -> None:
    for line, answer in played:
        if not line.of_streams:
            folded = {key: value for run in answer["changes"] for key, value in run}
            assert {key: value for key, value in folded.items() if value is not None} == answer["table"], line.name


def test_all_lines_are_there_and_the_reasons_are_few() -> None:
    found = lines()
    assert len(found) == LINES == len(FILE.read_text().splitlines())
    waits = [x.name for x in found if x.right() not in (None, x.kafka()) and x.data.get("agrees_with_batch") is not False]
    assert len(waits) == 2 and all(x.reason() for x in found if x.name in waits), waits


def test_tables_change_as_kafkas_do_less_what_changes_nothing(played: list[tuple[Line, dict[str, Any]]]) -> None:
    for line, answer in played:
        if not line.of_streams and len(answer["changes"]) == len(line.data["events"]):
            known: dict[str, str | None] = {}
            for step, (sent, got) in enumerate(zip(line.data["emitted"], answer["changes"], strict=True)):
                last = {key: value for key, value, _ in sent}
                assert got == [[k, last[k]] for k in sorted(last, key=str.encode) if last[k] != known.get(k)], (line.name, step)
                known |= last
