"""A run as a picture: the graph of its plan, every box coloured by what its steps are at, on the arrows what flows along them. Pure."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from rejoin.lake.ledger.history import RunLine
from rejoin.lake.ledger.runs import RunState
from rejoin.page import plan_picture
from rejoin.page.boxes import Graph
from rejoin.page.formats import counts, cut_off, seconds
from rejoin.page.model import RunPage, StepRow
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node
from rejoin.plan.model.step_results import Ending
from rejoin.plan.model.steps import ON_ROWS, Verb, parts, step_id


class State(StrEnum):
    """What a step is at."""

    FAILED = "failed"
    RUNNING = "running"
    SILENT = "silent"  # begun, and its owner gives no sign of life
    WAITING = "waiting"
    KEPT = "kept"  # ended, and left the output as it was
    DONE = "done"
    MISSED = "missed"  # the run was closed before it


WORDS = {State.SILENT: "no sign of life", State.KEPT: "left as it was", State.MISSED: "did not run"}


def state_of(row: StepRow, run: RunLine, now: float) -> State:
    """What a step is at."""
    if row.line is not None:
        return State.KEPT if row.line.record.ending is Ending.KEPT else State.DONE
    if row.tried is not None and row.tried.error is not None:
        return State.FAILED
    if run.state != RunState.OPEN:
        return State.MISSED
    if row.tried is None:
        return State.WAITING
    return State.RUNNING if run.lease_until > now else State.SILENT


def live(run: RunLine, now: float) -> bool:
    """Whether a page about a run should look again."""
    return run.state == RunState.OPEN and run.lease_until > now


def broken(page: RunPage) -> tuple[StepRow, ...]:
    """The steps whose newest try has failed."""
    return tuple(s for s in page.steps if s.line is None and s.tried is not None and s.tried.error is not None)


def picture(page: RunPage, now: float) -> Graph | None:
    """The graph of a run; None for a run that has no plan of its own."""
    if page.plan is None:
        return None
    rows = {s.step: s for s in page.steps}

    def content(names: Iterable[str], first: str) -> plan_picture.Content:
        found = [rows[n] for n in names if n in rows]
        state = _together([state_of(r, page.run, now) for r in found])
        took = sum(r.line.record.seconds for r in found if r.line is not None)
        tries = max((r.tried.tries for r in found if r.tried is not None), default=0)
        said = seconds(took) if state is State.DONE else WORDS.get(state, str(state))
        line = f"{said}, {tries} tries" if tries > 1 else said
        more = "\n".join(f"{r.step}: {_said(r, state_of(r, page.run, now))}" for r in found)
        return tuple(text for text in (first, line) if text), state, more

    def table(name: str) -> plan_picture.Content:
        made = _counts(rows, step_id(Verb.INGEST, name))
        if step_id(Verb.INGEST, name) in rows:
            read = f"{made.get('read', 0):,} read" + (f", {made['quarantined']:,} refused" if made.get("quarantined") else "")
            return content((step_id(Verb.INGEST, name),), read if made else "")
        made = page.net.get(name, {})
        return content((step_id(Verb.RESOLVE, name), step_id(Verb.VALIDATE, name)), plan_picture.net(made) if made else "")

    def edge(node: Node, to: Edge | Grouping) -> plan_picture.Content:
        if how := plan_picture.matched(to):
            return content((step_id(Verb.RESOLVE, node.name),), how)
        responds = [step_id(Verb.RESPOND, f"{node.name}.{to.name}")] if isinstance(to, Edge) else []
        return content((step_id(Verb.SUBSCRIBE, node.name), *responds), plan_picture.by(to))

    def labels(node: Node, edge: Edge | Grouping) -> tuple[str, str, str]:
        if isinstance(edge, Grouping):
            return _flow(page, rows, node.left.table), "", ""
        answers = _answers(rows.get(step_id(Verb.RESPOND, f"{node.name}.{edge.name}")))
        return _flow(page, rows, node.left.table), _flow(page, rows, edge.right.table), answers

    return plan_picture.picture(page.plan, table, edge, page.visible, labels)


def around(page: RunPage, now: float) -> list[tuple[str, State, str]]:
    """The steps that belong to no table, and deliveries: name, state, more for the pointer."""
    rows = [s for s in page.steps if parts(s.step)[0] not in ON_ROWS]
    return [(s.step, state_of(s, page.run, now), _said(s, state_of(s, page.run, now))) for s in rows]


def _together(states: list[State]) -> State:
    """The state of a box: something that failed or runs shows; ended is what has ended as a whole."""
    for shown in (State.FAILED, State.RUNNING, State.SILENT, State.KEPT):
        if shown in states:
            return shown
    ended = State.DONE in states
    if State.WAITING in states:
        return State.RUNNING if ended and len(states) > 1 else State.WAITING
    return State.DONE if ended and State.MISSED not in states else State.MISSED


def _said(row: StepRow, state: State) -> str:
    if row.line is not None:
        return f"{seconds(row.line.record.seconds)}, {counts(row.line.record.counts)}"
    error = row.tried.error if row.tried is not None else None
    return cut_off(error, 300) if error else WORDS.get(state, str(state))


def _counts(rows: Mapping[str, StepRow], step: str) -> dict[str, int]:
    row = rows.get(step)
    return row.line.record.counts if row is not None and row.line is not None else {}


def _flow(page: RunPage, rows: Mapping[str, StepRow], name: str) -> str:
    """How many rows of a table or output have changed."""
    made = _counts(rows, step_id(Verb.INGEST, name)) or page.net.get(name)
    return f"{made.get('changes', 0):,}" if made else ""


def _answers(row: StepRow | None) -> str:
    """How many rows a join has answered with. Where an output is computed anew nobody is asked, which is not to say that nothing comes of the join."""
    if row is None or row.line is None or row.line.record.ending is Ending.DEFERRED:
        return ""
    return f"{row.line.record.counts.get('responses', 0):,}"
