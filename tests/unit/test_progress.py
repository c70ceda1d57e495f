"""What progress says: on a terminal, in a log, and to nobody."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from rejoin.context.progress import SILENT, telling
from rejoin.report import progress as progress_shown
from rejoin.report.progress import Work, counted, shown, span


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def log() -> Console:
    return Console(file=StringIO(), force_terminal=False, width=40)


def lines(console: Console) -> list[str]:
    """Without the seconds at the beginning of each."""
    text = console.file.getvalue()  # type: ignore[attr-defined]
    found = [re.fullmatch(r" *\d+\.\d s  (.*)", line) for line in text.splitlines()]
    return [f"no progress: {text}" if m is None else m.group(1) for m in found]


def test_time_left_is_told_of_work_of_a_known_size_only_and_not_at_once() -> None:
    work = Work(100.0, {"verify.a": 3000, "verify.b": 1000}, "rows", {"verify.a"})
    assert work.summary(130.0) == "3,000 of 4,000 rows, 100 rows/s, about 10 s left"
    assert work.summary(103.0) == "3,000 of 4,000 rows"
    assert Work(100.0, {"verify.a": 3000}, "rows").summary(900.0) == "0 of 3,000 rows"
    tables = {"compact.a": 1, "compact.b": 1, "compact.c": 1}
    assert Work(0.0, tables, "tables", {"compact.a"}).summary(600.0) == "1 of 3 tables, about 20 min left"
    assert Work(0.0, tables, "tables", set(tables)).summary(600.0) == "3 of 3 tables"
    assert Work(0.0, {"cut": 1, "publish": 1}, "steps", {"cut", "start of Spark"}).summary(600.0) == "1 of 2 steps"
    assert Work(0.0).summary(600.0) == ""


def test_a_step_under_way_says_since_when_and_its_tasks_where_several_are_known() -> None:
    work = Work(0.0, running={"ingest.a": 10.0, "ingest.b": 20.0, "ingest.c": 30.0})
    assert work.under_way(30.0, {"ingest.a": (3, 48), "ingest.b": (0, 1)}) == [
        "ingest.a (20 s, 3 of 48 tasks)",
        "ingest.b (10 s)",
        "ingest.c (0 s)",
    ]
    assert [span(s) for s in (0.4, 179.0, 181.0, 4 * 3600.0)] == ["0 s", "179 s", "3 min", "4.0 h"]


def test_counts_are_words() -> None:
    assert counted("cut", {"files": 1, "bytes": 75, "ignored": 0}, 0.1) == "1 file, 75 B"
    assert (
        counted("cut", {"files": 2_000, "bytes": 3 << 29, "superseded_snapshots": 1}, 9.0) == "2,000 files, 1.5 GiB, 1 superseded snapshot"
    )
    read = {"read": 50_000, "applied": 49_000, "noop": 1_000, "stale": 0, "changes": 49_000, "live": 7}
    assert counted("ingest.a", read, 2.0) == "50,000 read, 49,000 applied, 1,000 no-op (25,000 rows/s)"
    assert counted("ingest.a", {"read": 2, "applied": 2}, 30.0) == "2 read, 2 applied", "seconds of overhead are no rate"
    assert counted("resolve.a", {"inserted": 1, "changes": 1}, 0.1) == "1 inserted"
    assert counted("validate.a", {"inserted": 1, "changes": 1, "held_back": 2}, 0.1) == "2 held back"
    assert counted("respond.a.b", {"responses": 0}, 0.1) == ""


def test_a_log_has_a_line_for_each_step_that_did_something() -> None:
    console = log()
    with shown(console) as progress:
        progress.planned({"cut": 1, "ingest.[bold]a[/bold]": 1, "respond.b": 1}, "steps")
        with telling(progress, "cut") as counts:
            counts["files"] = 2
        progress.began("ingest.[bold]a[/bold]")
        progress.ended("ingest.[bold]a[/bold]", {"read": 7}, 0.5)
        progress.ended("respond.b", {"responses": 0}, 0.2)
        progress.ended("start of Spark", {}, 6.25)
    assert lines(console) == ["cut: 2 files", "ingest.[bold]a[/bold]: 7 read", "start of Spark: 6.2 s"]


def test_a_log_that_is_silent_for_long_says_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_shown, "LOG_SECONDS", 0.05)
    monkeypatch.setattr(progress_shown, "TERMINAL_SECONDS", 0.01)
    console = log()

    def gone() -> None:
        raise ConnectionRefusedError("Spark is gone")

    with shown(console, kept=False) as progress:
        progress.planned({"ingest.a": 1, "ingest.b": 1}, "steps")
        progress.began("ingest.a")
        progress.tasks("ingest.a", gone)
        progress.began("ingest.b")
        progress.tasks("ingest.b", lambda: (3, 48))
        until(lambda: len(lines(console)) > 1)
        progress.ended("ingest.a", {"read": 7}, 0.5)
        progress.ended("ingest.b", {"read": 7}, 0.5)
    assert set(lines(console)) == {"0 of 2 steps; now ingest.a (0 s), ingest.b (0 s, 3 of 48 tasks)"}


def test_a_terminal_shows_what_is_under_way_and_takes_it_away_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_shown, "TERMINAL_SECONDS", 0.01)
    console = Console(file=(written := StringIO()), force_terminal=True, width=80, color_system=None, _environ={"TERM": "xterm"})
    with shown(console, kept=False) as progress:
        progress.planned({"compact.a": 1, "compact.b": 1}, "tables")
        with telling(progress, "compact.a") as counts:
            counts["folded"] = 2
        progress.began("compact.b")
        progress.tasks("compact.b", lambda: (3, 48))
        until(lambda: "compact.b (0 s, 3 of 48 tasks)" in written.getvalue())
    text = written.getvalue()
    assert "1 of 2 tables" in text
    assert "2 folded" not in text
    assert text.rstrip("\r").endswith("\x1b[2K"), "the line is erased"


def test_a_failed_step_ends_the_display_and_is_told_as_an_error_only() -> None:
    console = log()
    with pytest.raises(ZeroDivisionError), shown(console) as progress, telling(progress, "ingest.a"):
        _ = 1 / 0
    assert lines(console) == []
    assert not [t for t in threading.enumerate() if t.name == "progress"]


def test_a_log_that_nobody_reads_any_more_stops_no_run() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    gone = os.fdopen(writing, "w")
    with shown(Console(file=gone, force_terminal=False)) as progress, telling(progress, "cut") as counts:
        counts["files"] = 2
    with pytest.raises(BrokenPipeError):  # it is broken indeed
        gone.close()


def test_nobody_is_told_nothing() -> None:
    with shown(None) as progress, telling(progress, "cut") as counts:
        counts["files"] = 2
    assert progress is SILENT


def test_what_spark_says_is_passed_on_but_for_what_it_always_says() -> None:
    program = (
        "import os, threading\n"
        "from rejoin.lake.spark import jvm\n"
        "heard, said = os.pipe()\n"
        "listener = threading.Thread(target=jvm._pass_on, args=(heard,))\n"
        "listener.start()\n"
        "os.write(said, jvm.NO_NEWS + b'\\n# There is not enough memory\\nno end')\n"
        "os.close(said)\n"
        "listener.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stderr == "# There is not enough memory\nno end"
