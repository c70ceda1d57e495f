"""Addresses and secrets come from the lake's file or the environment."""

import json
from pathlib import Path

import pytest

from rejoin.errors import SetupError
from rejoin.lake.config import lake_config
from rejoin.plan.model.sinks import KafkaSink, PostgresSink
from rejoin.sinks.config import connection

KAFKA, PG = KafkaSink("kafka", "t"), PostgresSink("pg", "s.t")
FILE = """
warehouse = "file:///tmp/w"
uri = "sqlite:///tmp/c.db"
catalog = "sqlite"

[sinks.kafka]
"bootstrap.servers" = "broker:9092"
"sasl.password" = "${SECRET}"
"enable.ssl.certificate.verification" = true
"""


def test_a_section_of_the_lakes_file_with_secrets_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "xyzzy")
    (tmp_path / "lake.toml").write_text(FILE)
    config = lake_config(str(tmp_path / "lake.toml"))
    found = connection(config.sinks, KAFKA)
    assert found == {"bootstrap.servers": "broker:9092", "sasl.password": "xyzzy", "enable.ssl.certificate.verification": "true"}
    assert "xyzzy" not in repr(config)


def test_the_environment_gives_an_address_or_settings_and_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = {"kafka": {"bootstrap.servers": "old:1", "client.id": "me"}}
    monkeypatch.setenv("REJOIN_SINK_KAFKA", "new:1")
    assert connection(stated, KAFKA) == {"bootstrap.servers": "new:1", "client.id": "me"}
    monkeypatch.setenv("REJOIN_SINK_KAFKA", json.dumps({"bootstrap.servers": "new:2", "a": True}))
    assert connection(stated, KAFKA) == {"bootstrap.servers": "new:2", "client.id": "me", "a": "true"}
    monkeypatch.setenv("REJOIN_SINK_PG", "postgresql://h/d")
    assert connection({}, PG) == {"url": "postgresql://h/d"}


def test_what_is_missing_is_named_and_a_broken_text_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"\[sinks\.pg\].*REJOIN_SINK_PG"):
        connection({}, PG)
    monkeypatch.setenv("REJOIN_SINK_KAFKA", '{"sasl.password": xyzzy}')
    with pytest.raises(SetupError, match="line 1") as raised:
        connection({}, KAFKA)
    assert "xyzzy" not in str(raised.value)
