"""What executors give: the same work by this process alone, and by a standalone Spark cluster of one worker and of two, of one core each. `python bench/executors.py 1000000`

Prints a line for each piece of work: seconds and CPU seconds of all processes (driver, its JVM, workers, executors and their Python).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
PIECES = (("load", 1.0), ("left", 0.5), ("right", 0.5), ("left", 0.1))
WORKERS = (0, 1, 2)
"""None: this process, on two cores."""
JAVA = "-XX:TieredStopAtLevel=1"
"""docs/operations.md: of executors that only do tasks."""
LAKE = """
warehouse = "file://{root}/lake/warehouse"
catalog = "sqlite"
uri = "sqlite:///{root}/lake/catalog.db"
[spark]
"spark.master" = "{master}"
"spark.executor.cores" = "1"
"spark.executor.memory" = "768m"
"spark.driver.defaultJavaOptions" = "{java}"
"spark.executor.defaultJavaOptions" = "{java}"
"spark.pyspark.python" = "{python}"
"""


def spent() -> float:
    """CPU seconds of this process and all below it, also of those that have ended."""
    own = psutil.Process()
    total = 0.0
    for process in [own, *own.children(recursive=True)]:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + (times.children_user + times.children_system if process != own else 0.0)
    return total


def here(rows: int, workers: int) -> None:
    """Prints a line of JSON for each piece of work."""
    from integration.hosts import HERE
    from integration.servers import spark_cluster
    from work import Work

    from rejoin.lake.config import lake_config
    from rejoin.lake.spark.session import session
    from rejoin.plan.check.topology_file import load
    from rejoin.steps.run.schedule import run_topology
    from rejoin.steps.run.topology import Topology

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "work")
        root.mkdir()
        work = Work(rows, root)
        work.first_rows()
        (root / "cluster").mkdir()
        with spark_cluster(root / "cluster", workers=[HERE] * workers) if workers else nullcontext() as cluster:
            where = str(root / "lake")
            if cluster is not None:
                (root / "lake").mkdir()
                (root / "lake.toml").write_text(LAKE.format(root=root, master=cluster.url, python=sys.executable, java=JAVA))
                where = str(root / "lake.toml")
            config = lake_config(where)
            topology = Topology(load(str(root / "topology.py")), config, str(root))
            spark = partial(session, config)
            if workers:
                spark().range(10).count()
            for number, (side, share) in enumerate(PIECES):
                if side != "load":
                    work.landed()
                    work.change(side, int(rows * share))
                cpu, began = spent(), time.monotonic()
                done = run_topology(topology, spark, f"run {number}")
                seconds = time.monotonic() - began
                engines = sorted({s.detail.get("engine", "-") for s in topology.ledger.steps(done.number).values()})
                name = side if side == "load" else f"{share:.0%} of all {side} rows"
                print(
                    json.dumps({"what": name, "workers": workers, "seconds": seconds, "cpu": spent() - cpu, "engines": engines}), flush=True
                )


def main() -> None:
    """Measures each number of workers in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--workers", type=int, help="only this many, in this process")
    asked = parser.parse_args()
    if asked.workers is not None:
        here(asked.rows, asked.workers)
        return
    for workers in WORKERS:
        environment = {**os.environ, "REJOIN_ENGINE": "spark" if workers else "local"}
        command = [sys.executable, __file__, str(asked.rows), "--workers", str(workers)]
        print(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout, flush=True)


if __name__ == "__main__":
    main()
