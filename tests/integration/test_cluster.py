"""The same plan on a Spark standalone cluster, a master and two workers: configuration only, and equal tables."""

import subprocess
import sys
from pathlib import Path

import pytest
from integration.conftest import Sessions
from integration.servers import spark_cluster
from integration.shop import output
from integration.test_refresh import ORDERS, Shop

from rejoin.conduct import Topology
from rejoin.lake.config import lake_config
from rejoin.load import load
from rejoin.plan.policy import Fuse

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

LAKE = """
warehouse = "file://{root}/cluster/warehouse"
catalog = "sqlite"
uri = "sqlite:///{root}/cluster/catalog.db"

[spark]
"spark.master" = "{master}"
"spark.executor.memory" = "1g"
"spark.executor.defaultJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""

# Everything by Spark: on the driver a cluster has nothing to do.
RUN = """
import sys
from rejoin import limits
limits.in_force = limits.Limits(small_rows=0)
from rejoin.cli import main
main(["run", "t.py", "--lake", "cluster.toml", "--root", ".", "--fuse", "apply"])
"""


def test_a_cluster_of_two_workers_gives_the_same_tables(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path / "shop", sessions)
    (shop.root / "cluster").mkdir()
    with spark_cluster(tmp_path) as master:
        (shop.root / "cluster.toml").write_text(LAKE.format(root=shop.root, master=master))
        for number in range(3):
            if number:
                shop.orders(range(0, ORDERS, 7), f"run {number}")
                shop.customers(["c0", f"c{number}"], f"run {number}")
            shop.run(fuse=Fuse.APPLY)
            done = subprocess.run([sys.executable, "-c", RUN], cwd=shop.root, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
    clustered = Topology(load(str(shop.root / "t.py")), lake_config(str(shop.root / "cluster.toml")), str(shop.root))
    assert output(clustered) == output(shop.topology) and len(output(clustered)) == ORDERS
    used = (tmp_path / "cluster.log").read_text()
    assert used.count("Asked to launch executor") >= 6, "the runs did not use both workers"
