"""What a session is started with, as far as one sees it only by using it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.shop import Shop
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.lake.local import LocalRows

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


def test_many_rows_of_the_driver_are_not_part_of_the_plan_and_are_joined_without_a_shuffle(tmp_path: Path, sessions: Sessions) -> None:
    spark: Any = sessions(Shop(tmp_path).topology())

    def plan(count: int) -> str:
        rows = pa.table({"k": pa.array(range(count), pa.int64()), "v": ["v" * 40] * count})
        one, other = (LocalRows(rows, from_arrow_schema(rows.schema)).frame(spark) for _ in range(2))
        joined = one.join(other.withColumnRenamed("v", "w"), on="k", how="left")
        return str(joined._jdf.queryExecution().executedPlan().toString())

    assert "LocalTableScan" in plan(10) and "Exchange" not in plan(10)
    assert "ExistingRDD" in plan(100_000) and "Exchange" not in plan(100_000)
