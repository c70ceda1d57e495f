"""How a topology is, in a few numbers: the reading half of the strip on top of its page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rejoin.lake import table_names
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.history import History, RunLine
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.lake.ledger.tries import verified
from rejoin.lake.query import bounded_looks
from rejoin.lake.query.quarantine_entries import open_entries
from rejoin.limits import limits
from rejoin.page.model import Pace, Rows, Status
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Verb

PACES = 30
"""Runs in the sparkline."""


def status(history: History, ledger: str, aside: Iterable[tuple[str, Rows]], runs: Sequence[RunLine], within: float) -> Status:
    """Reads it.

    Args:
        history: the topology's runs.
        ledger: its address.
        aside: what is kept aside (``kept_aside``).
        runs: the newest runs, newest first.
        within: seconds after which a topology is no longer fresh.
    """
    published = history.published()
    made = [r for r in runs if r.state == RunState.COMMITTED and r.kind == RunKind.RUN][:PACES]
    return Status(
        published_at=None if published is None else published.closed_at,
        within=within,
        verified=verified(ledger, history.topology),
        aside=tuple(aside),
        paces=tuple(Pace(r.number, (r.closed_at or r.opened_at) - r.opened_at, _changes(r)) for r in reversed(made)),
        open=next((r for r in runs if r.state == RunState.OPEN), None),
        incomplete=() if published is None else tuple(_incomplete(history, published)),
    )


def _incomplete(history: History, published: RunLine) -> Iterator[tuple[str, int]]:
    found, plan = history.generations(published.number), history.plan(published.number)
    for table in plan.tables:
        if table.name in found and (runs := found[table.name].incomplete.values()):
            yield table.name, min(runs)


def kept_aside(states: Mapping[str, int], refs: Refs, plan: Plan) -> Iterator[tuple[str, Rows]]:
    """Tables and outputs of which something is kept aside, and how many rows.

    Args:
        states: the newest committed run's.
        refs: the tables.
        plan: that run's.
    """
    for name in plan.names:
        table = table_names.quarantine(name)
        if table not in states:
            continue
        stored = refs.require(table, states[table])
        found = bounded_looks.newest(stored, states[table], limits().aside_rows)
        if isinstance(found, bounded_looks.Newest) and found.all:
            rows = Rows(sum(1 for _ in open_entries(plan, name, found.rows)))
        else:
            rows = Rows(
                bounded_looks.size(stored, states[table]).rows,
                exact=False,
                why=f"more than {limits().aside_rows:,} stored rows are not read",
            )
        if rows.value:
            yield name, rows


def _changes(run: RunLine) -> int:
    return sum(s.record.counts.get("changes", 0) for s in run.steps if s.record.verb == Verb.VALIDATE)
