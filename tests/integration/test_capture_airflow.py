"""A DAG of a topology with captured tables captures first: one DAG run publishes what was committed when it began."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.captured_shop import CapturedShop

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.airflow]

DAG = "\nfrom rejoin.airflow import to_dag\n\ndag = to_dag(shop)\n"


def test_a_dag_run_captures_and_publishes(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = CapturedShop(logging_server, "of_a_dag", tmp_path, monkeypatch)
    with shop.db:
        shop.fill(50)
        dags = tmp_path / "home" / "dags"
        dags.mkdir(parents=True)
        (dags / "shop.py").write_text((tmp_path / "shop.py").read_text() + DAG)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW") and k != "SPARK_REMOTE"}
        environment |= {
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(Path(__file__).parents[2] / "include"),
            "REJOIN_LAKE": str(tmp_path / "lake"),
            "REJOIN_ROOT": str(tmp_path),
        }
        command = [sys.executable, str(Path(__file__).parent / "dag_in_process.py"), "shop", "1"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert '"capture": ' in done.stdout and shop.joined() == shop.expected()
