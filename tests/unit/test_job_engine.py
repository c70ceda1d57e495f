"""Where the steps of jobs and of Airflow's tasks run."""

from dataclasses import replace
from pathlib import Path

import pytest
from plans import Shop

from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.steps.run.job import _by_spark
from rejoin.steps.run.topology import Topology


@pytest.mark.parametrize(
    ("file", "variable", "expected"),
    [
        (None, None, "spark"),
        (None, "auto", "spark"),
        (None, "spark", "spark"),
        (None, "local", "local"),
        ("auto", None, "spark"),
        ("auto", "local", "spark"),
        ("spark", "local", "spark"),
        ("local", None, "local"),
        ("local", "spark", "local"),
    ],
)
def test_a_scheduled_step_is_a_spark_job_unless_the_lake_or_the_environment_says_local(
    file: str | None, variable: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REJOIN_ENGINE") if variable is None else monkeypatch.setenv("REJOIN_ENGINE", variable)
    shop = Shop()
    shop.orders.named("all_orders")
    topology = Topology(
        shop.compile(), replace(lake_config(str(tmp_path / "lake")), engine=EngineChoice(file) if file else None), str(tmp_path)
    )
    assert _by_spark(topology).config.engine == expected
