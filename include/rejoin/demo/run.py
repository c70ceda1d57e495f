"""demo: first load, several runs of changes, then verify; each run with what it changed and what it cost."""

import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rejoin import deployed
from rejoin.demo.story import Chapter, Landing, Year, records, story
from rejoin.errors import SetupError
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.steps import Verb
from rejoin.report import history
from rejoin.report.progress import shown
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPOLOGY, STREAMS, DOCUMENTS = (deployed.DAGS / f"{name}.py" for name in ("flights", "departures", "aeroplanes"))
MARKER = ".rejoin-demo"
"""The file that says: this directory may be emptied, a demo made it."""


def demo(console: Console, location: Path, days: int = 365, *, airflow: bool = False) -> int:
    """Runs the demo in ``location``, which is emptied first, and tells its story on ``console``.

    Args:
        console: where to print.
        location: a directory that does not exist, is empty, or was made by an earlier demo.
        days: only the flights of so many days, for tests; 28 are enough (of 8, the last runs change more than half, which the fuse refuses).
        airflow: every run is a run of the DAG ``flights`` in an Airflow that is started for the demo; else a run in this process.

    Returns:
        How many differences ``verify`` found at the end; 0 unless rejoin is broken.

    Raises:
        SetupError: ``location`` holds something that no demo made.
    """
    _empty(location)
    console.print(
        f"Every flight that left New York in 2013, joined with its airline, its plane and both airports ({location})", soft_wrap=True
    )
    topology = Topology(load(str(TOPOLOGY)), lake_config(str(location / "lake")), str(location.resolve()))
    year = Year.read(days)
    records(year, Landing(location / "landing"))
    chapters = story(year, Landing(location / "landing"))
    with (_in_airflow if airflow else _in_process)(console, topology, location) as run:
        told = [_told_run(console, topology, run, chapter) for chapter in chapters]  # each run before the next chapter is delivered
    console.print()
    console.print(_table(told))
    differences = _verify(console, topology)
    _next_steps(console, location, told)
    return differences


# --- two ways to run ------------------------------------------------------------------------------------------------------

Runs = Callable[[], Run]


@contextmanager
def _in_process(console: Console, topology: Topology, location: Path) -> Iterator[Runs]:  # noqa: ARG001
    """As ``rejoin run`` does it."""
    spark = _session(console, topology)

    def run() -> Run:
        with shown(console if console.is_terminal else None, kept=False) as progress:
            return run_topology(topology, spark, run_owner.this_process(), progress)

    yield run


@contextmanager
def _in_airflow(console: Console, topology: Topology, location: Path) -> Iterator[Runs]:
    """As a trigger in Airflow's UI does it: one task a stage, on a warm Spark Connect server."""
    from rejoin.airflow.local import server

    started = time.monotonic()
    where = server.up(location, server.free_port(), lambda text: console.print(text, markup=False), schedules=False)
    client, dag = where.client(), topology.plan.topology
    try:
        client.pause(dag, paused=False)
        console.print(f"Airflow started in {time.monotonic() - started:.1f} s; while the demo runs, look at it:")
        console.print(f"  {where.url}/dags/{dag}   user {server.USER}   password {where.password}", markup=False, soft_wrap=True)

        def run() -> Run:
            with console.status("waiting for Airflow") as status:
                state = client.follow(
                    dag, client.trigger(dag, f"demo-{uuid.uuid4().hex[:8]}"), lambda tasks: status.update(_progress(tasks))
                )
            if state != "success":
                raise SetupError(
                    f"a run of the DAG {dag} ended as {state}", next_step=f"look at {where.url}, or at {where.folder}/airflow/logs"
                )
            newest = topology.ledger.newest()
            assert newest is not None
            return newest

        yield run
    finally:
        server.down(location, lambda text: console.print(f"Airflow {text}", markup=False))


def _progress(tasks: dict[str, str]) -> str:
    now = [task for task, state in tasks.items() if state == "running"]
    return f"{sum(state == 'success' for state in tasks.values())} of {len(tasks)} tasks done, now {', '.join(now) or '-'}"


# --- running and printing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChapterResult:
    """A chapter and what its run did and cost."""

    chapter: Chapter
    run: int
    read: int
    inserted: int
    updated: int
    deleted: int
    seconds: float
    jobs: int | None


def _told_run(console: Console, topology: Topology, runs: Runs, chapter: Chapter) -> ChapterResult:
    console.print(f"\n[bold]{chapter.name}[/bold]: ", end="", markup=True)
    console.print(chapter.sentence, markup=False, soft_wrap=True)
    run = runs()
    told = _told(chapter, run.number, (run.closed_at or time.time()) - run.opened_at, list(topology.ledger.steps(run.number).values()))
    cost = f"{told.seconds:.1f} s" + ("" if told.jobs is None else f", {told.jobs} Spark jobs")
    changed = f"{told.inserted:,} inserted, {told.updated:,} updated, {told.deleted:,} deleted"
    console.print(f"  run {told.run}: {told.read:,} rows read; flights_enriched: {changed}; {cost}", soft_wrap=True)
    return told


def _told(chapter: Chapter, run: int, seconds: float, steps: list[StepRecord]) -> ChapterResult:
    resolved = next(step.counts for step in steps if step.verb == Verb.RESOLVE)
    read = sum(step.counts["read"] for step in steps if step.verb == Verb.INGEST)
    jobs = None if any(step.jobs is None for step in steps) else sum(step.jobs or 0 for step in steps)
    return ChapterResult(chapter, run, read, resolved["inserted"], resolved["updated"], resolved["deleted"], seconds, jobs)


def _table(told: list[ChapterResult]) -> Table:
    table = Table("run", "what was new", title="what each run did to flights_enriched, and its cost", box=SIMPLE_HEAD, title_justify="left")
    for name in ("rows read", "inserted", "updated", "deleted", "seconds", "jobs"):
        table.add_column(name, justify="right")
    for one in told:
        counts = (f"{n:,}" for n in (one.read, one.inserted, one.updated, one.deleted))
        table.add_row(str(one.run), one.chapter.name, *counts, f"{one.seconds:.1f}", "-" if one.jobs is None else str(one.jobs))
    return table


def _verify(console: Console, topology: Topology) -> int:
    from rejoin.operate.verify.verify import verify

    started = time.monotonic()
    console.print("\n[bold]verify[/bold]: the whole join once more from the source tables, compared row by row", markup=True)
    with shown(console if console.is_terminal else None, kept=False) as progress:
        found = verify(topology, _session(console, topology), fast=False, progress=progress)
    console.print(f"  {sum(one.rows for one in found):,} rows in {time.monotonic() - started:.1f} s")
    history.verification(console, found, fast=False)
    return sum(one.total for one in found)


def _next_steps(console: Console, location: Path, told: list[ChapterResult]) -> None:
    rejoin, lake = _command(), f"--lake {location / 'lake'}"
    lines = (
        f"{rejoin} history {lake}",
        f"{rejoin} changes flights_enriched --run {told[3].run} --limit 2 {lake}",
        f"{rejoin} get flights_enriched 2013-01-01T10:00:00Z UA 1545 {lake}",
        f"{rejoin} get flights_enriched 2013-01-01T10:00:00Z UA 1545 --as-of {told[0].run} {lake}",
        f"{rejoin} explain {_near(TOPOLOGY)}",
        f"{rejoin} run {_near(STREAMS)} {lake} --root {location}   # streams: the same flights with the weather of their hour",
        f"{rejoin} run {_near(DOCUMENTS)} {lake} --root {location}   # documents: every aeroplane with its latest flights",
    )
    console.print("\nwhat to try next:")
    for line in lines:
        console.print(f"  {line}", markup=False, soft_wrap=True)


# --- helpers ------------------------------------------------------------------------------------------------------------


def _empty(location: Path) -> None:
    if location.exists() and any(location.iterdir()) and not (location / MARKER).is_file():
        raise SetupError(
            f"{location} is not empty, and no demo made it; nothing was touched",
            expected="a directory that does not exist, is empty, or holds an earlier demo",
            next_step="pass another directory with --lake",
        )
    location.mkdir(parents=True, exist_ok=True)
    (location / MARKER).write_text("`rejoin demo` made this directory and empties it whenever it runs.\n")
    for name in ("lake", "landing", "airflow", "logs"):
        shutil.rmtree(location / name, ignore_errors=True)


def _session(console: Console, topology: Topology) -> "Callable[[], SparkSession]":
    """Starts Spark if something needs it: no step of the flights does."""

    def start() -> "SparkSession":
        from rejoin.lake.spark.session import session

        started = time.monotonic()
        made = session(topology.config)
        console.print(f"Spark started in {time.monotonic() - started:.1f} s")
        return made

    return start


def _near(file: Path) -> Path:
    """Its path from here, if it is below."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _command() -> str:
    """How this program can be called again: by its name if the PATH has it, else as it was called."""
    return sys.argv[0] if Path(sys.argv[0]).name == "rejoin" and shutil.which("rejoin") is None else "rejoin"
