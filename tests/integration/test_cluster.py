"""A Spark standalone cluster of a master and two workers: named in the lake's file, bulk steps run in parallel tasks, and what dies costs a retry."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import psutil
import pytest
from integration.event_log import Job
from integration.on_cluster import CUSTOMERS, LAKE, ORDERS, SECRET, TABLE, Driver, Place, by_step
from integration.servers import SparkCluster, spark_cluster
from integration.stored import Stored, stored
from sparkless import no_spark

from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def driver(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    made = Driver(cluster, tmp_path_factory.mktemp("driver"))
    yield made
    made.stop()


def change(place: Place) -> None:
    """Half of the orders, and a quarter of the customers."""
    place.orders(range(0, ORDERS, 2), "bulk")
    place.customers(range(0, CUSTOMERS, 4), "bulk")


@dataclass(frozen=True)
class Undisturbed:
    """All rows after the first load and after the bulk change, by the process instead of the cluster."""

    loaded: Stored
    changed: Stored


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    place = Place(tmp_path_factory.mktemp("undisturbed") / "place")
    (place.root / "lake.toml").write_text(LAKE.partition("[properties]")[0].format(root=place.root) + 'engine = "local"\n')
    found = []
    for number in range(2):
        if number:
            change(place)
        run_topology(place.topology, no_spark, "undisturbed", options=RunOptions(fuse=Fuse.APPLY))
        found.append(stored(place))
    return Undisturbed(*found)


def told(what: str, jobs: list[Job]) -> None:
    """Prints how many jobs and tasks each step took, and the most that one of its tasks has sent to the driver."""
    for step, some in by_step(jobs).items():
        tasks = [task for job in some for task in job.tasks]
        print(f"{what}: {step}: {len(some)} jobs, {len(tasks)} tasks, {max(t.result for t in tasks):,} bytes to the driver at most by one")


def in_parallel(jobs: list[Job]) -> bool:
    """Whether some stage ran in tasks on both executors."""
    places = defaultdict[int, set[str]](set)
    for task in (task for job in jobs for task in job.tasks):
        places[task.stage].add(task.executor)
    return any(len(executors) > 1 for executors in places.values())


SPARK_SQL, RANGES = "bulk", "ranges"
"""The limits with which executors run Spark SQL or range by range (``clustered.py``)."""
STEPS = ("ingest.orders", "subscribe.enriched", "respond.enriched.customers", "resolve.enriched")


@pytest.fixture(params=[pytest.param(SPARK_SQL, marks=pytest.mark.nightly), RANGES], ids=["by Spark SQL", "range by range"])
def how(request: pytest.FixtureRequest, driver: Driver) -> Iterator[str]:
    """By Spark SQL, or by DuckDB in tasks."""
    driver.do("limits", request.param)
    yield request.param
    driver.do("limits", SPARK_SQL)


def bulk(driver: Driver, undisturbed: Undisturbed, root: Path) -> tuple[Place, dict[str, list[Job]]]:
    """A place after its first load and the bulk change, and the jobs of the change's steps."""
    place = driver.place(root)
    jobs = driver.run(place)
    told("first load", jobs)
    assert stored(place) == undisturbed.loaded
    change(place)
    jobs += (changed := driver.run(place, "--fuse", "apply"))
    told("half of the orders, a quarter of the customers", changed)
    assert stored(place) == undisturbed.changed
    for step, some in by_step(jobs).items():
        assert in_parallel(some), f"{step} ran in one place"
        # Results of tasks are what a driver collects: counts, files that were written, keys that are sent to all tasks; no part of a table.
        assert max(task.result for job in some for task in job.tasks) < TABLE // 8
    return place, by_step(changed)


def in_no_log(driver: Driver, cluster: SparkCluster) -> None:
    for said in (driver.events(), cluster.log.read_text(), driver.said.read_text(), *(log.read_text() for log in cluster.logs())):
        assert SECRET not in said


@pytest.mark.usefixtures("how")
def test_a_master_in_the_lakes_file_is_enough_and_bulk_steps_run_in_tasks_on_both_workers(
    driver: Driver, cluster: SparkCluster, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    _, changed = bulk(driver, undisturbed, tmp_path / "place")
    assert set(changed) == {f"ingest.{t}" for t in ("orders", "customers")} | {
        "subscribe.enriched",
        "respond.enriched.customers",
        "resolve.enriched",
    }
    in_no_log(driver, cluster)


@pytest.mark.nightly
def test_a_compaction_a_small_run_and_a_comparison_of_what_the_tasks_made(
    driver: Driver, cluster: SparkCluster, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    place, changed = bulk(driver, undisturbed, tmp_path / "place")
    lake = ("--lake", str(place.root / "lake.toml"))
    told("compaction", driver.do("compact", *lake))
    driver.do("limits", "usual")
    place.orders(range(100), "small")
    told("100 orders", small := driver.run(place))
    driver.do("limits", "bulk")
    assert len(small) < sum(map(len, changed.values()))
    told("verify", driver.do("verify", *lake))  # exit code 1 if there are differences
    in_no_log(driver, cluster)


def changed(driver: Driver, root: Path) -> Iterator[Place]:
    """Places after their first load, with the bulk change waiting."""
    for number in count():
        place = driver.place(root / f"place{number}")
        driver.run(place)
        change(place)
        yield place


def kill(processes: list[psutil.Process]) -> None:
    assert processes, "nothing to kill"
    for process in processes:
        process.kill()


@pytest.mark.nightly
@pytest.mark.invariant("I1", "I2", "I9")
def test_executors_that_are_lost_in_every_bulk_step_cost_retries(
    driver: Driver, cluster: SparkCluster, undisturbed: Undisturbed, how: str, tmp_path: Path
) -> None:
    for number, step in enumerate(STEPS):
        executors = partial(cluster.executors, cluster.workers[number % 2])
        places = changed(driver, tmp_path / step)
        place = driver.run_and_lose(partial(next, places), step, lambda found=executors: kill(found()))
        assert stored(place) == undisturbed.changed, step


@pytest.mark.nightly
def test_a_worker_that_dies_with_its_executor_costs_a_retry(
    driver: Driver, cluster: SparkCluster, undisturbed: Undisturbed, how: str, tmp_path: Path
) -> None:
    places = changed(driver, tmp_path)
    place = driver.run_and_lose(partial(next, places), "resolve.enriched", lambda: cluster.lose(0))
    assert stored(place) == undisturbed.changed


@pytest.mark.nightly
def test_a_driver_that_is_killed_leaves_no_executors_and_the_next_run_ends_as_if_nothing_had_been(
    driver: Driver, cluster: SparkCluster, undisturbed: Undisturbed, how: str, tmp_path: Path
) -> None:
    place = driver.place(tmp_path / "place")
    driver.start_and_lose(place, "ingest.orders", driver.kill, jobs=2)
    deadline = time.monotonic() + 60
    while any(cluster.executors(worker) for worker in cluster.workers):
        assert time.monotonic() < deadline, "executors outlive their driver"
        time.sleep(0.2)
    assert place.topology.ledger.head() is None
    driver.start()
    driver.adopt(place)
    driver.run(place)
    assert without_runs(stored(place)) == without_runs(undisturbed.loaded)


def without_runs(found: Stored) -> Stored:
    """The rows without the numbers of their runs."""
    return {name: [tuple(cell for cell in row if not cell.startswith("_run=")) for row in rows] for name, rows in found.items()}
