"""What a person waits for: every command on the project of ``rejoin init``, and the runs of a DAG in the Airflow of ``rejoin up``.

    bench/commands.py [--parts commands,dags] [--repeats 5] [--out DIR]

Seconds from the start of a process to its end; of a DAG run from its trigger to its end, as Airflow has written them down. Medians. Seconds of CPU
are those of the processes that were waited for (not of Java, which a command leaves to end by itself), and say something even where others are at
work on the machine.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import psutil
from folders import PROJECT, Folders
from measure import CONSOLE, tracked
from report import write

from rejoin.airflow.local.client import Client
from rejoin.airflow.local.server import USER, free_port, up
from rejoin.demo.examples import deliver
from rejoin.deployed import SHOP

PARTS = ("commands", "dags")
FILE = "commands.json"
Told = Callable[[], None]


@dataclass(frozen=True)
class Timed:
    """One thing that was timed.

    ``seconds``, ``cpu``: of each repeat; ``load``: of the machine before the first; ``goal``: in seconds; ``tasks``: median seconds of a DAG run's tasks.
    """

    part: str
    what: str
    seconds: list[float]
    cpu: list[float]
    load: float
    goal: float | None = None
    tasks: dict[str, float] | None = None


def main() -> None:
    """Measures, saves, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure, separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=PROJECT, help="where results and report go")
    asked = parser.parse_args()
    folders = Folders(asked.out.resolve())
    parts = [p for p in asked.parts.split(",") if p]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    made = [t for part in parts for t in {"commands": commands, "dags": dags}[part](folders.empty(part), asked.repeats)]
    file = folders.results / FILE
    kept = [r for r in (json.loads(file.read_text()) if file.is_file() else []) if r["part"] not in parts]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sorted([*kept, *map(asdict, made)], key=lambda r: PARTS.index(r["part"])), indent=1) + "\n")
    for grid in write(folders):
        CONSOLE.print(grid.rich())


# --- commands -------------------------------------------------------------------------------------------------------------


def commands(root: Path, repeats: int) -> Iterator[Timed]:
    """Every command that reads, in the order in which a newcomer meets them, and runs."""
    rejoin(root, "init", "shop")
    shop = root / "shop"
    orders = Landed(shop / "landing" / "orders")

    def timed(what: str, *words: str, before: Told = lambda: None, times: int = repeats, **more: str) -> Timed:
        return repeated("commands", what, lambda: rejoin(shop, *(words or what.split()), **more), before, times)

    yield timed("--help")
    yield timed("--version")
    yield timed("explain shop.py")
    yield timed("plan shop.py, nothing run yet", "plan", "shop.py")
    yield timed("run shop.py, the first one", "run", "shop.py", times=1)
    yield timed("run shop.py, nothing new", "run", "shop.py")
    yield timed("run shop.py, one changed row", "run", "shop.py", before=orders.land)
    for words in ("history", "history --run 1", "get orders_enriched 2", "changes orders_enriched", "why orders_enriched 2"):
        yield timed(words)
    yield timed("head orders_enriched")
    yield timed("sql 'SELECT count(*) ...'", "sql", "SELECT count(*) FROM orders_enriched")
    yield timed("quarantine list")
    yield timed("sinks")
    yield timed("plan shop.py")
    spark = max(1, repeats // 2)
    yield timed("setup", times=spark)
    yield timed("verify --fast", times=spark)
    yield timed("verify", times=spark)
    yield timed("compact", before=orders.land_and_run(shop), times=spark)
    yield timed(
        "run --engine spark, one changed row", "run", "shop.py", "--engine", "spark", before=orders.land, times=spark, REJOIN_ENGINE=""
    )


class Landed:
    """A landing directory of snapshots, which gets another one with one other row each time."""

    def __init__(self, place: Path) -> None:
        self._place, self._count = place, 1
        self._first = (place / "0001.csv").read_text()

    def land(self) -> None:
        """One more snapshot: the last row has another last value."""
        self._count += 1
        row, _, last = self._first.rstrip("\n").rpartition(",")
        changed = f"{float(last) + self._count:.2f}" if last.replace(".", "").isdigit() else f"{last} {self._count}"
        (self._place / f"{self._count:04}.csv").write_text(f"{row},{changed}\n")

    def land_and_run(self, shop: Path) -> Told:
        """The same, and a run that takes it."""

        def both() -> None:
            self.land()
            rejoin(shop, "run", "shop.py")

        return both


def repeated(part: str, what: str, work: Told, before: Told, times: int) -> Timed:
    """The seconds of some work; ``before`` each time is not counted."""
    load, spent, cpu = os.getloadavg()[0], [], []
    for _ in tracked(range(times), what):
        before()
        began, used = time.monotonic(), _ended_cpu()
        work()
        spent.append(round(time.monotonic() - began, 3))
        cpu.append(round(_ended_cpu() - used, 3))
    CONSOLE.print(f"{time.strftime('%H:%M:%S')} {what}: {statistics.median(spent):.2f} s, load {load:.1f}", highlight=False)
    return Timed(part, what, spent, cpu, round(load, 1))


def _ended_cpu() -> float:
    """Seconds of CPU of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rejoin(where: Path, *words: str, **more: str) -> None:
    """One command, as it is typed in a directory.

    Raises:
        RuntimeError: it failed.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("REJOIN_ENGINE", "SPARK_REMOTE")} | {k: v for k, v in more.items() if v}
    environment.setdefault("PYTHONPATH", str(PROJECT / "include"))
    done = subprocess.run(
        [sys.executable, "-m", "rejoin.cli", *words], cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"rejoin {' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")


# --- DAG runs -------------------------------------------------------------------------------------------------------------

GOALS = {"nothing new": 8.0, "a few changed rows": 12.0}
DAG = "shop"


def dags(root: Path, repeats: int) -> Iterator[Timed]:
    """Runs of the example ``shop`` through a real scheduler and a warm Spark Connect server."""
    deliver(root / "up")
    made = up(root / "up", free_port(), lambda text: CONSOLE.print(text, markup=False), schedules=False)
    try:
        client = Client(made.url, USER, made.password)
        client.pause(DAG, paused=False)
        parts = [pid for pid, _ in made.processes.values()]
        yield dag_runs(client, parts, "the first one", 1, lambda: None)
        yield dag_runs(client, parts, "nothing new", repeats, lambda: None)
        yield dag_runs(client, parts, "a few changed rows", repeats, Events(root / "up" / "landing" / "shop").land)
    finally:
        rejoin(root, "down", "--dir", "up")


def dag_runs(client: Client, parts: list[int], what: str, times: int, before: Told) -> Timed:
    """DAG runs one after the other, from trigger to end, and how long their tasks took. ``parts``: the processes of Airflow and Spark.

    Raises:
        RuntimeError: a run failed.
    """
    load, spent, cpu, tasks = os.getloadavg()[0], [], [], dict[str, list[float]]()
    for _ in tracked(range(times), f"DAG run, {what}"):
        before()
        name, used = f"timed_{time.time():.0f}", _cpu(parts)
        if client.follow(DAG, client.trigger(DAG, name), lambda _: None) != "success":
            raise RuntimeError(f"DAG run {name} failed: {client.states(DAG, name)}")
        run = client.run(DAG, name)
        spent.append(round(_moment(run["end_date"]) - _moment(run["queued_at"]), 3))
        cpu.append(round(_cpu(parts) - used, 3))
        for task, one in client.tasks(DAG, name).items():
            tasks.setdefault(task, []).append(_moment(one["end_date"]) - _moment(one["start_date"]))
    CONSOLE.print(f"{time.strftime('%H:%M:%S')} DAG run, {what}: {statistics.median(spent):.1f} s, load {load:.1f}", highlight=False)
    medians = {task: round(statistics.median(took), 2) for task, took in tasks.items()}
    return Timed("dags", what, spent, cpu, round(load, 1), GOALS.get(what), medians)


def _cpu(parts: list[int]) -> float:
    """Seconds of CPU that processes, those they have started, and those of these that have ended have used."""
    found = {p.pid: p for pid in parts for p in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))}
    return sum(sum(p.cpu_times()[:4]) for p in found.values() if p.is_running())


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Events:
    """The landing directory of the example, which gets a file of a few newer events each time."""

    def __init__(self, place: Path) -> None:
        self._place, self._count = place, 1
        found = [json.loads(line) for line in SHOP.read_text().splitlines()]
        values = [(e, json.loads(e["value"])) for e in found if e["topic"].endswith(".orders") and e["value"]]
        self._last = [(e, v) for e, v in values if v.get("after")][-1]
        self._lsn = max(int(v["source"]["lsn"]) for _, v in values)

    def land(self) -> None:
        """Three changes of one order."""
        self._count += 1
        event, value = self._last
        lines = []
        for number in range(3):
            self._lsn += 1
            newer = value["source"] | {"lsn": self._lsn, "sequence": json.dumps([None, str(self._lsn)]), "snapshot": "false"}
            after = value["after"] | {"st": f"status {self._count} {number}"}
            lines.append(json.dumps(event | {"value": json.dumps(value | {"before": None, "after": after, "source": newer, "op": "u"})}))
        (self._place / f"{self._count:04}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
