"""What more cores give: the same work by this process alone (engine local, no Java), with all its threads on 1, 2, 4, ... cores. `python bench/cores.py 3000000`

Prints a line for each piece of work: seconds and CPU seconds for each number of cores, the CPU seconds of its busiest threads with the most cores, and the
serial share: how much of the time on one core more cores do not make shorter (by Amdahl's law, from the first and the last number of cores).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

FEW, SOME, HALF = 0.0001, 0.01, 0.5
PIECES = (("left", FEW), ("left", SOME), ("left", SOME), ("left", HALF), ("right", FEW), ("right", SOME), ("right", HALF))
"""The changes, one run each: the side, and the share of all rows. The same twice: the first one after a load touches more memory for the first time."""
TICKS = os.sysconf("SC_CLK_TCK")
BUSIEST = 4


@dataclass(frozen=True)
class Cost:
    """One piece of work on some cores: seconds of the clock, of all threads, and of the busiest ones."""

    what: str
    seconds: float
    cpu: float
    threads: list[float]


class Threads:
    """CPU seconds by thread of this process, also of those that have ended; looked at every 20 ms."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    def busiest(self) -> list[float]:
        """Of the busiest threads, until now."""
        self._over.set()
        self._looking.join()
        return sorted((last - self._first[thread] for thread, last in self._last.items()), reverse=True)[:BUSIEST]

    def _look(self) -> None:
        own = str(threading.get_native_id())
        while not self._over.wait(0.02):
            for thread in Path("/proc/self/task").iterdir():
                try:
                    fields = (thread / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has just ended
                if thread.name != own:
                    self._last[thread.name] = (int(fields[11]) + int(fields[12])) / TICKS
                    self._first.setdefault(thread.name, self._last[thread.name])


def measured(what: str, work: Callable[[], object]) -> Cost:
    threads, cpu, began = Threads(), time.process_time(), time.monotonic()
    work()
    seconds, spent = time.monotonic() - began, time.process_time() - cpu
    return Cost(what, seconds, spent, threads.busiest())


def here(rows: int) -> None:
    """Prints a line of JSON for each piece of work, all done by this process."""
    from work import JOIN, Work

    from rejoin.engines.choice import EngineChoice
    from rejoin.lake.config import lake_config
    from rejoin.plan.check.topology_file import load
    from rejoin.steps.run.schedule import run_topology
    from rejoin.steps.run.topology import Topology

    def no_spark() -> NoReturn:
        raise SystemExit("this work needs no Spark")

    def tell(what: str, piece: Callable[[], object]) -> None:
        print(json.dumps(asdict(measured(what, piece))), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "work")
        root.mkdir()
        work = Work(rows, root)
        work.first_rows()
        config = replace(lake_config(str(root / "lake")), engine=EngineChoice.LOCAL)
        topology = Topology(load(str(root / "topology.py")), config, str(root))
        full = f"COPY ({JOIN.format(hint='', **work.sources())}) TO '{root}/full.parquet' (FORMAT parquet)"
        work.db.execute(full)
        tell("DuckDB joins everything", lambda: work.db.execute(full))
        pieces = [
            ("first load", "", 0),
            *((f"{max(1, int(rows * share)):,} {side} rows", side, max(1, int(rows * share))) for side, share in PIECES),
        ]
        for what, side, count in pieces:
            if side:
                work.change(side, count)
            tell(what, lambda: run_topology(topology, no_spark, f"cores {time.monotonic_ns()}"))
            work.landed()


def on_cores(rows: int, cores: list[int]) -> list[Cost]:
    """The costs of a process of its own that has these cores only."""
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, __file__, str(rows), "--here"]
    return [Cost(**json.loads(line)) for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]


def line(costs: dict[int, Cost]) -> str:
    """One piece of work on each number of cores, as a line of a table."""
    few, many = min(costs), max(costs)
    times = (f"{cost.seconds:.2f} ({cost.cpu:.2f})" for cost in costs.values())
    threads = ", ".join(f"{spent:.2f}" for spent in costs[many].threads)
    share = (costs[many].seconds / costs[few].seconds - few / many) / (1 - few / many) if few < many else 1.0
    return f"| {costs[few].what} | {' | '.join(times)} | {threads} | {share:.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=3_000_000, help="orders; there is a customer for every 20")
    parser.add_argument("--cores", type=int, nargs="*", help="numbers of cores (1, 2, 4, ... as many as there are)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        here(asked.rows)
        return
    there = sorted(os.sched_getaffinity(0))
    numbers = asked.cores or [n for n in (1, 2, 4, 8, 16, 32) if n <= len(there)]
    found = {n: on_cores(asked.rows, there[:n]) for n in numbers}
    print(f"{asked.rows:,} orders; seconds (CPU seconds); load before it {os.getloadavg()[2]:.1f}")
    print(f"| | {' | '.join(f'{n} cores' for n in numbers)} | busiest threads | serial share |\n|---|{'---:|' * (len(numbers) + 2)}")
    for at in range(len(found[numbers[0]])):
        print(line({n: costs[at] for n, costs in found.items()}))


if __name__ == "__main__":
    main()
