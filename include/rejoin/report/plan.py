"""What people see of a plan against a lake: what is new, rebuilt, changed and left behind, what sinks get, what waits, what it costs."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoin.operate.ahead import Ahead, Recompute, Waiting
from rejoin.plan.change.outlook import Change, Entry, Kind, Outlook
from rejoin.report.history import incomplete, lost, many

GROUPS = (Change.NEW, Change.BACK, Change.REBUILT, Change.CHANGED, Change.LEFT)
TITLES = {Change.CHANGED: "changed, not rebuilt"}


def plan(console: Console, ahead: Ahead, location: str) -> None:
    """Prints all of it, a group after the other; a group without entries is left out."""
    found = ahead.outlook
    if found.run is None:
        _line(console, f"topology {found.topology}: nothing was committed in the lake at {location} yet, so everything is new")
    else:
        _line(console, f"topology {found.topology} against the lake at {location}, whose newest run is {found.run}")
    work = {w.name: w for w in ahead.work}
    for change in GROUPS:
        entries = [e for e in found.entries if e.change is change and e.kind is not Kind.SINK]
        _group(console, TITLES.get(change, str(change)), ((f"{e.kind} {e.name}", _lines(e, work.get(e.name), ahead)) for e in entries))
    sinks = [e for e in found.entries if e.kind is Kind.SINK]
    _group(console, "sinks", ((e.name, _sink(e, ahead)) for e in sinks))
    _group(console, "refused", ((e.code, e.what.splitlines()) for e in ahead.refused))
    _group(console, "input waiting", ((w.table, [_input(w), *w.warnings]) for w in ahead.waiting))
    for line in (*incomplete(ahead.generations), *lost(ahead.losses)):
        _line(console, f"\n{line}")
    if found.run is not None and all(e.change is Change.SAME for e in found.entries):
        _line(console, "\nthe definition is that of the newest run: nothing is rebuilt")
    _group(console, "estimate", _estimate(ahead))
    if (run := ahead.open_run) is not None:
        _line(
            console,
            f"\nrun {run.number} is {run.standing} ({run.owner}): the next one is refused while it is alive, else takes its place",
        )


def edits(console: Console, found: Outlook, location: str) -> None:
    """Prints what becomes of an edited topology, without numbers; nothing before the first run, or if nothing is edited."""
    edited = tuple(e for e in found.entries if e.change is not Change.SAME)
    if found.run is not None and edited:
        plan(console, Ahead(replace(found, entries=edited)), location)


def _lines(entry: Entry, work: Recompute | None, ahead: Ahead) -> list[str]:
    lines = list(entry.why)
    if work is None or not entry.computed or ahead.outlook.run is None:
        return lines or [""]
    stored = ahead.sizes.get(entry.name)
    compared = "" if stored is None else f", compared with {_number(stored.rows)} stored rows"
    return [*lines, f"computed from {_number(work.rows)} stored rows{compared}"]


def _sink(entry: Entry, ahead: Ahead) -> list[str]:
    if entry.change is Change.SAME:
        return [*entry.why, "gets the changes of the run, as before"]
    stored = ahead.sizes.get(entry.name.partition(".")[0])
    rows = [f"{_number(stored.rows)} rows of its output are stored now"] if entry.change is Change.NEW and stored is not None else []
    return [f"{entry.change}: {entry.why[0]}", *entry.why[1:], *rows]


def _input(waiting: Waiting) -> str:
    if waiting.error is not None:
        return f"refused, {waiting.error.code}"
    if waiting.records:
        later = f"; {waiting.left:,} more are left for later runs" if waiting.left else ""
        return f"{many(waiting.records, 'new record')} of a topic, or fewer{later}"
    if not waiting.files:
        return "nothing new"
    skipped = f", {waiting.skipped} older snapshots are passed over" if waiting.skipped else ""
    return f"{many(waiting.files, 'new file')}, {waiting.bytes:,} bytes{skipped}"


def _estimate(ahead: Ahead) -> Iterator[tuple[str, list[str]]]:
    """What it costs: rows and bytes; seconds only by an earlier run that did the same."""
    if ahead.outlook.run is None or not ahead.work:
        return
    rows, unknown = sum(w.rows or 0 for w in ahead.work), any(w.rows is None for w in ahead.work)
    size = sum(w.bytes for w in ahead.work)
    yield "to compute", [f"{'at least' if unknown else 'up to'} {rows:,} stored rows, from {size:,} bytes of tables"]
    for w in ahead.work:
        if w.earlier is not None:
            took = f"run {w.earlier.run} took {w.earlier.seconds:.1f} s for {w.earlier.rows:,} rows"
            yield w.name, [took if w.seconds is None else f"about {w.seconds:.1f} s ({took})"]


def _group(console: Console, title: str, rows: Iterable[tuple[str, list[str]]]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for name, lines in rows:
        for at, line in enumerate(lines):
            table.add_row(Text(name if at == 0 else ""), Text(line))
    if table.rows:
        console.print()
        console.print(Text(title, style="bold"))
        console.print(table)


def _number(rows: int | None) -> str:
    return "an unknown number of" if rows is None else f"{rows:,}" if rows else "no"


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
