"""What ``rejoin repair`` says, to people and as data."""

from typing import Any

from rich.console import Console

from rejoin.operate.repair import Repaired
from rejoin.plan.model.step_results import NET_CHANGES
from rejoin.plan.model.steps import Verb, step_id
from rejoin.report.history import verification

HOW = {"full": "recomputed", "incremental": "followed what changed", "skip": "left as the last run left it"}
"""The refresh of an output in the run, in words; of one that had nothing to do there is none."""


def repaired(console: Console, done: Repaired, *, fast: bool) -> None:
    """Both comparisons, and between them what the run did to each output."""
    verification(console, done.before, fast=fast)
    if done.run is None:
        console.print("nothing to recompute, so no run was opened")
        return
    console.print(f"run {done.run.number} of {done.run.topology}, on what was stored, without new input:", markup=False)
    for d in done.before:
        counts = _changed(done, d.node)
        said = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n) or "no row changed"
        console.print(f"  {d.node}: {HOW.get(_refresh(done, d.node), 'nothing to do')}; {said}", markup=False, soft_wrap=True)
    verification(console, done.after, fast=fast)
    if any(d.total > d.hidden for d in done.after):
        console.print(f"recomputing did not help: please report it with `rejoin history --run {done.run.number}`", soft_wrap=True)


def repaired_data(topology: str, done: Repaired, *, fast: bool) -> dict[str, Any]:
    """The same as data: what ``--json`` prints."""
    left = {d.node: d.total for d in done.after}
    return {
        "topology": topology,
        "fast": fast,
        "run": None if done.run is None else done.run.number,
        "differences": sum(left.values()),
        "outputs": [
            {
                "output": d.node,
                "compared": d.compared,
                "found": d.total,
                "recomputed": _refresh(done, d.node) == "full",
                **_changed(done, d.node),
                "differences": left[d.node],
            }
            for d in done.before
        ],
    }


def _refresh(done: Repaired, output: str) -> str:
    step = done.steps.get(step_id(Verb.RESOLVE, output))
    return "" if step is None else str(step.detail.get("refresh", ""))


def _changed(done: Repaired, output: str) -> dict[str, int]:
    """How many rows of an output the run inserted, updated and deleted."""
    step = done.steps.get(step_id(Verb.VALIDATE, output))
    return {name: 0 if step is None else step.counts[name] for name in NET_CHANGES}
