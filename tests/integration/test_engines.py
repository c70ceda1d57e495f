"""The three ways to execute a stage, chosen by a connection: the same DAG, the same tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.airflow_shop import DagShop
from integration.servers import spark_connect
from integration.shop import check, folded, output, rows

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


def test_every_engine_makes_the_same_tables(tmp_path: Path) -> None:
    shops = {name: DagShop(tmp_path / name) for name in ("process", "connect", "submit")}
    seconds: dict[str, dict[str, float]] = {}
    with spark_connect(shops["connect"].topology().config, tmp_path) as remote:
        host, port = remote.removeprefix("sc://").split(":")
        engines: dict[str, dict[str, object] | None] = {
            "process": None,
            "connect": {"conn_type": "spark_connect", "host": host, "port": int(port)},
            "submit": {"conn_type": "spark", "host": "local[2]"},
        }
        for _ in range(2):  # the first load, then changes on both sides
            for name, shop in shops.items():
                shop.next_batch()
                seconds[name] = run(shop, engines[name])
                check(shop)
    first, *others = shops.values()
    for shop in others:
        assert output(shop.topology()) == output(first.topology())
        assert folded(shop.topology()) == folded(first.topology())
        hashes = [{r["id"]: r["_hash"] for r in rows(s.topology(), "enriched")} for s in (first, shop)]
        assert hashes[0] == hashes[1]
    used = {name: {s.step: s.jobs for s in shop.topology().ledger.steps(2).values()} for name, shop in shops.items()}
    assert used["process"]["resolve.enriched"] and used["submit"]["resolve.enriched"] and used["connect"]["resolve.enriched"] is None
    for task in seconds["process"]:
        print(f"{task:40} " + "  ".join(f"{name} {seconds[name][task]:6.1f} s" for name in seconds))
