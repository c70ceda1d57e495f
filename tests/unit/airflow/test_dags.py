"""The DAGs that Airflow sees: their shape as golden files, no import error, quickly read, nothing heavy loaded."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[2] / "data" / "dags"
SHOW = Path(__file__).parent / "show_dags.py"


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(SHOW)], capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _environment() -> dict[str, str]:
    import os

    return {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")} | {"PYTHONPATH": "include"}


def test_every_file_is_read_without_an_error_and_nothing_heavy_is_loaded(shown: dict[str, Any]) -> None:
    assert shown["errors"] == {}
    assert shown["heavy"] == []
    assert set(shown["dags"]) == {"flights", "shop", "rejoin_maintenance", "rejoin_verify", "rejoin_freshness", "rejoin_abandon"}


def test_reading_the_dag_files_takes_well_under_a_second_each(shown: dict[str, Any]) -> None:
    assert shown["seconds"] < 1.5, f"{shown['seconds']:.2f} s of CPU for three files"


@pytest.mark.parametrize("dag", ["flights", "shop", "rejoin_maintenance", "rejoin_verify", "rejoin_freshness", "rejoin_abandon"])
def test_a_dag_has_the_shape_of_its_golden_file(shown: dict[str, Any], dag: str) -> None:
    """After a wanted change: ``python tests/unit/airflow/test_dags.py`` writes the files anew; look at the difference."""
    assert shown["dags"][dag] == json.loads((GOLDEN / f"{dag}.json").read_text())


if __name__ == "__main__":
    made = json.loads(
        subprocess.run([sys.executable, str(SHOW)], capture_output=True, text=True, check=True, env=_environment()).stdout.splitlines()[-1]
    )
    for name, found in made["dags"].items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
