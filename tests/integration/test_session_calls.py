"""What a session is started with, as far as one sees it only by using it."""

from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.shop import Shop
from pyspark.sql import functions as F

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
