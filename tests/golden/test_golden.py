"""Every golden scenario through the real engine, one event a run and all events in one run, against what Kafka Streams did."""

import functools
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from traces import FILES, HERE, KAFKA_IS_WRONG, Changes, Trace, one_in_a_hundred, some_traces, traces

from rejoin.replay.run import replay

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]
MODES = (
    pytest.param(("some single", "spark"), id="some single", marks=pytest.mark.by_spark),
    pytest.param(("some per-event", "auto"), id="some per-event"),
    *(
        pytest.param((mode, engine), id=f"{mode} {engine}", marks=pytest.mark.nightly)
        for mode in ("single", "per-event")
        for engine in ("auto", "spark")
    ),
)
"""How events are cut into runs, and the engine."""


@dataclass(frozen=True)
class Played:
    """One mode's answers, each beside its trace."""

    mode: str
    pairs: list[tuple[Trace, dict[str, Any]]]
    seconds: float

    @property
    def per_event(self) -> bool:
        return self.mode.endswith("per-event")

    @property
    def some(self) -> bool:
        return self.mode.startswith("some ")

    def wrong(self, of: Callable[[Trace], object], member: str) -> list[str]:
        """A line for each answer whose ``member`` is not what ``of`` says."""
        return [f"{t.name}: expected {of(t)}, got {a[member]}" for t, a in self.pairs if a[member] != of(t)]

    def counts(self) -> str:
        lines, runs = Counter(t.file for t, _ in self.pairs), sum(len(a["changes"]) for _, a in self.pairs)
        what = ", ".join(f"{n:,} of {file}" for file, n in lines.items())
        return f"golden {self.mode}: {sum(lines.values()):,} scenarios ({what}), {runs:,} steps compared; replay took {self.seconds:.0f} s"


@functools.cache
def play(mode: str, seed: int, engine: str) -> Played:
    some, per_event = mode.startswith("some "), mode.endswith("per-event")
    chosen = {"some single": partial(one_in_a_hundred, seed=seed), "some per-event": some_traces}.get(mode, traces)
    expected = [trace for file in FILES for trace in chosen(file)]
    started = time.monotonic()
    with TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REJOIN_ENGINE", engine)
        files = [HERE / file for file in FILES]
        if some:
            files = [Path(scratch, "some.jsonl")]
            files[0].write_text("".join(trace.line + "\n" for trace in expected))
        # As the command prints them: text, not Python's tuples.
        answers = [json.loads(json.dumps(answer)) for answer in replay([str(file) for file in files], None, per_event=per_event)]
    return Played(mode, list(zip(expected, answers, strict=True)), time.monotonic() - started)


@pytest.fixture(params=MODES)
def played(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Played:
    mode, engine = request.param
    return play(mode, int(pytestconfig.option.hypothesis_seed), engine)


def some(wrong: list[str]) -> str:
    return f"{len(wrong)} scenarios differ, first:\n" + "\n".join(wrong[:10])


def test_every_line_is_answered_in_its_order(played: Played, record_property: Callable[[str, object], None]) -> None:
    record_property("compared", played.counts())
    lines = Counter(t.file for t, _ in played.pairs)
    assert lines == FILES or (played.some and lines.keys() == FILES.keys() and lines.total() > 200)
    assert [a["name"] for _, a in played.pairs] == [t.name for t, _ in played.pairs]


@pytest.mark.invariant("I1")
def test_final_tables_equal_kafkas_or_where_it_is_wrong_the_sql_join(played: Played) -> None:
    wrong = played.wrong(lambda trace: trace.table, "table")
    assert not wrong, some(wrong)


def test_changes_equal_what_kafka_emitted_less_what_changes_nothing(played: Played) -> None:
    wrong = played.wrong(Trace.changes if played.per_event else Trace.net, "changes")
    assert not wrong, some(wrong)


@pytest.mark.invariant("I5")
def test_changes_add_up_to_the_table(played: Played) -> None:
    wrong = [trace.name for trace, answer in played.pairs if folded(answer["changes"]) != answer["table"]]
    assert not wrong, some(wrong)


@pytest.mark.parametrize("name", KAFKA_IS_WRONG)
def test_where_kafka_is_wrong_we_are_right(played: Played, name: str) -> None:
    ((trace, answer),) = [pair for pair in played.pairs if pair[0].name == name]
    why, changes = KAFKA_IS_WRONG[name]
    assert folded([[[k, v] for k, v, _ in step] for step in trace.emitted]) != trace.table, f"this trace no longer shows it: {why}"
    assert answer["table"] == trace.table == folded(changes), why


def test_the_lines_where_kafka_is_wrong_are_those_we_know() -> None:
    assert {t.name for file in FILES for t in traces(file) if t.kafka_is_wrong} == set(KAFKA_IS_WRONG)


def folded(changes: Changes) -> dict[str, str]:
    table = {str(key): value for run in changes for key, value in run}
    return {key: value for key, value in table.items() if value is not None}
