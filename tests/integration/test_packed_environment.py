"""A job of spark-submit whose executors have a Python that travels with it: an interpreter with rejoin[spark] in an archive, packed as docs/operations.md says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration.on_cluster import ORDERS, Place
from integration.servers import SparkCluster, spark_cluster
from integration.stored import engines
from packed import ROOT, environment, wheel

from rejoin.lake.spark.session import spark_submit

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

WHERE = """
import json, sys
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession

def where(batches):
    import duckdb, pyspark, rejoin
    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps([sys.prefix, *(m.__file__ for m in (rejoin, pyspark, duckdb))])])], ["told"])

spark = SparkSession.builder.getOrCreate()
rows = spark.range(0, 4, 1, 4).mapInArrow(where, "told STRING").collect()
Path(sys.argv[1]).write_text(json.dumps({"driver": sys.prefix, "tasks": [json.loads(row.told) for row in rows]}))
"""
"""A job that says where its tasks run."""
LAKE = """
warehouse = "file://{root}/lake/warehouse"
catalog = "sqlite"
uri = "sqlite:///{root}/lake/catalog.db"
"""


def recipe() -> str:
    """The commands that pack an environment, as the documentation has them."""
    text = (ROOT / "docs" / "operations.md").read_text()
    (found,) = re.findall(r"```sh\npython3\.11 -m venv environment[^\n]*\n([^`]*)```", text)
    return str(found)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment. The one that it was made of is gone."""
    directory = tmp_path_factory.mktemp("packed")
    environment(directory / "environment", wheel(directory / "wheel"), "spark")
    subprocess.run(["bash", "-ec", recipe()], cwd=directory, check=True)
    (directory / "environment").rename(directory / "elsewhere")
    return directory / "env.tar.gz"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def submitted(cluster: SparkCluster, archive: Path, *job: object) -> None:
    """Submits a job from here, whose Python is that of the checkout."""
    sent = ["--master", cluster.url, "--archives", f"{archive}#environment", "--conf", "spark.pyspark.python=./environment/bin/python"]
    sent += ["--conf", f"spark.pyspark.driver.python={sys.executable}", "--conf", "spark.executor.memory=600m"]
    sent += ["--conf", "spark.python.daemon.module=rejoin.steps.run.spark_worker_daemon"]
    bare = {k: v for k, v in os.environ.items() if k not in ("REJOIN_ENGINE", "SPARK_REMOTE", "PYTHONPATH", "PYSPARK_PYTHON")}
    done = subprocess.run([spark_submit(), *sent, *map(str, job)], env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_tasks_run_in_the_environment_that_was_packed(cluster: SparkCluster, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text(WHERE)
    submitted(cluster, archive, tmp_path / "where.py", tmp_path / "told")
    told = json.loads((tmp_path / "told").read_text())
    assert Path(told["driver"]) == Path(sys.prefix)
    assert len({task[0] for task in told["tasks"]}) == 2, "each worker has unpacked one"
    for prefix, *modules in told["tasks"]:
        assert Path(prefix).name == "environment" and "/app-" in prefix, prefix
        assert all(module.startswith(f"{prefix}/lib/") for module in modules), modules


def test_a_run_that_was_submitted_is_done_there(cluster: SparkCluster, archive: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.orders(range(ORDERS, 400_000), "more")  # else the driver would do it by itself
    (place.root / "lake.toml").write_text(LAKE.format(root=place.root))
    submitted(cluster, archive, ROOT / "jobs" / "command.py", *place.words)
    assert set(engines(place, 1).values()) == {"task"}
    assert place.topology.ledger.steps(1)["resolve.enriched"].jobs
    verified = [sys.executable, "-m", "rejoin.cli", "verify", "--lake", str(place.root / "lake.toml")]
    done = subprocess.run(verified, env={**os.environ, "REJOIN_ENGINE": "local"}, capture_output=True, text=True, check=False)
    assert "0 differences" in done.stdout, done.stdout + done.stderr
