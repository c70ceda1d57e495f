"""Writes the results in docs/joins.md, by running the topology that stands there: `python docs/join_pages.py`, or `make docs`."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from rejoin.testing import Changes, Driver
from rejoin.testing.grid import Change, Grid, Values

PAGE = Path(__file__).with_name("joins.md")
EVENTS = (
    ("vA", 0), ("cA", 1), ("vB", 1), ("cC", 2), ("vC", 3), ("vD", 4), ("cE", 5), ("vF1", 6), ("vF2", 6.6), ("cF", 7), ("vG", 8),
    ("cG1", 9), ("cG2", 9.6), ("cB", 12),
)  # fmt: skip
"""Scenarios A to G of the article on one time line: v is a view, c a click; seconds."""
END = ("vZ", 60)
"""A last view, so that all windows are closed; it is not shown."""
LATE = ("cD", 3.5)
"""What comes last, and late."""
ADS = "ABCDEFG"
START = datetime(2026, 11, 21, 10, tzinfo=UTC)
SIDES = {"v": ("views", "last_view"), "c": ("clicks", "last_click")}
WINDOWS = ("window_inner", "window_left", "window_outer")
TABLES = ("tables_inner", "tables_left", "tables_outer")
LOOKUPS = ("then_inner", "then_left", "now_inner", "now_left")
OUTPUTS = (*WINDOWS, *TABLES, *LOOKUPS)
Event = tuple[str, float]


def page() -> str:
    """The page with its computed parts as they have to be."""
    text = PAGE.read_text()
    with TemporaryDirectory() as folder:
        (file := Path(folder, "visits.py")).write_text(text.partition("```python\n")[2].partition("```")[0])
        parts = computed(str(file))
    for name, lines in parts.items():
        text, found = re.subn(rf"(<!-- computed: {name} -->\n).*?(<!-- end -->)", rf"\1\n{lines}\n\n\2", text, flags=re.DOTALL)
        assert found == 1, name
    return text


def computed(topology: str) -> dict[str, str]:
    """The parts of the page by the names of their places."""
    with Driver(topology) as once:
        _run_once(once)
        at_once = {name: _cells(once.table(name)) for name in OUTPUTS}
    with Driver(topology) as each:
        steps = [([_label(event)], _run(each, event)) for event in (*EVENTS, END)]
        said = [(label, {name: _said(changes[name]) for name in OUTPUTS}) for label, changes in steps]
        final = {name: _cells(each.table(name)) for name in OUTPUTS}
        late = _run(each, LATE)
        corrected = [[f"`{name}`", _said(late[name])] for name in OUTPUTS]
    history = {
        part: _table(["what the run reads", *(f"`{o}`" for o in outputs)], [[*label, *(of[o] for o in outputs)] for label, of in said])
        for part, outputs in (("windows", WINDOWS), ("tables", TABLES), ("lookups", LOOKUPS))
    }
    differs = [[f"`{name}`", *at_once[name]] for name in OUTPUTS if final[name] != at_once[name]]
    return history | {
        "final": _table(["join", *ADS], [[f"`{name}`", *cells] for name, cells in final.items()]),
        "at once": _table(["join", *ADS], differs),
        "late": _table(["join", "what the run changes"], corrected),
    }


def _run(driver: Driver, event: Event) -> Changes:
    """A run that reads one event: a record of a stream, and the newest one of its ad in a table."""
    name, second = event
    stream, table = SIDES[name[0]]
    rows = {stream: _record(event)} if event == END else {stream: _record(event), table: f"{name[1]} | {name}"}
    driver.clock = _at(second)
    return driver.run(**rows)


def _run_once(driver: Driver) -> None:
    """One run that reads all events. Every row of a table was committed when its event happened, which a text cannot say."""
    for number, (name, second) in enumerate(EVENTS):
        origin = {"connector": "postgresql", "lsn": number, "ts_ms": int(_at(second).timestamp() * 1000)}
        value = {"op": "u", "before": None, "after": {"ad": name[1], "id": name}, "source": origin}
        file = driver.root / "landing" / SIDES[name[0]][1] / f"{number}.jsonl"
        file.write_text(json.dumps({"key": {"ad": name[1]}, "value": value}) + "\n")
    of = {"views": "v", "clicks": "c"}
    driver.run(**{stream: "\n".join(_record(e) for e in (*EVENTS, END) if e[0].startswith(letter)) for stream, letter in of.items()})


def _record(event: Event) -> str:
    return f"{event[0]} | {event[0][1]} | {_at(event[1])}"


def _at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def _label(event: Event) -> str:
    return "a view at 60 s" if event == END else f"{event[0]}, {event[1]:g} s"


def _cells(grid: Grid) -> list[str]:
    """The rows of a result by ad."""
    rows: dict[str, list[str]] = {ad: [] for ad in ADS}
    for row in grid.rows:
        if (ad := str(row["view"] or row["click"])[1]) in rows:
            rows[ad].append(_pair(row))
    return [", ".join(sorted(found)) for found in rows.values()]


def _said(grid: Grid) -> str:
    """The changes of a run: new rows, ~~rows that are gone~~."""
    shown = sorted(grid.changes, key=lambda c: (c.after is not None, repr(c)))
    return " ".join(text for change in shown if (text := _change(change)))


def _change(change: Change) -> str:
    pairs = [_pair(values) for values in (change.before, change.after) if values is not None]
    if END[0] in "".join(pairs):
        return ""
    return pairs[0] if change.before is None else f"~~{pairs[0]}~~ {' '.join(pairs[1:])}".strip()


def _pair(row: Values | Mapping[str, object]) -> str:
    return f"{row['view'] or '·'}+{row['click'] or '·'}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


if __name__ == "__main__":
    PAGE.write_text(page())
