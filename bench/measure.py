"""How a piece of work is measured: seconds, Spark jobs, the bytes that this process and its JVM read and wrote, and the memory of this process."""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import track

from rejoin.lake.spark.session import JobCounter

T = TypeVar("T")
Stages = dict[str, tuple[float, int]]
"""Step -> (seconds, Spark jobs) of one rejoin run."""

P95_FROM = 5
"""Fewer repeats say nothing about a 95th percentile."""

CONSOLE = Console(width=None if sys.stdout.isatty() else 160)


def tracked(work: Iterable[T], what: str, total: int | None = None) -> Iterable[T]:
    """The same pieces of work, with a bar of how far they are and how long the others will take; in a file or pipe there is none."""
    return track(work, what, total, console=CONSOLE, transient=True, disable=not CONSOLE.is_terminal)


@dataclass(frozen=True)
class Done:
    """What a piece of work tells about itself: its Spark jobs (None: it used no Spark), its stages if it has some, and ``way``: how
    rejoin brought its outputs up to date, incremental or full.
    """

    jobs: int | None = None
    stages: Stages = field(default_factory=dict)
    way: str = ""


@dataclass(frozen=True)
class Spent:
    """What one piece of work cost; ``load`` is the machine's when it began, ``resident`` what this process had in memory at most, in bytes."""

    seconds: float
    read: int
    written: int
    load: float
    done: Done
    resident: int


@dataclass(frozen=True)
class Row:
    """One line of the results: medians of the counted repeats.

    ``side``: left, right, full (recomputed), load (first load) or tidy (compaction, checkpoint; ``k`` is ``n`` for the one after the first load).
    ``read``, ``written``: bytes asked from and given to the operating system, cached or not. ``load``: the machine's, at the start of the first.
    ``resident``: bytes that this process, without its JVM, had in memory at most; 0 in results from before that was measured.
    """

    engine: str
    n: int
    k: int
    side: str
    seconds: float
    p95: float | None
    repeats: int
    jobs: int | None
    read: int
    written: int
    load: float
    stages: Stages
    way: str
    resident: int = 0


def spend(work: Callable[[], Done]) -> Spent:
    """Does the work once and measures it."""
    load, (read, written) = os.getloadavg()[0], _bytes()
    Path("/proc/self/clear_refs").write_text("5")  # the kernel's record of the most resident memory begins anew
    started = time.monotonic()
    done = work()
    seconds = time.monotonic() - started
    now = _bytes()
    return Spent(seconds, now[0] - read, now[1] - written, load, done, _most_resident())


def in_spark(spark: SparkSession, work: Callable[[], object]) -> Done:
    """Does the work in this thread and counts its Spark jobs."""
    with JobCounter(spark, f"bench {time.monotonic_ns()}") as counter:
        work()
    return Done(counter.jobs)


def row(engine: str, n: int, k: int, side: str, spent: Sequence[Spent]) -> Row:
    """The medians of some repeats, printed as well."""
    seconds = [s.seconds for s in spent]
    middle = sorted(spent, key=lambda s: s.seconds)[len(spent) // 2]
    made = Row(
        engine,
        n,
        k,
        side,
        round(statistics.median(seconds), 4),
        round(quantile(seconds, 0.95), 4) if len(seconds) >= P95_FROM else None,
        len(seconds),
        middle.done.jobs,
        int(statistics.median(s.read for s in spent)),
        int(statistics.median(s.written for s in spent)),
        round(spent[0].load, 1),
        {step: (round(s, 3), jobs) for step, (s, jobs) in middle.done.stages.items()},
        middle.done.way,
        max(s.resident for s in spent),
    )
    CONSOLE.print(f"{engine:26} n={n:,} k={k:,} {side}: {made.seconds:.2f} s, jobs {made.jobs}, load {made.load}", highlight=False)
    return made


def _most_resident() -> int:
    """The most bytes that this process has had in memory since the record began (proc(5), VmHWM)."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(told["VmHWM"].split()[0]) << 10


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile of some values, by linear interpolation."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def save(rows: Sequence[Row] | Sequence[dict[str, object]], file: Path) -> None:
    """Writes rows as a JSON list, one a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    plain = [asdict(r) if isinstance(r, Row) else r for r in rows]
    file.write_text("[\n" + ",\n".join("  " + json.dumps(r) for r in plain) + "\n]\n")


def saved_rows(file: Path) -> list[Row]:
    """The rows that ``save`` wrote."""
    return [Row(**r) for r in json.loads(file.read_text())]


def jvms() -> list[psutil.Process]:
    """The JVMs that this process has started."""
    return [p for p in psutil.Process().children(recursive=True) if p.name() == "java"]


def _bytes() -> tuple[int, int]:
    """Bytes read and written so far by this process and its JVM; not by Spark's Python workers, whose bytes pass through the JVM."""
    counters = [p.io_counters() for p in (psutil.Process(), *jvms())]
    return sum(c.read_chars for c in counters), sum(c.write_chars for c in counters)
