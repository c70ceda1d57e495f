"""What a person reads before approving a run: what it would change in each output, what it keeps aside, and some rows. Markdown."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from rejoin.airflow.tasks.links import run_page
from rejoin.lake.query.json_values import json_text
from rejoin.plan.model.step_results import NET_CHANGES, Counts
from rejoin.plan.model.steps import Verb, step_id
from rejoin.report.history import many

if TYPE_CHECKING:
    from rejoin.lake.ledger.records import Run, StepRecord
    from rejoin.plan.model.plan import Node
    from rejoin.report.samples import RowChange, Sample
    from rejoin.steps.run.topology import Topology

VALUE = 60
"""So many characters of a value are shown."""
DID = {"I": "inserted", "U": "updated", "D": "deleted"}


def question(topology: "Topology", run: "Run", dag_run: tuple[str, str]) -> str:
    """Everything there is to know of a run that waits to be published.

    Args:
        topology: the topology.
        run: its open run, all of whose steps before the publication have ended.
        dag_run: ids of the DAG and of its run, for the link.
    """
    from rejoin.report.samples import samples

    steps = topology.ledger.steps(run.number)
    writes = {table: write.snapshot_id for table, write in topology.ledger.writes(run.number).items()}
    published = [n for n in run.plan.nodes if n.published]
    lines = [f"Run {run.number} of {run.topology} would change:", "", *_outputs(published, steps)]
    lines += [f"- {said}" for said in (*_refused(steps), *_unmet(steps))]
    for sample in samples(topology.refs, run.plan, run.number, writes):
        lines += ["", *_sample(sample)]
    return "\n".join([*lines, "", f"[All of it on rejoin's page]({_address(*dag_run)})"])


def _outputs(nodes: Sequence["Node"], steps: Mapping[str, "StepRecord"]) -> Iterator[str]:
    names = (*NET_CHANGES, "held_back", "released")
    yield f"| output | {' | '.join(n.replace('_', ' ') for n in names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for node in nodes:
        made: Counts = steps[step_id(Verb.VALIDATE, node.name)].counts
        yield f"| {node.name} | {' | '.join(f'{made.get(n, 0):,}' for n in names)} |"
    yield ""


def _refused(steps: Mapping[str, "StepRecord"]) -> Iterator[str]:
    for step in steps.values():
        if step.verb == Verb.INGEST and (count := step.counts.get("quarantined")):
            yield f"{many(count, 'record')} of {step.target} refused"


def _unmet(steps: Mapping[str, "StepRecord"]) -> Iterator[str]:
    for step in steps.values():
        for verdict in step.detail.get("validation", ()):
            if not verdict["met"]:
                yield f"{step.target}: expected {_text(verdict['expectation'])}, {many(verdict['unexpected'] or 0, 'row')} not so ({verdict['severity']})"


def _sample(sample: "Sample") -> Iterator[str]:
    if not sample.changes:
        return
    yield f"Some rows of {sample.output}:"
    yield ""
    yield "| change | before | after |"
    yield "|---|---|---|"
    for change in sample.changes:
        yield f"| {DID[change.op]} | {_row(change, change.before, sample.key)} | {_row(change, change.after, sample.key)} |"


def _row(change: "RowChange", side: Mapping[str, Any] | None, key: Sequence[str]) -> str:
    """A side of a change: of an update the key and what differs."""
    if side is None:
        return "no row"
    return ", ".join(
        f"{_text(c)} {_text(json_text(v, VALUE))}" for c, v in side.items() if not change.changed or c in change.changed or c in key
    )


def _text(text: str) -> str:
    """As Markdown that shows it letter by letter: a value is no link, no picture, no cell."""
    marked = "".join(f"\\{c}" if c in "\\`*_{}[]()#|!~" else c for c in " ".join(text.split()))
    return html.escape(marked, quote=False)


def _address(dag_id: str, run_id: str) -> str:
    from airflow.configuration import conf

    return urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/") + run_page(dag_id, run_id)
