"""What explain prints. After an intended change: ``REJOIN_UPDATE_GOLDEN=1 pytest tests/unit/test_explain.py``."""

import os
from pathlib import Path

import pytest
from plans import everything

from rejoin.plan import explain
from rejoin.plan.model.steps import steps

GOLDEN = Path(__file__).parents[1] / "golden_files"


@pytest.mark.parametrize(("name", "made"), [("explain.txt", explain.text), ("explain.mmd", explain.mermaid)])
def test_explain_prints_the_golden_file(name: str, made: "object") -> None:
    text = made(everything())  # type: ignore[operator]
    path = GOLDEN / name
    if os.environ.get("REJOIN_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_step_of_the_run_is_in_exactly_one_group_after_what_it_waits_for() -> None:
    plan = everything()
    done: set[str] = set()
    for group in explain.groups(plan):
        assert all(set(step.after) <= done for step in group)
        done |= {step.id for step in group}
    assert done == {step.id for step in steps(plan)}


def test_every_step_is_printed() -> None:
    plan = everything()
    text = explain.text(plan)
    assert [step.id for step in steps(plan) if f"{step.id}\n" not in text and f"{step.id}  after" not in text] == []


def test_the_flowchart_has_one_subscription_table_an_edge() -> None:
    plan = everything()
    assert explain.mermaid(plan).count("{{subscriptions") == sum(len(node.edges) for node in plan.nodes)
