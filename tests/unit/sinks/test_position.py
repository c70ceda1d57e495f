"""How far a sink is, and what comes next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.errors import SinkCursorAhead
from rejoin.plan.model.sinks import CatchUp
from rejoin.sinks.position import Content, Position

RUNS = [1, 2, 4, 7]


def test_the_next_run_or_all_later_runs_at_once() -> None:
    assert Position.at(2).next(RUNS, CatchUp.EVERY, ["a"]) == Position(2, 4, columns=("a",))
    assert Position.at(2).next(RUNS, CatchUp.NET, ["a"]) == Position(2, 7, columns=("a",))
    assert Position.at(7).next(RUNS, CatchUp.EVERY, ["a"]) is None


def test_what_is_under_way_goes_on_before_anything_else_even_if_more_runs_came() -> None:
    begun = Position(2, 4, columns=("a", "b"), target="t").moved(10)
    assert begun.next([*RUNS, 8], CatchUp.NET, ["a"]) == begun, "with the columns that it began with"
    assert begun.finished() == Position(4, 4, columns=("a", "b"), target="t")
    snapshot = Position(0, 7, content=Content.ROWS)
    assert snapshot.next(RUNS, CatchUp.EVERY, ["a"]) == snapshot


def test_a_sink_goes_back_to_a_run_and_never_forward() -> None:
    begun = Position(4, 7, 3, columns=("a",), target="t")
    assert begun.back(2) == Position(1, 1, columns=("a",), target="t")
    assert begun.back(5) == begun.back(7) == Position(4, 4, columns=("a",), target="t"), "what is under way is part of what follows"


def test_what_a_sink_needs() -> None:
    assert Position.at(4).needs == 5
    assert Position(4, 7, 3).needs == 5
    assert Position(0, 7, 3, Content.REPLACEMENT).needs == 7, "the state of run 7, and later changes"


def test_a_sink_that_has_seen_more_than_the_lake_is_refused() -> None:
    Position.at(7).check("a.b", 7)
    with pytest.raises(SinkCursorAhead):
        Position.at(8).check("a.b", 7)


COLUMNS = st.lists(st.text(), max_size=3).map(tuple)
POSITIONS = st.builds(Position, st.integers(0, 9), st.integers(0, 9), st.integers(0, 10**9), st.sampled_from(Content), COLUMNS, st.text())


@given(POSITIONS)
def test_json_both_ways(position: Position) -> None:
    assert Position.from_json(position.to_json()) == position


def test_positions_of_older_versions_are_read_and_belong_to_any_target_unless_they_name_a_topic() -> None:
    old = '{"content": "changes", "done": 3, "offset": 0, "upto": 3}'
    assert Position.from_json(old) == Position.at(3) and Position.at(3).is_of("anything")
    marker = Position.from_json(old[:-1] + ', "topic": "1:2"}')
    assert marker.is_of("1:2") and not marker.is_of("1:3")


@given(st.lists(st.integers(1, 50), unique=True).map(sorted), st.integers(0, 50), st.sampled_from(CatchUp))
def test_every_run_is_covered_once_and_in_order(runs: list[int], done: int, catch_up: CatchUp) -> None:
    position, covered = Position.at(done), list[int]()
    while (work := position.next(runs, catch_up, ())) is not None:
        covered += [run for run in runs if work.done < run <= work.upto]
        position = work.finished()
    assert covered == [run for run in runs if run > done]
