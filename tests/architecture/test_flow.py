"""The flow of a table through ``ingest`` and of a node through ``resolve`` can be read: no file is entered again and again, and hardly a call leads up."""

import pytest
from checker import ROOT
from flow import Flow, Stop, drawn, flow, flows

from rejoin.plan.model.steps import Verb

PAGE = ROOT / "docs" / "architecture.md"
MOST = {Verb.INGEST: (33, 7), Verb.RESOLVE: (13, 4)}
"""Entries and climbs that there are; they may only become fewer. No file is entered more than three times, and eight climbs would be too many."""


@pytest.fixture(scope="module")
def found() -> dict[Verb, Flow]:
    return flows()


@pytest.mark.parametrize("verb", MOST)
def test_no_file_is_entered_again_and_again_and_hardly_a_call_leads_up(found: dict[Verb, Flow], verb: Verb) -> None:
    assert {file: times for file, times in found[verb].times.items() if times > 3} == {}
    assert (len(found[verb].entered), sum(found[verb].climbs)) == MOST[verb], "fewer are to be written down here; more are too many"


def test_the_picture_of_the_flow_is_that_of_the_code(found: dict[Verb, Flow]) -> None:
    assert PAGE.read_text() == drawn(PAGE.read_text(), found), "`make docs` draws it again"


def test_a_file_is_entered_from_another_one_and_a_climb_leads_to_a_room_above_or_to_who_imports_it() -> None:
    stops = [
        Stop("steps/a.py", 1, "steps/b.py", "f"),
        Stop("steps/b.py", 1, "lake/c.py", "g"),
        Stop("lake/c.py", 1, "lake/c.py", "h"),
        Stop("steps/b.py", 2, "joins/d.py", "i"),
        Stop("joins/d.py", 1, "joins/e.py", "j"),
        Stop("joins/d.py", 2, "joins/d.py", "k"),
    ]
    seen = flow(stops, {"joins.d": {"joins.e"}})
    assert seen == Flow(("steps/b.py", "lake/c.py", "joins/d.py", "joins/e.py", "joins/d.py"), (False, False, True, False, True))
    assert seen.times["joins/d.py"] == 2
