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
    assert set(shown["dags"]) == {
        "aeroplanes",
        "departures",
        "flights",
        "shop",
        "rejoin_maintenance",
        "rejoin_verify",
        "rejoin_freshness",
        "rejoin_abandon",
    }


def test_reading_the_dag_files_takes_well_under_a_second_each(shown: dict[str, Any]) -> None:
    assert shown["seconds"] < 1.5, f"{shown['seconds']:.2f} s of CPU for five files"


@pytest.mark.parametrize(
    "dag", ["aeroplanes", "departures", "flights", "shop", "rejoin_maintenance", "rejoin_verify", "rejoin_freshness", "rejoin_abandon"]
)
def test_a_dag_has_the_shape_of_its_golden_file(shown: dict[str, Any], dag: str) -> None:
    """After a wanted change: ``python tests/unit/airflow/test_dags.py`` writes the files anew; look at the difference."""
    assert shown["dags"][dag] == json.loads((GOLDEN / f"{dag}.json").read_text())


@pytest.mark.parametrize("dag", ["aeroplanes", "departures", "flights", "shop", "rejoin_verify", "rejoin_abandon"])
def test_every_field_of_a_form_may_stay_empty(shown: dict[str, Any], dag: str) -> None:
    """Airflow's button Trigger is grey as long as a field is empty that may not be null; an emptied field is null to it."""
    fields = shown["dags"][dag]["params"]
    assert fields
    assert [name for name, field in fields.items() if "null" not in field["type"] or None not in field.get("enum", [None])] == []


def test_an_empty_form_asks_for_nothing_and_a_filled_one_for_what_it_says(shown: dict[str, Any]) -> None:
    nothing = {"refresh": None, "fuse": None, "only": [], "replay": [], "note": "", "repair": []}
    assert shown["asked"]["as it opens"] == shown["asked"]["emptied"] == nothing
    filled = {"refresh": "full", "fuse": "apply", "only": ["orders_enriched"], "replay": ["orders"], "note": "why", "repair": []}
    assert shown["asked"]["filled in"] == filled


def test_every_task_and_every_run_has_a_limit_and_only_a_person_may_take_longer_than_a_task(shown: dict[str, Any]) -> None:
    for dag, (run, tasks) in shown["limits"].items():
        assert run == 24 * 3600, dag
        assert {t for t, seconds in tasks.items() if seconds is None} == ({"approve"} if "approve" in tasks else set()), dag


def test_arguments_reach_the_tasks_and_go_before_default_args_which_go_before_ours(shown: dict[str, Any]) -> None:
    found = shown["arguments"]
    usual = {"owner": "airflow", "pool": "default_pool", "queue": "default", "retries": 4, "tries": 4, "execution_timeout": 6 * 3600.0}
    usual |= {"priority_weight": 1, "_num_executors": None, "approve": None, "tags": ["rejoin"], "dagrun_timeout": 24 * 3600.0, "cut": 2160}
    each = {"owner": "me", "pool": "small", "queue": "night", "tags": ["b", "rejoin"], "retries": 0, "tries": 0, "execution_timeout": 300.0}
    within = {"owner": "us", "retries": 2, "tries": 2, "execution_timeout": None, "priority_weight": 7, "_num_executors": 3}
    assert found["nothing"] == usual
    assert found["each"] == usual | each
    assert found["no limits"] == usual | {"execution_timeout": None, "dagrun_timeout": None}
    assert found["default_args"] == usual | within
    assert found["both"] == usual | {"owner": "me", "pool": "large"}


REFUSED = {
    "a misspelt name": "'retry_dealy' of default_args is no argument of a task\n  expected: arguments of Airflow's operators; did you mean 'retry_delay'?",
    "a name of ours": "'trigger_rule' of default_args is set by rejoin",
    "no dict": "default_args is ['owner']\n  expected: a dict",
    "an empty pool": "pool is ' '\n  expected: the name of a pool",
    "a queue of no text": "queue is 3\n  expected: the name of a queue",
    "no owner": "owner is None\n  expected: a text",
    "a time below zero": "execution_timeout is datetime.timedelta(days=-1, seconds=86399)\n  expected: a timedelta above zero, or None",
    "a time of no unit": "dagrun_timeout is 3600\n  expected: a timedelta above zero, or None",
    "a time of no unit within": "retry_delay is 15\n  expected: a timedelta above zero",
    "retries below zero": "retries is -1\n  expected: a whole number from 0",
    "retries that are a truth": "retries is True\n  expected: a whole number from 0",
    "one tag for many": "tags is 'night'\n  expected: a list of texts",
}


@pytest.mark.parametrize(("case", "told"), REFUSED.items(), ids=REFUSED.keys())
def test_an_argument_that_airflow_would_stumble_over_later_is_refused_when_the_file_is_read(
    shown: dict[str, Any], case: str, told: str
) -> None:
    assert str(shown["arguments"][case]).startswith(f"TOPOLOGY_FILE to_dag of topology 'shop': {told}")


if __name__ == "__main__":
    made = json.loads(
        subprocess.run([sys.executable, str(SHOW)], capture_output=True, text=True, check=True, env=_environment()).stdout.splitlines()[-1]
    )
    for name, found in made["dags"].items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
