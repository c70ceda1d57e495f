"""Progress as people see it: what is under way on a terminal; in a log a line for each step that is done, and one now and then in between.

 0.1 s  cut: 2 files, 75 B
12.4 s  ingest.orders: 336,776 read, 336,776 applied (28,064 rows/s)
22.4 s  4 of 9 steps; now resolve.enriched (10 s, 12 of 48 tasks)
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from time import monotonic

from rich.console import Console
from rich.text import Text

from rejoin.context.progress import SILENT, Ask, Progress
from rejoin.plan.model.step_results import NET_CHANGES
from rejoin.plan.model.steps import Verb, parts

LOG_SECONDS = 10.0
"""How long a log may say nothing while something is under way."""
TERMINAL_SECONDS = 0.5
"""How often a terminal shows what is under way."""
EARLY = 5.0
"""After so many seconds what is done says something about the time that is left."""
INSTANT = 1.0
"""A step that counted nothing and took less is not worth a line; nothing that took less has a rate."""
RATED = ("read", "rows")
"""Counts of rows that a step has worked through."""
REPEATED = ("changes", "tables", "implied", "live")
"""Counts that say what others say already, or that only rejoin itself needs."""
LEAST_RATE = 10
"""Rows per second; of fewer, a rate says nothing about rows."""
BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass
class Work:
    """How far a piece of work is. Knows no clock: ``now`` is seconds of any clock that only goes forward. ``planned_at``: since when the steps are
    worked on; Spark's start is before.
    """

    planned_at: float
    steps: dict[str, int] = field(default_factory=dict)
    unit: str = "steps"
    ended: set[str] = field(default_factory=set)
    running: dict[str, float] = field(default_factory=dict)

    def summary(self, now: float) -> str:
        """``3 of 9 tables, about 12 s left``; empty if nothing is planned."""
        total, done = sum(self.steps.values()), sum(n for step, n in self.steps.items() if step in self.ended)
        if not total:
            return ""
        seconds, said = now - self.planned_at, f"{done:,} of {total:,} {self.unit}"
        if self.unit == "steps" or not done or done == total or seconds < EARLY:
            return said
        rate = f", {done / seconds:,.0f} {self.unit}/s" if done >= LEAST_RATE * seconds else ""
        return f"{said}{rate}, about {span(seconds * (total - done) / done)} left"

    def under_way(self, now: float, tasks: Mapping[str, tuple[int, int]]) -> list[str]:
        """A text for each step that is under way: ``resolve.enriched (10 s, 12 of 48 tasks)``."""
        shares = {step: f", {done:,} of {total:,} tasks" for step, (done, total) in tasks.items() if total > 1}
        return [f"{step} ({span(now - since)}{shares.get(step, '')})" for step, since in self.running.items()]


def span(seconds: float) -> str:
    """``12 s``, ``3 min``, ``2.5 h``: as precise as an estimate is."""
    if seconds < 180:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 180 * 60 else f"{seconds / 3600:.1f} h"


def counted(step: str, counts: Mapping[str, int], seconds: float) -> str:
    """What a step has counted, in words: ``336,776 read, 336,776 applied (28,064 rows/s)``. Empty if it counted nothing."""
    repeated = (*REPEATED, *NET_CHANGES) if parts(step)[0] == Verb.VALIDATE else REPEATED  # a validation says again what resolve has said
    rows = next((counts[name] for name in RATED if counts.get(name)), 0)
    rate = f" ({rows / seconds:,.0f} rows/s)" if seconds >= INSTANT and rows >= LEAST_RATE * seconds else ""
    return ", ".join(_words(n, name) for name, n in counts.items() if n and name not in repeated) + rate


def _words(count: int, name: str) -> str:
    if name == "bytes":
        unit = min(max(count.bit_length() - 1, 0) // 10, len(BYTES) - 1)
        return f"{count / 1024**unit:,.{1 if unit else 0}f} {BYTES[unit]}"
    words = name.replace("noop", "no-op").replace("_", " ")
    return f"{count:,} {words.removesuffix('s') if count == 1 else words}"


class _Shown:
    """Progress on a console. ``kept``: a line stays of every step that has done something."""

    def __init__(self, console: Console, *, kept: bool) -> None:
        self._console, self._kept, self._lock = console, kept, Lock()
        self._live = console.is_terminal and not console.is_dumb_terminal
        self._status = console.status("", spinner="dots") if self._live else None
        self._began_at = self._said_at = monotonic()
        self._work, self._asks = Work(self._began_at), dict[str, Ask]()
        self._stop, self._ticking = Event(), Thread(target=self._tick, name="progress", daemon=True)

    def start(self) -> None:
        if self._status is not None:
            self._status.start()
        self._ticking.start()

    def stop(self) -> None:
        self._stop.set()
        self._ticking.join(1)  # unless it waits for an answer of Spark
        if self._status is not None:
            self._status.stop()

    def planned(self, steps: Mapping[str, int], unit: str) -> None:
        with self._lock:
            self._work = Work(monotonic(), dict(steps), unit, running=self._work.running)

    def began(self, step: str) -> None:
        with self._lock:
            self._work.running[step] = monotonic()

    def tasks(self, step: str, ask: Ask) -> None:
        with self._lock:
            self._asks[step] = ask

    def ended(self, step: str, counts: Mapping[str, int], seconds: float) -> None:
        with self._lock:
            self._work.running.pop(step, None)
            self._asks.pop(step, None)
            self._work.ended.add(step)
            said = counted(step, counts, seconds)
            if self._kept and (said or seconds >= INSTANT):
                self._line(f"{step}: {said or f'{seconds:.1f} s'}")

    def _tick(self) -> None:
        while not self._stop.wait(TERMINAL_SECONDS):
            silent = monotonic() - self._said_at
            if self._live or silent >= LOG_SECONDS:
                tasks = self._asked()
                with self._lock:
                    self._show(tasks)

    def _asked(self) -> dict[str, tuple[int, int]]:
        """Asked without the lock: Spark answers when it has time, or has gone."""
        with self._lock:
            asks = dict(self._asks)
        found = {}
        for step, ask in asks.items():
            with suppress(Exception):
                if (tasks := ask()) is not None:
                    found[step] = tasks
        return found

    def _show(self, tasks: Mapping[str, tuple[int, int]]) -> None:
        now = monotonic()
        summary, running = self._work.summary(now), self._work.under_way(now, tasks)
        if self._status is not None:
            head = f"{span(now - self._began_at)}  {summary}".rstrip()
            self._status.update(Text("\n  ".join([head, *running])))
        elif running:
            self._line("; ".join(part for part in (summary, f"now {', '.join(running)}") if part))

    def _line(self, text: str) -> None:
        self._said_at = monotonic()
        line = f"{self._said_at - self._began_at:7.1f} s  {text}"
        if self._live:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            with suppress(OSError, ValueError):  # who reads the log has gone, which is no reason for a run to stop
                print(line, file=self._console.file, flush=True)


@contextmanager
def shown(console: Console | None, *, kept: bool = True) -> Iterator[Progress]:
    """Progress on a console while the block runs; None: nowhere.

    Args:
        console: a terminal, a file or a pipe.
        kept: whether a line stays of every step that has done something.
    """
    if console is None:
        yield SILENT
        return
    made = _Shown(console, kept=kept)
    made.start()
    try:
        yield made
    finally:
        made.stop()
