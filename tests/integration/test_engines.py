"""The three ways to execute a stage, chosen by a connection: a DAG makes the same tables as a run without Airflow."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration.airflow_shop import DagShop
from integration.conftest import Go
from integration.servers import spark_connect
from integration.shop import check, folded, output, rows

from rejoin.limits import limits

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(1500)]

PROJECT = Path(__file__).parents[2]


def run(shop: DagShop, connection: dict[str, object] | None) -> dict[str, float]:
    """One DAG run on an engine; the seconds of every task."""
    home = shop.root / "home"
    (home / "dags").mkdir(parents=True, exist_ok=True)
    shop.write_dags(home / "dags")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW") and k != "SPARK_REMOTE"}
    environment |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(PROJECT / "include"),
        "REJOIN_LAKE": str(shop.lake),
        "REJOIN_ROOT": str(shop.root),
    }
    if connection is not None:
        environment["AIRFLOW_CONN_REJOIN_SPARK"] = json.dumps(connection)
    command = [sys.executable, str(Path(__file__).parent / "dag_in_process.py"), "shop", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=shop.root)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


@contextmanager
def connection(engine: str, shop: DagShop) -> Iterator[dict[str, object] | None]:
    """The connection that chooses an engine; None: the process of the task."""
    if engine == "process":
        yield None
        return
    if engine == "submit":
        yield {"conn_type": "spark", "host": "local[2]"}
        return
    with spark_connect(shop.topology().config, shop.root) as remote:
        host, port = remote.removeprefix("sc://").split(":")
        yield {"conn_type": "spark_connect", "host": host, "port": int(port)}


def pad(shop: DagShop) -> None:
    """Makes the newest file of orders large: JSON may have spaces."""
    file = max((shop.root / "landing" / "orders").iterdir())
    line, *others = file.read_text().splitlines(keepends=True)
    file.write_text("".join([line.rstrip("\n"), " " * (limits().task_bytes + 1), "\n", *others]))


@pytest.mark.parametrize("engine", ["submit", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("connect", "process"))])
def test_every_engine_makes_the_same_tables(engine: str, tmp_path: Path, go: Go) -> None:
    here, there = (DagShop(tmp_path / name) for name in ("here", engine))
    with connection(engine, there) as chosen:
        for shop in (here, there):
            shop.next_batch()
            go(shop.topology())  # the first load; then changes on both sides
            shop.next_batch()
            pad(shop)
        go(here.topology())
        seconds = run(there, chosen)
    for shop in (here, there):
        check(shop)
    assert output(there.topology()) == output(here.topology())
    assert folded(there.topology()) == folded(here.topology())
    hashes = [{r["id"]: r["_hash"] for r in rows(s.topology(), "enriched")} for s in (here, there)]
    assert hashes[0] == hashes[1]
    used = there.topology().ledger.steps(2)["resolve.enriched"].jobs
    assert used is None if engine == "connect" else used
    if engine != "process":
        assert there.topology().ledger.steps(2)["ingest.orders"].detail["engine"] == "task"
    for task, took in seconds.items():
        print(f"{task:40} {engine} {took:6.1f} s")
