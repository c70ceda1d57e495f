"""Which outputs a run finds left out, and not to be made anew."""

from dataclasses import replace

import pytest

from rejoin import Topology, records, snapshot
from rejoin.lake.ledger.left_out_nodes import CommittedRun, LeftOutNode, behind
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan

PRINTS = {"now": "as it is", "linked": "as it is"}


def _plan() -> Plan:
    on = Topology("seen")
    events = on.stream("events", id="id", key="k", event_time="at", schema="id INT, k INT, at TIMESTAMP", source=records("events"))
    names = on.table("names", key="k", schema="k INT, name STRING", source=snapshot("names"))
    events.left_join(names, as_of="run", select=["left.id", "right.name"], name="now")
    events.left_join(names, foreign_key="k", select=["left.id", "right.name"], name="linked")
    return compile(on)


PLAN = _plan()
ABSENT = replace(PLAN, nodes=tuple(n for n in PLAN.nodes if n.name != "now"))
ASKED = replace(PLAN, replay=("now",))


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        pytest.param([], {}, id="the first run"),
        pytest.param([CommittedRun(3, PLAN, PRINTS)], {}, id="up to date"),
        pytest.param([CommittedRun(3, PLAN, {"now": "edited"}), CommittedRun(2, PLAN, PRINTS)], {}, id="edited now"),
        pytest.param([CommittedRun(3, PLAN, {}), CommittedRun(2, PLAN, PRINTS)], {"now": LeftOutNode(2, asked=False)}, id="left out once"),
        pytest.param(
            [CommittedRun(4, PLAN, {}), CommittedRun(2, PLAN, {}), CommittedRun(1, PLAN, PRINTS)],
            {"now": LeftOutNode(1, asked=False)},
            id="left out twice",
        ),
        pytest.param([CommittedRun(3, PLAN, {}), CommittedRun(2, PLAN, {"now": "before"})], {}, id="left out and edited"),
        pytest.param([CommittedRun(3, PLAN, {}), CommittedRun(2, ABSENT, {}), CommittedRun(1, PLAN, PRINTS)], {}, id="away in between"),
        pytest.param([CommittedRun(3, PLAN, {}), CommittedRun(2, PLAN, {})], {}, id="never made"),
        pytest.param(
            [CommittedRun(3, ASKED, {}), CommittedRun(2, PLAN, PRINTS)],
            {"now": LeftOutNode(2, asked=True)},
            id="judging asked for in between",
        ),
        pytest.param(
            [CommittedRun(3, PLAN, {}), CommittedRun(2, ASKED, PRINTS)],
            {"now": LeftOutNode(2, asked=False)},
            id="judging asked for and done",
        ),
    ],
)
def test_an_output_that_keeps_what_it_saw_is_behind_since_the_run_that_made_it_last(
    runs: list[CommittedRun], found: dict[str, LeftOutNode]
) -> None:
    assert behind(PLAN, PRINTS, runs) == found
