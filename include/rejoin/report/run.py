"""What a run says at its end: what changed, what was kept aside and why, and what can be typed next. Everything else: ``rejoin history --run``."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import NET_CHANGES, Counts, Ending
from rejoin.plan.model.steps import Verb
from rejoin.report import history
from rejoin.report.sinks import deliveries
from rejoin.steps.run.topology import Topology

if TYPE_CHECKING:
    from rejoin.lake.query.point_query import PointQuery

HELD = ("held_back", "released")


def ending(console: Console, topology: Topology, run: Run, steps: Sequence[StepRecord], where: str) -> None:
    """The end of a run; of one that found nothing new a single line.

    Args:
        console: where to print.
        topology: what was run.
        run: the committed run.
        steps: its steps.
        where: what a command needs to find the lake and the topology, as it is typed: ``--lake there``, or nothing.
    """
    ingests, outputs = _of(steps, Verb.INGEST), _outputs(run, steps)
    console.print(_headline(run, ingests, outputs, steps), markup=False, soft_wrap=True)
    told = {name: counts for name, counts in outputs.items() if any(counts.get(n) for n in (*NET_CHANGES, *HELD))}
    if told:
        console.print(_table(told))
    waiting = history.waiting(steps)
    if left := [s.target for s in steps if s.verb == Verb.RESOLVE and s.ending is Ending.KEPT and s.target not in waiting]:
        console.print(f"left as they were: {', '.join(left)}; the next run recomputes them", markup=False, soft_wrap=True)
    for line in (*_aside(topology, run, ingests, told, where), *_snapshots(topology, run, ingests), *_notices(steps)):
        console.print(line, markup=False, soft_wrap=True)
    history.verdicts(console, steps, unmet=True)
    deliveries(console, topology, news=True)
    commands = _next(topology, run, told, where)
    for number, command in enumerate(commands):
        console.print(f"{'      ' if number else 'next: '}{command}", markup=False, soft_wrap=True)


def upkeep(console: Console, run: Run, steps: Sequence[StepRecord], done: str, where: str) -> None:
    """The end of a compaction or an expiry.

    Args:
        console: where to print.
        run: the run.
        steps: its steps, one a table and its commit.
        done: what was done to the tables, in a word.
        where: as of ``ending``.
    """
    tables = [s for s in steps if s.step != Verb.PUBLISH]
    counts = sum((Counter({n: c for n, c in s.counts.items() if n in FREED}) for s in tables), Counter[str]())
    said = "".join(f", {counts[n]:,} {word}" for n, word in FREED.items() if counts[n])
    console.print(
        f"run {run.number} of {run.topology}: {history.many(len(tables), 'table')} {done} in {_seconds(run):.1f} s{said}",
        markup=False,
        soft_wrap=True,
    )
    console.print(f"next: {_typed('history', (), f'--run {run.number}', where)}", markup=False, soft_wrap=True)


FREED = {"snapshots": "snapshots freed", "files": "files deleted", "orphans": "stray files deleted", "let_go": "old records let go"}
"""What an expiry or a compaction counts, in words."""


def _headline(run: Run, ingests: dict[str, Counts], outputs: dict[str, Counts], steps: Sequence[StepRecord]) -> str:
    read, changed = sum(c["read"] for c in ingests.values()), sum(c.get(n, 0) for c in outputs.values() for n in NET_CHANGES)
    new = history.many(read, "row") + " read" if read else "nothing new"
    rebuilt = f"; rebuilt: {', '.join(run.rebuild)}" if run.rebuild else ""
    jobs = history.jobs(steps)
    return (
        f"run {run.number} of {run.topology}: {run.standing} in {_seconds(run):.1f} s; {new}"
        + (f", {history.many(changed, 'row')} changed" if read or changed else "")
        + (f"; {jobs} Spark jobs" if jobs not in ("-", "0") else "")
        + rebuilt
    )


def _outputs(run: Run, steps: Sequence[StepRecord]) -> dict[str, Counts]:
    """Output -> what its newest step of this run has counted."""
    resolved, checked = _of(steps, Verb.RESOLVE), _of(steps, Verb.VALIDATE)
    return {n.name: resolved[n.name] | checked.get(n.name, {}) for n in run.plan.nodes if n.name in resolved}


def _of(steps: Sequence[StepRecord], verb: Verb) -> dict[str, Counts]:
    return {s.target: s.counts for s in steps if s.verb == verb}


def _table(outputs: dict[str, Counts]) -> Table:
    columns = (*NET_CHANGES, *(n for n in HELD if any(c.get(n) for c in outputs.values())))
    table = Table("output", box=None)
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for name, counts in outputs.items():
        table.add_row(Text(name), *(f"{counts.get(c, 0):,}" for c in columns))
    return table


def _aside(topology: Topology, run: Run, ingests: dict[str, Counts], outputs: dict[str, Counts], where: str) -> list[str]:
    """A line for every table and output of which this run put something aside: how much, why, and how to see it."""
    found = [(name, c["quarantined"], f"of {c['read']:,} rows of {name} quarantined") for name, c in ingests.items() if c["quarantined"]]
    found += [(name, c["held_back"], f"rows of {name} held back") for name, c in outputs.items() if c.get("held_back")]
    made = []
    for name, count, what in found:
        codes = Counter[str]()
        with suppress(Exception):  # the run is committed, whether or not this can be read
            codes = _query(topology, run).put_aside(name)
        why = f" ({', '.join(f'{n:,} {code}' for code, n in codes.most_common())})" if codes else ""
        made.append(f"{count:,} {what}{why}: {_typed('quarantine list', (name,), '', where)}")
    return made


def _snapshots(topology: Topology, run: Run, ingests: dict[str, Counts]) -> list[str]:
    """What the snapshots within feeds have deleted, and which tables they leave incomplete."""
    made = [
        f"{history.many(c['reconciled'], 'row')} of {name} deleted that a new snapshot in its feed did not bring"
        for name, c in ingests.items()
        if c.get("reconciled")
    ]
    found = topology.ledger.generations(run.number)
    return made + history.incomplete({t.name: found[t.name] for t in run.plan.tables if t.name in found})


def _notices(steps: Sequence[StepRecord]) -> list[str]:
    """What the cut and the ingests have to say."""
    made = []
    for s in steps:
        if paths := s.detail.get("ignored"):
            made.append(f"not looked into ({s.counts['ignored']}): {', '.join(paths)}")
        if left := s.detail.get("left_behind"):
            made.append(history.gone(left))
        made += history.warned(s)
    return made


def _next(topology: Topology, run: Run, outputs: dict[str, Counts], where: str) -> list[str]:
    """The commands that look at what has changed most."""
    changed = {name: sum(c.get(n, 0) for n in NET_CHANGES) for name, c in outputs.items()}
    if not any(changed.values()):
        return []
    name, key = max(changed, key=lambda n: changed[n]), None
    with suppress(Exception):  # as above
        key = _key(topology, run, run.plan.node(name))
    row = [] if key is None else [_typed("get", (name, *key), "", where)]
    return [*row, _typed("changes", (name,), "", where), _typed("verify", (), "", where)]


def _key(topology: Topology, run: Run, node: Node) -> list[str] | None:
    """The key of a row that is new or changed, as it is typed; None if there is none, or one that nobody can type."""
    found = _query(topology, run).changed_key(node.name)
    if found is None or any(isinstance(value, bytes) for value in found):
        return None
    return [_text(value) for value in found]


def _query(topology: Topology, run: Run) -> "PointQuery":
    """Questions to the tables of a run. Where nothing has changed there are none, and PyIceberg is not loaded."""
    from rejoin.lake.query.point_query import PointQuery

    return PointQuery(topology.ledger, topology.refs, run.number)


def _text(value: Any) -> str:
    from rejoin.lake.query.typed_keys import key_text

    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else key_text(value)


def _typed(command: str, arguments: Iterable[str], options: str, where: str) -> str:
    """A command as it is typed. Names and keys may hold anything, a minus at the beginning included."""
    words = [shlex.quote(a) for a in arguments]
    told = [*words, options, where] if not any(w.startswith("-") for w in words) else [options, where, "--", *words]
    return " ".join(part for part in ("rejoin", command, *told) if part)


def _seconds(run: Run) -> float:
    return (run.closed_at or run.opened_at) - run.opened_at
