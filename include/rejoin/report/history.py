"""What people see of runs that are over, as tables and as data. What a run says at its own end: ``report.run``."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from rejoin.context.progress import START
from rejoin.engines.choice import ASKED
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.lake.ledger.runs import Loss, RunKind
from rejoin.lake.query.typed_keys import key_text
from rejoin.plan.model.step_results import NET_CHANGES
from rejoin.plan.model.steps import Verb

if TYPE_CHECKING:
    from rejoin.lake.query.quarantine_entries import Entry
    from rejoin.operate.verify.comparison import Difference

INGEST_COUNTS = ("read", "applied", "superseded", "duplicate", "stale", "noop", "skipped", "quarantined")


def summary_data(run: Run, steps: Sequence[StepRecord]) -> dict[str, Any]:
    """A run as data: what ``--json`` prints."""
    return {
        "topology": run.topology,
        "run": run.number,
        "kind": str(run.kind),
        "state": run.standing,
        "owner": run.owner,
        "base": run.base,
        "rebuilt": list(run.rebuild),
        "opened_at": iso(run.opened_at),
        "closed_at": iso(run.closed_at) if run.closed_at else None,
        "note": run.note,
        "spark_start": _spark_start(steps),
        "steps": [{"step": s.step, "seconds": round(s.seconds, 3), "jobs": s.jobs, "counts": s.counts, "detail": s.detail} for s in steps],
    }


def summary(console: Console, run: Run, steps: Sequence[StepRecord]) -> None:
    """The tables at the end of a run: sources, outputs, then seconds and jobs a step."""
    ingests = [(s.target, s.counts) for s in steps if s.verb == Verb.INGEST and s.counts["read"]]
    checked = {s.target: s.counts for s in steps if s.verb == Verb.VALIDATE}
    resolved = {s.target: s.counts for s in steps if s.verb == Verb.RESOLVE}
    outputs = [(name, counts | checked.get(name, {})) for name, counts in resolved.items()]
    if ingests:
        again = ("reconciled",) if any(counts.get("reconciled") for _, counts in ingests) else ()
        console.print(_counts("rows in", ingests, (*INGEST_COUNTS, *again)))
    if outputs:
        console.print(_counts("changes out", outputs, (*NET_CHANGES, "unchanged", "stale", "held_back", "released")))
    table = Table("step", "seconds", "Spark jobs", "done", box=None, title=None)
    if (start := _spark_start(steps)) is not None:
        table.add_row(START, f"{start:.2f}", "-", "beside the steps")
    for s in steps:
        table.add_row(s.step, f"{s.seconds:.2f}", "-" if s.jobs is None else str(s.jobs), _done(s))
    console.print(table)
    for s in steps:
        if paths := s.detail.get("ignored"):
            console.print(f"not looked into ({s.counts['ignored']}): {', '.join(paths)}", markup=False, style="yellow")
        for line in warned(s):
            console.print(line, markup=False, soft_wrap=True, style="yellow")
        if "said" in s.detail:
            console.print(f"{s.target} goes on after {s.detail['code']}: {'; '.join(s.detail['said'])}", markup=False, soft_wrap=True)
    verdicts(console, steps)
    took = (run.closed_at or time.time()) - run.opened_at
    rebuilt = f", rebuilt: {', '.join(run.rebuild)}" if run.rebuild and run.kind == RunKind.RUN else ""
    console.print(f"run {run.number} of {run.topology}: {run.standing} in {took:.1f} s, {jobs(steps)} Spark jobs{rebuilt}")
    left = next((s.detail["left_behind"] for s in steps if "left_behind" in s.detail), None)
    if left is not None:
        console.print(gone(left), markup=False, soft_wrap=True)
    if run.note:
        console.print(run.note, markup=False)


def decisions(console: Console, run: Run, steps: Sequence[StepRecord]) -> None:
    """How a run was done: for each output whether it followed the changes or was recomputed, and which way it got the rows before, and why; for each step
    which engine did it; for each read which way it went.
    """
    console.print(f"run {run.number} of {run.topology}: {run.standing}")
    table = Table("output", "refresh", "because", "changed", box=None)
    for s in steps:
        if "refresh" in s.detail:
            table.add_row(s.target, s.detail["refresh"], s.detail["why"], f"{s.counts['changes']:,}")
    console.print(table)
    old = Table("output", "rows before", "because", box=None)
    for s in steps:
        if "old_rows" in s.detail:
            old.add_row(s.target, s.detail["old_rows"], s.detail["old_rows_why"])
    console.print(old)
    members = Table("groups", "members", "because", box=None)
    for s in steps:
        if "members" in s.detail:
            members.add_row(s.target, s.detail["members"], s.detail["members_why"])
    if members.row_count:
        console.print(members)
    placed = Table("step", "engine", "because", box=None)
    for s in steps:
        if "engine" in s.detail:
            placed.add_row(s.step, s.detail["engine"], s.detail.get("engine_why", "portable"))
    console.print(placed)
    reads = Table("step", "table", "read", "because", "rows", box=None)
    for s in steps:
        for read in s.detail.get("reads", ()):
            reads.add_row(s.step, read["table"], read["path"], read["why"], "-" if read["rows"] is None else f"{read['rows']:,}")
    console.print(reads)


def run_list(console: Console, runs: Iterable[tuple[Run, Sequence[StepRecord]]]) -> None:
    """One line a run."""
    table = Table(
        "run", "kind", "state", "opened", "seconds", "jobs", "rows in", "changes out", "quarantined", "held back", "note", box=None
    )
    for run, steps in runs:
        ingests = [s.counts for s in steps if s.verb == Verb.INGEST]
        checked = [s.counts for s in steps if s.verb == Verb.VALIDATE] or [s.counts for s in steps if s.verb == Verb.RESOLVE]
        changed, held = sum(c["changes"] for c in checked), sum(c.get("held_back", 0) for c in checked)
        took = f"{run.closed_at - run.opened_at:.1f}" if run.closed_at else "-"
        read, bad = sum(c["read"] for c in ingests), sum(c["quarantined"] for c in ingests)
        note = (run.note or "").split("\n")[0][:60]
        row = (run.number, run.kind, run.standing, _time(run.opened_at), took, jobs(steps), f"{read:,}", f"{changed:,}", bad, held, note)
        table.add_row(*(str(c) for c in row))
    console.print(table)


def verdicts(console: Console, steps: Iterable[StepRecord], *, unmet: bool = False) -> None:
    """What validation found in a run, expectations that are not met first, or only those (``unmet``); nothing if there are none."""
    judged = [(s.target, v) for s in steps for v in s.detail.get("validation", ()) if not (unmet and v["met"])]
    if not judged:
        return
    table = Table("validated", "expectation", "severity", "met", "rows", "bad", box=None)
    for name, v in sorted(judged, key=lambda pair: pair[1]["met"]):
        table.add_row(name, v["expectation"], v["severity"], "yes" if v["met"] else "no", f"{v['checked']:,}", f"{v['unexpected']:,}")
    console.print(table)
    for report in dict.fromkeys(s.detail["report"] for s in steps if s.detail.get("report")):
        console.print(f"report: {report}", soft_wrap=True)


def kept_aside(console: Console, found: "Sequence[Entry]") -> None:
    """What is in quarantine."""
    table = Table("table", "key", "code", "reason", "run", "where", box=None)
    for e in found:
        where = "" if e.file is None else f"{e.file}:{e.line}"
        table.add_row(e.source, ", ".join(map(key_text, e.key.values())), e.code, e.reason, str(e.run), where)
    console.print(table) if found else console.print("nothing is kept aside")


def verification(console: Console, found: "Sequence[Difference]", *, fast: bool) -> None:
    """The result of ``verify``."""
    columns = ["output", "rows", "missing", "extra", "different", "subscriptions", "hidden", "held back"] + (["suspects"] if fast else [])
    table = Table(*columns, box=None)
    for d in found:
        if d.kept:
            console.print(
                f"{d.node}: left as it was by the newest run (its options, or --fuse skip), so not compared; the next run recomputes it"
            )
            continue
        if d.by_arrival:
            console.print(f"{d.node}: its {d.rows:,} rows keep what the runs saw that read their records (as_of), so not compared")
            continue
        row = [d.node, f"{d.rows:,}", d.missing, d.extra, d.different, d.subscriptions, d.hidden, d.held] + ([d.suspects] if fast else [])
        table.add_row(*(str(c) for c in row))
    console.print(table)
    if any(d.hidden for d in found):
        console.print(
            "hidden: rows that are there and that filters do not find, by wrong bounds of data files; `rejoin compact` repairs these"
        )
    for d in found:
        if d.engine_why not in ("", ASKED):
            console.print(f"{d.node}: compared by Spark ({d.engine_why})")
    total = sum(d.total for d in found)
    console.print("0 differences" if not total else f"{total:,} differences: an output is not what its SQL says")


def verification_data(topology: str, found: "Sequence[Difference]", losses: Mapping[str, Loss], *, fast: bool) -> dict[str, Any]:
    """The result of ``verify`` as data: what ``--json`` prints. ``losses``: of the topology's tables, as they are."""
    counted = ("rows", "missing", "extra", "different", "subscriptions")
    return {
        "topology": topology,
        "fast": fast,
        "differences": sum(d.total for d in found),
        "losses": {name: vars(loss) for name, loss in losses.items()},
        "outputs": [
            {"output": d.node, "compared": d.compared, "engine": d.engine or None, **{c: getattr(d, c) for c in counted}}
            | {"hidden": None if fast else d.hidden, "held_back": d.held, "suspects": d.suspects if fast else None}
            for d in found
        ],
    }


def _spark_start(steps: Sequence[StepRecord]) -> float | None:
    """Seconds that the run's steps waited for Spark to start, none of them counted as a step's; None if it ran already, or was not needed."""
    return max((float(s.detail["spark_start"]) for s in steps if "spark_start" in s.detail), default=None)


def _done(step: StepRecord) -> str:
    """How a step was done, in a few words."""
    reads = [read["path"] for read in step.detail.get("reads", ())]
    parts = [f"{step.detail['refresh']}: {step.detail['why']}"] if "refresh" in step.detail else []
    parts += [f"left out: {step.detail['left_out']}"] if "left_out" in step.detail else []
    return "; ".join([*parts, *([f"{reads.count('scan')} of {len(reads)} reads by Spark"] if reads else [])])


def _counts(title: str, rows: Sequence[tuple[str, dict[str, int]]], names: Sequence[str]) -> Table:
    table = Table(title, box=None)
    for name in names:
        table.add_column(name.replace("noop", "no-op").replace("_", " "), justify="right")
    for target, counts in rows:
        table.add_row(target, *(f"{counts.get(n, 0):,}" for n in names))
    return table


def gone(left: dict[str, Any]) -> str:
    """Which tables and outputs are no longer in the topology, and how to read them."""
    stays = f"no longer in the topology: {', '.join(left['names'])}; the tables stay as run {left['as_of']} left them"
    return f"{stays} (`rejoin get TABLE KEY --as-of {left['as_of']}`, `rejoin changes OUTPUT --run N`)"


def incomplete(tables: Mapping[str, Generations]) -> list[str]:
    """A line for every source table with a snapshot in its feed that was not read to its end."""
    return [
        f"{name} is incomplete: the snapshot of {origin} that began in run {run} was not read to its end; rows that were deleted before it may still be there"
        for name, found in tables.items()
        for origin, run in found.incomplete.items()
    ]


def warned(step: StepRecord) -> list[str]:
    """What a cut or an ingest has to say of sources: records that it has left for later runs, and warnings."""
    left = [f"{many(count, 'record')} of {name} or fewer are left for the next runs" for name, count in step.detail.get("left", {}).items()]
    return [*left, *step.detail.get("warnings", ())]


def lost(tables: Mapping[str, Loss]) -> list[str]:
    """A line for every source table that went on after records of it were lost."""
    return [
        f"{name} lacks records: run {loss.run} accepted {loss.code} (`rejoin history --run {loss.run}`); a whole snapshot in its feed would make up for it"
        for name, loss in tables.items()
    ]


def waiting(steps: Iterable[StepRecord]) -> dict[str, list[str]]:
    """The outputs that a run left as they were since tables are incomplete, with these tables."""
    return {s.target: s.detail["waits_for"] for s in steps if s.verb == Verb.RESOLVE and "waits_for" in s.detail}


def many(count: int, what: str) -> str:
    """A number of things: ``1 row``, ``2 rows``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def jobs(steps: Sequence[StepRecord]) -> str:
    """How many Spark jobs a run's steps were; ``-`` if a session could not tell."""
    return "-" if any(s.jobs is None for s in steps) else str(sum(s.jobs or 0 for s in steps))


def iso(seconds: float) -> str:
    """A time of the clock as ``--json`` has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
