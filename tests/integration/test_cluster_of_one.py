"""A cluster that has been told to have one executor: each bulk step is one task there, and what dies costs a retry by Spark."""

import threading
import time
from pathlib import Path

import psutil
import pytest
from integration.hosts import HERE
from integration.on_cluster import LAKE, SECRET, Driver, Place, by_step
from integration.servers import spark_cluster
from integration.stored import stored
from integration.test_cluster import change
from integration.test_tasks import busy
from sparkless import no_spark

from rejoin.lake.iceberg.refs import Refs
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

ONE = '"spark.executor.instances" = "1"\n'


def kill(refs: Refs, worker: int, killed: list[int]) -> None:
    """Kills the Python worker of a task once its step has made the output's table: rows come next."""
    deadline = time.monotonic() + 300
    while "enriched" not in refs.tables():
        assert time.monotonic() < deadline, "nothing was written"
    for one in busy(psutil.Process(worker)):
        one.kill()
        killed.append(one.pid)


@pytest.mark.invariant("I1", "I2", "I9")
def test_each_bulk_step_is_one_task_and_a_killed_worker_costs_one_more(tmp_path: Path) -> None:
    undisturbed = Place(tmp_path / "undisturbed")
    (undisturbed.root / "lake.toml").write_text(LAKE.partition("[properties]")[0].format(root=undisturbed.root) + 'engine = "local"\n')
    killed: list[int] = []
    (tmp_path / "cluster").mkdir()
    (tmp_path / "driver").mkdir()
    with spark_cluster(tmp_path / "cluster", workers=(HERE,)) as cluster:
        driver = Driver(cluster, tmp_path / "driver")
        driver.ask("limits", "tasks")
        driver.answer()
        place = Place(tmp_path / "place")
        driver.adopt(place, ONE)
        killer = threading.Thread(target=kill, args=(place.topology.refs, cluster.workers[0].pid, killed))
        killer.start()
        for jobs_of_run, (which, steps) in enumerate((("first load", 4), ("half of the orders, a quarter of the customers", 5))):
            if jobs_of_run:
                change(place)
                change(undisturbed)
            run_topology(undisturbed.topology, no_spark, "undisturbed", options=RunOptions(fuse=Fuse.APPLY))
            jobs = by_step(driver.run(place, "--fuse", "apply"))
            assert stored(place) == stored(undisturbed), which
            assert len(jobs) == steps, jobs.keys()
            assert all(len(some) == 1 and some[0].succeeded for some in jobs.values()), "a step took more than one job"
            tries = {step: [task.why for task in some[0].tasks] for step, some in jobs.items()}
            print(which, tries)
            lost = {step for step, whys in tries.items() if len(whys) > 1}
            assert lost == (set() if jobs_of_run else {"resolve.enriched"}), tries
            assert all(whys[-1] == "Success" for whys in tries.values())
        killer.join()
        assert len(killed) == 1
        for said in (driver.events(), driver.said.read_text(), *(log.read_text() for log in cluster.logs())):
            assert SECRET not in said
        driver.stop()
    engines = {s.detail.get("engine") for run in (1, 2) for s in place.topology.ledger.steps(run).values()} - {None}
    assert engines == {"task"}
