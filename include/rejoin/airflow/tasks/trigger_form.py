"""The form of a triggered run: what a person can ask of it, typed, and checked by Airflow before the run starts.

Airflow's form can only be sent when no field is empty that may not be null, and an empty text, list or choice is null to it. So every
field here may be null, which asks for nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import DECLARABLE, Fuse, Refresh, RunOptions

AS_DECLARED = "as declared"
"""What the form calls the choice that leaves a setting as the topology has it."""
STOP = "stop_before_publish"


def form(plan: Plan) -> dict[str, Param]:
    """The parameters of a topology's DAG."""
    outputs = [n.name for n in plan.nodes]
    kept = [*(t.name for t in plan.tables), *outputs]
    return {
        "refresh": _choice(DECLARABLE, "Refresh", "How to bring the outputs up to date."),
        "fuse": _choice(
            Fuse, "If too much would change", "What to do about an output of which more would change than its max_change_share allows."
        ),
        "only": _some(
            outputs, "Only these outputs", "Empty: all. What is left out is recomputed by the next run that does not leave it out."
        ),
        "replay": _some(
            kept, "Judge again", "Rows and records in quarantine of these tables and outputs are judged again, by what is true now."
        ),
        STOP: switch("Stop before publish", "Wait for an approval in this UI before anything becomes visible."),
        "note": Param(None, type=["null", "string"], maxLength=500, title="Note", description="Kept with the run."),
    }


def switch(title: str, description: str) -> Param:
    """A yes or no, which is no."""
    return Param(False, type=["null", "boolean"], title=title, description=description)


def _choice(choices: Iterable[str], title: str, description: str) -> Param:
    named = {"null": AS_DECLARED}
    return Param(None, type=["null", "string"], enum=[None, *map(str, choices)], values_display=named, title=title, description=description)


def _some(names: list[str], title: str, description: str) -> Param:
    items = {"type": "string", "enum": names}
    return Param([], type=["null", "array"], items=items, examples=names, title=title, description=description)


def options(params: Mapping[str, Any]) -> RunOptions:
    """What the form asks for."""
    refresh, fuse = params["refresh"], params["fuse"]
    return RunOptions(
        None if refresh is None else Refresh(refresh),
        None if fuse is None else Fuse(fuse),
        tuple(params["only"] or ()),
        tuple(params["replay"] or ()),
        params["note"] or "",
    )
