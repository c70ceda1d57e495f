"""The form of a triggered run: what a person can ask of it, typed, and checked by Airflow before the run starts."""

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from rejoin.plan.model import Plan
from rejoin.plan.policy import DECLARABLE, Fuse, Refresh, RunOptions

AS_DECLARED = "as declared"
"""The choice that leaves a setting as the topology has it."""
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
            kept, "Judge again", "Tables and outputs whose rows and records that are kept aside are judged again, by what is true now."
        ),
        STOP: Param(
            False,
            type="boolean",
            title="Stop before publish",
            description="Wait for an approval in this UI before anything becomes visible.",
        ),
        "note": Param("", type="string", maxLength=500, title="Note", description="Kept with the run."),
    }


def _choice(choices: Iterable[str], title: str, description: str) -> Param:
    return Param(AS_DECLARED, type="string", enum=[AS_DECLARED, *map(str, choices)], title=title, description=description)


def _some(names: list[str], title: str, description: str) -> Param:
    return Param([], type="array", items={"type": "string", "enum": names}, examples=names, title=title, description=description)


def options(params: Mapping[str, Any]) -> RunOptions:
    """What the form asks for."""
    refresh, fuse = params["refresh"], params["fuse"]
    return RunOptions(
        None if refresh == AS_DECLARED else Refresh(refresh),
        None if fuse == AS_DECLARED else Fuse(fuse),
        tuple(params["only"]),
        tuple(params["replay"]),
        params["note"],
    )
