"""What a session is started with, as far as one sees it only by using it."""

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.shop import Shop
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rejoin.engines.relation import LocalRelation
from rejoin.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.slow


def test_a_column_asks_the_jvm_for_no_more_than_itself(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = sessions(Shop(tmp_path).topology())
    F.col("warm")
    client = type(spark._jvm._gateway_client)
    send, asked = client.send_command, []

    def counted(self: Any, command: str, *args: Any, **more: Any) -> Any:
        asked.append(command)
        return send(self, command, *args, **more)

    monkeypatch.setattr(client, "send_command", counted)
    F.col("a")
    questions = [a for a in asked if not a.startswith("m\n")]  # py4j's messages about objects that Python has forgotten
    assert 0 < len(questions) <= 3, questions


def test_rows_of_the_driver_are_not_part_of_the_plan_and_are_joined_without_a_shuffle(tmp_path: Path, sessions: Sessions) -> None:
    spark: Any = sessions(Shop(tmp_path).topology())

    def frame(count: int, column: str) -> DataFrame:
        rows = pa.table({"k": pa.array(range(count), pa.int64()), column: ["v" * 40] * count})
        return SparkEngine(spark).frame(LocalRelation(rows))

    for count in (1, 100_000):
        # The estimated size of each join is the product of its sides: several of them, and it would be too much for one partition.
        joined = reduce(lambda one, other: one.join(other, on="k", how="left"), [frame(count, c) for c in "abcd"])
        plan = str(joined._jdf.queryExecution().executedPlan().toString())
        assert plan.count("ExistingRDD") == 4
        assert "LocalTableScan" not in plan
        assert "Exchange" not in plan
